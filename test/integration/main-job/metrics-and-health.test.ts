import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { qualifiedName, resourcePath } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { actionOf } from '../../../src/sync/reasons.ts';
import { eventually } from '../../support/eventually.ts';
import { startNabSync } from '../../support/nab-sync.ts';
import { follow, mainJob } from './support/main-job.ts';
import { meddlingProxy } from './support/meddling-proxy.ts';
import { metricsOf, page } from './support/scrape.ts';

const job = await mainJob();
const { gen, objects, oadpNamespace } = job;
let namespace: string;

beforeAll(async () => {
  await objects.create(gen.storageLocation());
  namespace = await job.createTenant('team');
  await Promise.all([
    ...['one', 'two', 'three'].map((name) => objects.create(gen.backup({ namespace, name }))),
    objects.create(gen.backup({ namespace, name: 'forged', spec: { includedNamespaces: ['*'] } })),
    objects.create(gen.backup({ namespace, name: 'running', status: { phase: 'InProgress' } })),
    objects.create(gen.backup({ namespace, name: 'taken' })),
    objects.create(gen.nonAdminBackup({ namespace, name: 'taken', nacuuid: 'of-another-backup' })),
  ]);
});

describe('metrics', () => {
  it('count what was done, tell how things stand, and name no namespace, backup or NACUUID', async () => {
    const controller = await job.controller();
    await controller.firstPass();
    await eventually(async () => {
      const metrics = await metricsOf(controller);
      for (const kind of Object.values(kinds)) {
        expect(metrics.value(`nab_sync_reflector_phase{resource="${qualifiedName(kind)}",phase="live"}`)).toBe(1);
      }
    });
    const metrics = await metricsOf(controller);
    const value = (series: string): number => metrics.value(`nab_sync_${series}`);
    expect(value('created_total')).toBe(3);
    expect(value('repaired_total')).toBe(0);
    expect(value('decisions_total{action="create",reason="Missing"}')).toBe(3);
    expect(value('decisions_total{action="conflict",reason="NameTaken"}')).toBeGreaterThanOrEqual(1);
    expect(value('backups{action="none",reason="Present"}')).toBe(3);
    expect(value('backups{action="skip",reason="ForeignContent"}')).toBe(1);
    expect(value('backups{action="skip",reason="NotFinished"}')).toBe(1);
    expect(value('backups{action="conflict",reason="NameTaken"}')).toBe(1);
    expect(value('leader')).toBe(1);
    expect(value('sync_period_seconds')).toBe(120);
    expect(value('namespaces_pending')).toBe(0);
    expect(value('workqueue_depth')).toBe(0);
    expect(value('consecutive_failures')).toBe(0);
    expect(value('last_failure_timestamp_seconds')).toBe(0);
    const now = Date.now() / 1000;
    for (const what of ['last_attempt_timestamp_seconds', 'last_success_timestamp_seconds']) {
      expect(value(what)).toBeGreaterThan(now - 60);
      expect(value(what)).toBeLessThanOrEqual(now);
    }
    const created = 'verb="create",resource="nonadminbackups.oadp.openshift.io",code="OK"';
    expect(value(`requests_total{${created}}`)).toBe(3);

    // Every reason has its series from the start, or its first increase would go unseen.
    for (const [reason, action] of Object.entries(actionOf)) {
      expect(value(`backups{action="${action}",reason="${reason}"}`)).toBeGreaterThanOrEqual(0);
    }
    expect(metrics.text).not.toContain(namespace);
    expect(metrics.text).not.toContain(oadpNamespace);
    expect(metrics.text).not.toMatch(/"(one|two|three|forged|taken)"/);
  });

  it('of a replica that waits for the Lease say that it does not lead', async () => {
    const leader = await job.controller();
    await leader.line('became leader');
    const waiting = await job.controller();
    await waiting.line('lease is held by another');
    expect((await metricsOf(leader)).value('nab_sync_leader')).toBe(1);
    expect((await metricsOf(waiting)).value('nab_sync_leader')).toBe(0);
    // Its caches are warm, so it can take over; that is all that being ready means.
    await eventually(async () => {
      expect((await page(waiting, '/readyz')).status).toBe(200);
    });
  });
});

describe('probes', () => {
  it('say ready only when every kind has been listed, and alive all the time', async () => {
    let letGo: () => void = () => undefined;
    const listed = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const proxy = await meddlingProxy(job.kubeconfig, async ({ method, path }) => {
      if (method === 'GET' && path === resourcePath(kinds.nonAdminBackups)) await listed;
      return undefined;
    });
    onTestFinished(() => proxy.close());
    const kubeconfig = await job.file('meddled.kubeconfig', proxy.kubeconfig);
    const controller = follow(await startNabSync(['run'], { kubeconfig, oadpNamespace }));
    onTestFinished(async () => {
      await controller.stop();
    });
    await controller.line('reflector changed phase', { resource: 'backups.velero.io', phase: 'live' });
    const unready = await page(controller, '/readyz');
    expect(unready.status).toBe(503);
    expect(unready.body).toMatch(/^\[-\]synced failed: .*: nonadminbackups\.oadp\.openshift\.io: syncing$/m);
    expect(await page(controller, '/livez')).toMatchObject({ status: 200 });
    // Nothing may be decided on part of the facts.
    expect(controller.log().filter(({ msg }) => msg === 'namespace reconciled')).toEqual([]);

    letGo();
    await controller.firstPass();
    const ready = await page(controller, '/readyz');
    expect(ready.status).toBe(200);
    expect(ready.body).toContain('[+]synced ok');
    expect(await page(controller, '/livez')).toMatchObject({ status: 200 });
  });

  it('and metrics are where the settings say, on one port if both say the same, and off with 0', async () => {
    const shared = await job.controller([], { METRICS_ADDRESS: '0', HEALTH_ADDRESS: '127.0.0.1:0' });
    const { address, pages } = await shared.line('listening');
    expect(pages).toEqual(['/livez', '/readyz']);
    await shared.line('nab-sync starts');
    expect(shared.log().filter(({ msg }) => msg === 'listening')).toHaveLength(1);
    await shared.stop();

    // The port that was free just now.
    const both = await job.controller([], { METRICS_ADDRESS: String(address), HEALTH_ADDRESS: String(address) });
    expect(await both.line('listening')).toMatchObject({ address, pages: ['/metrics', '/livez', '/readyz'] });
    await both.line('nab-sync starts');
    expect(both.log().filter(({ msg }) => msg === 'listening')).toHaveLength(1);
    const answer = await fetch(`http://${String(address)}/nothing`);
    expect(answer.status).toBe(404);

    const taken = await job.command(['run'], { METRICS_ADDRESS: String(address), HEALTH_ADDRESS: '0' });
    expect(taken.exitCode).toBe(2);
    expect(taken.stderr).toMatch(/^nab-sync: cannot listen on 127\.0\.0\.1:\d+ \(--metrics-address\): .*in use.*$/m);
  });
});
