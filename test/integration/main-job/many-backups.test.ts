import { beforeAll, describe, expect, it } from 'vitest';
import type { z } from 'zod';
import type { JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { eventsIn } from './support/events.ts';
import { mainJob } from './support/main-job.ts';
import { byName, expectedNab } from './support/nabs.ts';
import { onceReport } from './support/reports.ts';
import { versionsIn } from './support/versions.ts';

const job = await mainJob();
const { gen, objects } = job;
const tenants = 30;
const each = 10;
let namespaces: string[];
let backups: JsonObject[];
let report: z.infer<typeof onceReport>;

beforeAll(async () => {
  await objects.create(gen.storageLocation());
  namespaces = await Promise.all(Array.from({ length: tenants }, (_, index) => job.createTenant(`team-${index}`)));
  backups = await Promise.all(
    namespaces.flatMap((namespace) =>
      Array.from({ length: each }, (_, index) => objects.create(gen.backup({ namespace, name: `nightly-${index}` }))),
    ),
  );
  report = await job.json(onceReport, ['once']);
}, 120_000);

describe('300 backups over 30 namespaces', () => {
  it('all come back in one pass', () => {
    const seconds = (Date.parse(report.completionTime) - Date.parse(report.startTime)) / 1000;
    console.log(`one pass: ${report.counts.created} NABs with their status in ${seconds.toFixed(1)} s`);
    expect(report).toMatchObject({
      outcome: 'Succeeded',
      counts: { seen: 300, created: 300, repaired: 0, present: 0, skipped: 0, waiting: 0, conflict: 0, failed: 0 },
      reasons: { Missing: 300 },
    });
  });

  it('each is exactly as designed, and there is no other', async () => {
    expect(await job.nabs(...namespaces)).toEqual(backups.map((backup) => expectedNab(backup)).sort(byName));
    const everywhere = await objects.list(kinds.nonAdminBackups, {
      labelSelector: 'openshift.io/oadp-nab-synced-from-nacuuid',
    });
    const ours = everywhere.filter((nab) => JSON.stringify(nab).includes(job.oadpNamespace));
    expect(ours).toHaveLength(300);
  });

  it('every tenant is told, in at most six events', async () => {
    for (const namespace of namespaces) {
      const events = await eventsIn(objects, namespace);
      expect(events.length).toBeLessThanOrEqual(6);
      expect(events.every(({ count, reason }) => count === 1 && reason === 'RecreatedFromVeleroBackup')).toBe(true);
    }
  });

  it('the next pass finds them all and writes nothing: no NAB, no event', async () => {
    const before = await versionsIn(job, namespaces);
    const second = await job.json(onceReport, ['once']);
    expect(second.counts).toMatchObject({ seen: 300, created: 0, repaired: 0, present: 300, failed: 0 });
    expect(await versionsIn(job, namespaces)).toEqual(before);
  });
});
