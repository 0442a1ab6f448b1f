import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import { leaseResource } from '../../../src/kube/lease-record.ts';
import { eventually } from '../../support/eventually.ts';
import { day } from '../../support/gen/api-objects.ts';
import { fromNow } from '../../support/gen/live-objects.ts';
import { runNabSync, startNabSync, type NabSyncProcess } from '../../support/nab-sync.ts';
import { mainJob } from './support/main-job.ts';
import { meddlingProxy } from './support/meddling-proxy.ts';
import { expectedNab } from './support/nabs.ts';
import { onceReport } from './support/reports.ts';

const job = await mainJob();
const { gen, objects, oadpNamespace } = job;
const leaseRef = { namespace: oadpNamespace, name: 'nab-sync' };

beforeAll(async () => {
  await objects.create(gen.storageLocation());
});

async function holder(): Promise<string | undefined> {
  return stringAt(objectAt((await objects.get(leaseResource, leaseRef)) ?? {}, 'spec'), 'holderIdentity');
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}

describe('the controller', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'ends on %s: within seconds, with 0, and gives the Lease back',
    async (signal) => {
      const controller = await job.controller();
      await controller.firstPass();
      expect(await holder()).toBeDefined();
      const seconds = await secondsOf(async () => {
        controller.signal(signal);
        await controller.exited;
      });
      const { exitCode, stdout } = await controller.exited;
      expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
      expect(seconds).toBeLessThan(15);
      expect(await holder()).toBeUndefined();
      expect(controller.log().at(-1)?.msg).toBe('nab-sync stopped');
      expect(controller.log().filter(({ level }) => level !== 'info')).toEqual([]);
    },
  );

  it('that follows one that ended takes over at once', async () => {
    const first = await job.controller();
    await first.firstPass();
    await first.stop();
    const second = await job.controller();
    await second.firstPass();
    // A Lease that was not given back would have been waited for.
    expect(second.log()).not.toContainEqual(expect.objectContaining({ msg: 'lease is held by another' }));
  });

  it('ends as well while it waits for a Lease, or for a server that does not answer', async () => {
    const first = await job.controller();
    await first.line('became leader');
    const waiting = await job.controller();
    await waiting.line('lease is held by another');
    expect(await waiting.stop()).toMatchObject({ exitCode: 0 });
    const held = await holder();
    expect(first.log()).toContainEqual(expect.objectContaining({ msg: 'became leader', identity: held }));

    const nowhere = await job.file(
      'nowhere.kubeconfig',
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:9' } }],
        contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
        users: [{ name: 'u', user: { token: 't' } }],
        'current-context': 'c',
      }),
    );
    const lost = await startNabSync(['run'], { kubeconfig: nowhere, oadpNamespace });
    await eventually(() => {
      expect(lost.stderr).toContain('lease cannot be used');
    });
    expect(await lost.stop()).toMatchObject({ exitCode: 0 });
  });
});

describe('a pass', () => {
  it('waits for the Lease of a holder that shows no life, takes it over, and does its work', async () => {
    const namespace = await job.createTenant('inherited');
    const backup = await objects.create(gen.backup({ namespace }));
    await objects.apply({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: leaseRef,
      spec: {
        holderIdentity: 'killed',
        leaseDurationSeconds: 3,
        acquireTime: fromNow(0).replace('Z', '.000000Z'),
        renewTime: fromNow(0).replace('Z', '.000000Z'),
      },
    });
    const report = await job.json(onceReport, ['once']);
    expect(report).toMatchObject({ outcome: 'Succeeded', counts: { created: 1 } });
    const seconds = (Date.parse(report.completionTime) - Date.parse(report.startTime)) / 1000;
    expect(seconds).toBeGreaterThanOrEqual(3);
    expect(await job.nabs(namespace)).toEqual([expectedNab(backup)]);
    expect(await holder()).toBeUndefined();
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)('that is ended by %s before it was done says so by its exit code: %i', async (signal, code) => {
    onTestFinished(() => objects.delete(leaseResource, leaseRef));
    await objects.apply({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: leaseRef,
      spec: { holderIdentity: 'killed', leaseDurationSeconds: 600, renewTime: fromNow(0).replace('Z', '.000000Z') },
    });
    const path = await job.file(`last-words-${signal}`, '');
    const args = ['once', '--termination-log', path];
    const pass = await startNabSync(args, { kubeconfig: job.kubeconfig, oadpNamespace });
    await eventually(() => {
      expect(pass.stderr).toContain('lease is held by another');
    });
    const seconds = await secondsOf(async () => {
      pass.signal(signal);
      await pass.exited;
    });
    expect(await pass.exited).toMatchObject({ exitCode: code, stdout: '' });
    expect(seconds).toBeLessThan(15);
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({
      exitCode: code,
      code: 'Interrupted',
      message: `ended by ${signal} before it was done`,
    });
    expect(await holder()).toBe('killed');
  });

  it('that is ended in the middle finishes what is under way, begins nothing more, and reports both', async () => {
    const namespace = await job.createTenant('halfway');
    const [first] = await Promise.all(
      [fromNow(-day), fromNow(-2 * day)].map((completionTimestamp, index) =>
        objects.create(gen.backup({ namespace, name: `b${index}`, status: { completionTimestamp } })),
      ),
    );
    const started: NabSyncProcess[] = [];
    const proxy = await meddlingProxy(job.kubeconfig, async ({ method, path }) => {
      if (method === 'POST' && path.endsWith('/nonadminbackups')) {
        for (const pass of started) pass.signal('SIGTERM');
        // Time enough for the signal to get there first.
        await sleep(500);
      }
      return undefined;
    });
    onTestFinished(() => proxy.close());
    const kubeconfig = await job.file('meddled.kubeconfig', proxy.kubeconfig);
    const path = await job.file('last-words', '');
    const args = ['once', '-o', 'json', '-n', namespace, '--concurrency', '1', '--termination-log', path];
    const pass = await startNabSync(args, { kubeconfig, oadpNamespace });
    started.push(pass);
    const { exitCode, stdout, stderr } = await pass.exited;
    expect({ exitCode, complaint: /^nab-sync: .*/m.exec(stderr)?.[0] }).toEqual({ exitCode: 143 });
    const report = onceReport.parse(JSON.parse(stdout));
    expect(report).toMatchObject({ outcome: 'Partial', counts: { seen: 2, created: 1, failed: 1 } });
    expect(report.failures).toMatchObject([{ namespace, name: 'b1', reason: 'Aborted' }]);
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({
      exitCode: 143,
      code: report.outcome,
      counts: report.counts,
      failures: report.failures,
    });
    expect(await job.nabNames(namespace)).toEqual([`${namespace}/b0`]);
    expect(await holder()).toBeUndefined();

    // Whatever was left over is made up for by the next one.
    await job.json(onceReport, ['once', '-n', namespace]);
    expect(await job.nabs(namespace)).toHaveLength(2);
    expect(await job.nabs(namespace)).toContainEqual(expectedNab(first ?? {}));
  });

  it('gives the Lease back when it is done', async () => {
    expect(await runNabSync(['once'], { kubeconfig: job.kubeconfig, oadpNamespace })).toMatchObject({ exitCode: 0 });
    expect(await holder()).toBeUndefined();
  });
});
