import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import { resourcePath } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { meddlingProxy } from '../main-job/support/meddling-proxy.ts';
import { eventsIn } from '../main-job/support/events.ts';
import { mainJob, untilTheEndOfTheFile, type Controller } from '../main-job/support/main-job.ts';
import { onceReport } from '../main-job/support/reports.ts';
import { runNabSync } from '../../support/nab-sync.ts';

/**
 * Mallory fills his own bucket with Backups that claim to be Alice's. It costs Alice no event, no failure and no time,
 * and the API server no request beyond reading the list. FORGERIES= says how many; 10,000 take a minute to make and to
 * remove, so that the usual run has fewer.
 */

const job = await mainJob();
const { gen, objects, oadpNamespace } = job;
const forgeries = Number(process.env['FORGERIES'] ?? 1_000);
let alice: string;
let mallory: string;

async function forEachForgery(work: (name: string) => Promise<unknown>): Promise<void> {
  const names = Array.from({ length: forgeries }, (_, index) => `forged-${index}`).values();
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (const name of names) await work(name);
    }),
  );
}

const requests: string[] = [];
const proxy = await meddlingProxy(job.kubeconfig, ({ method, path }) => {
  requests.push(`${method} ${path}`);
  return undefined;
});
afterAll(() => proxy.close());
const kubeconfig = await job.file('watched.kubeconfig', proxy.kubeconfig);
const options = { kubeconfig, oadpNamespace };

beforeAll(async () => {
  [alice, mallory] = [await job.createTenant('alice'), await job.createTenant('mallory')];
  await objects.create(gen.storageLocation());
  await objects.create(gen.nonAdminStorageLocation({ namespace: mallory, nacuuid: 'mallorys' }));
  await objects.create(gen.ownedStorageLocation({ namespace: mallory, name: 'mallorys' }));
  const queue = Array.from({ length: forgeries }, (_, index) => `forged-${index}`).values();
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (const nacuuid of queue) {
        const name = `daily-${nacuuid}`;
        await objects.create(gen.backup({ namespace: alice, name, nacuuid, spec: { storageLocation: 'mallorys' } }));
      }
    }),
  );
  await objects.create(gen.backup({ namespace: alice, name: 'daily' }));
  await objects.create(gen.backup({ namespace: mallory, name: 'own', spec: { storageLocation: 'mallorys' } }));
}, 180_000);

afterAll(async () => {
  // The server deletes a collection one by one; this is faster.
  await forEachForgery((name) => objects.delete(kinds.backups, { namespace: oadpNamespace, name }));
}, 180_000);

const writes = (): string[] => requests.filter((request) => /^(POST|PUT|PATCH)/.test(request));
const aboutBackups = (): string[] => requests.filter((request) => request.includes('/backups/forged-'));

describe('one pass', () => {
  let report: z.infer<typeof onceReport>;

  beforeAll(async () => {
    const { exitCode, stdout, stderr } = await runNabSync(['once', '-o', 'json'], options);
    report = onceReport.parse(JSON.parse(stdout));
    expect(exitCode).toBe(0);
    // A line each would be a flood that hides the rest.
    expect(stderr.split('\n').length).toBeLessThan(100);
  });

  it('skips them all and brings back the two that are genuine', () => {
    expect(report.reasons).toEqual({ Missing: 2, StorageLocationOwnerMismatch: forgeries });
    expect(report).toMatchObject({ outcome: 'Succeeded', counts: { seen: forgeries + 2, created: 2, failed: 0 } });
  });

  it('makes no request for any of them', () => {
    expect(aboutBackups()).toEqual([]);
    // Of each of the two NABs: create, status, event. Besides that, the Lease and the status of the passes.
    expect(writes().filter((request) => !/\/(leases|configmaps)/.test(request))).toHaveLength(6);
  });

  it('tells Alice of her own backup only', async () => {
    expect(await eventsIn(objects, alice)).toMatchObject([{ reason: 'RecreatedFromVeleroBackup', count: 1 }]);
    expect(await job.nabNames(alice)).toEqual([`${alice}/daily`]);
  });
});

describe('the controller', () => {
  let controller: Controller;

  beforeAll(async () => {
    controller = await job.controller([], {}, untilTheEndOfTheFile);
    await controller.firstPass();
  });

  it('brings a NAB of Alice’s back at once', async () => {
    const ref = { namespace: alice, name: 'daily' };
    for (let round = 0; round < 3; round += 1) {
      await job.api.call('DELETE', resourcePath(kinds.nonAdminBackups, ref));
      const gone = performance.now();
      await eventually(
        async () => {
          const nab = await objects.get(kinds.nonAdminBackups, ref);
          expect(stringAt(objectAt(nab ?? {}, 'status'), 'phase')).toBe('Created');
        },
        10_000,
        10,
      );
      // Idle it takes a tenth of a second; the rest is for a machine that runs other tests beside.
      expect(performance.now() - gone).toBeLessThan(8_000);
      // What is removed again and again comes back later and later.
      if (round === 0) expect(controller.log().filter(({ level }) => level === 'error')).toEqual([]);
    }
  });

  it('tells the log in few lines, and the tenants nothing', async () => {
    const refusals = controller.log().filter(({ msg }) => msg.includes('refused'));
    expect(refusals.length).toBeGreaterThan(0);
    expect(refusals.length).toBeLessThanOrEqual(21);
    expect((await eventsIn(objects, alice)).map(({ reason }) => reason)).toEqual(['RecreatedFromVeleroBackup']);
  });
});
