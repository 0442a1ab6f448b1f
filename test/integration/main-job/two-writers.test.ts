import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import { leaseResource } from '../../../src/kube/lease-record.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { eventually } from '../../support/eventually.ts';
import { eventsIn } from './support/events.ts';
import { mainJob } from './support/main-job.ts';
import { byName, expectedNab } from './support/nabs.ts';
import { onceReport } from './support/reports.ts';

const job = await mainJob();
const { gen, objects, oadpNamespace } = job;

beforeAll(async () => {
  await objects.create(gen.storageLocation());
});

/** Backups of one tenant, few enough that each NAB is told by name. */
async function tenantWith(name: string, count: number): Promise<{ namespace: string; backups: JsonObject[] }> {
  const namespace = await job.createTenant(name);
  const backups = await Promise.all(
    Array.from({ length: count }, (_, index) => objects.create(gen.backup({ namespace, name: `b${index}` }))),
  );
  return { namespace, backups };
}

async function holder(): Promise<string | undefined> {
  const lease = await objects.get(leaseResource, { namespace: oadpNamespace, name: 'nab-sync' });
  return stringAt(objectAt(lease ?? {}, 'spec'), 'holderIdentity');
}

/** That every NAB is there once, complete, and told once as re-created, whoever made it. */
async function madeOnce(tenants: readonly { namespace: string; backups: JsonObject[] }[]): Promise<void> {
  for (const { namespace, backups } of tenants) {
    expect(await job.nabs(namespace)).toEqual(backups.map((backup) => expectedNab(backup)).sort(byName));
    const events = await eventsIn(objects, namespace);
    expect(events.filter(({ count }) => count !== 1)).toEqual([]);
    const told = events.filter(({ reason }) => reason === 'RecreatedFromVeleroBackup');
    expect(told.map(({ involvedObject }) => involvedObject.name)).toEqual(
      backups.map((_, index) => `b${index}`).sort(),
    );
  }
}

describe('several writers at once, without a Lease between them', () => {
  it('four passes make every NAB once, and none of them fails', async () => {
    const tenants = await Promise.all(Array.from({ length: 10 }, (_, index) => tenantWith(`four-${index}`, 5)));
    const reports = await Promise.all(
      Array.from({ length: 4 }, () => job.json(onceReport, ['once', '--no-leader-elect'])),
    );
    for (const { outcome, counts, failures } of reports) {
      expect({ outcome, seen: counts.seen, failures }).toEqual({ outcome: 'Succeeded', seen: 50, failures: [] });
      // What another one made is present, or has its status completed; nothing else can come of it.
      expect(counts.created + counts.repaired + counts.present).toBe(50);
    }
    const created = reports.reduce((sum, { counts }) => sum + counts.created, 0);
    expect(created).toBe(50);
    console.log(`created by four passes: ${reports.map(({ counts }) => counts.created).join(' + ')}`);
    await madeOnce(tenants);
    expect(await holder()).toBeUndefined();
  });

  it('two controllers that see a namespace come back make every NAB once, and neither fails', async () => {
    const flags = ['--no-leader-elect', '--sync-period', '1s'];
    const controllers = await Promise.all([job.controller(flags), job.controller(flags)]);
    await Promise.all(controllers.map((controller) => controller.firstPass()));
    const tenants = await Promise.all(Array.from({ length: 5 }, (_, index) => tenantWith(`two-${index}`, 5)));
    await eventually(() => madeOnce(tenants), 20_000);
    for (const controller of controllers) {
      expect(controller.log().filter(({ outcome }) => outcome === 'failed')).toEqual([]);
      expect(controller.log().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
    }
  });
});

describe('a controller that holds the Lease', () => {
  it('lets a pass beside it go: it is skipped, names the holder and exits with 0', async () => {
    const controller = await job.controller();
    await controller.firstPass();
    const { identity } = z.object({ identity: z.string() }).parse(await controller.line('became leader'));
    expect(await holder()).toBe(identity);

    const skipped = await job.command(['once', '-o', 'json']);
    expect(skipped.exitCode).toBe(0);
    const report = onceReport.parse(JSON.parse(skipped.stdout));
    expect(report).toMatchObject({ outcome: 'Skipped', holder: identity, failures: [], reasons: {} });
    expect(Object.values(report.counts)).toEqual(Array.from({ length: 8 }, () => 0));
    expect(await holder()).toBe(identity);

    const table = await job.command(['once']);
    expect(table).toMatchObject({ exitCode: 0 });
    expect(table.stdout).toContain(identity);
  });

  it('keeps the second controller waiting: ready, with warm caches, and without a write', async () => {
    const first = await job.controller();
    await first.line('became leader');
    const second = await job.controller();
    await second.line('lease is held by another');
    const { namespace, backups } = await tenantWith('kept', 3);
    await eventually(async () => {
      expect(await job.nabs(namespace)).toEqual(backups.map((backup) => expectedNab(backup)).sort(byName));
    });
    expect(second.log().filter(({ msg }) => msg === 'NonAdminBackup re-created' || msg === 'became leader')).toEqual(
      [],
    );

    // The Lease is given back at a stop, so the other one does not have to wait for it to run out.
    const asked = performance.now();
    await first.stop();
    await second.line('became leader');
    console.log(`take-over after ${((performance.now() - asked) / 1000).toFixed(1)} s`);
    await second.firstPass();
    const { namespace: later, backups: laterBackups } = await tenantWith('later', 2);
    await eventually(async () => {
      expect(await job.nabs(later)).toEqual(laterBackups.map((backup) => expectedNab(backup)).sort(byName));
    });
  });
});
