import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import * as kinds from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { mainJob, type Controller } from './support/main-job.ts';
import { expectedNab } from './support/nabs.ts';
import { metricsOf } from './support/scrape.ts';

const job = await mainJob();
const { gen, objects, oadpNamespace } = job;
await objects.create(gen.storageLocation());

const passes = (controller: Controller): number =>
  controller.log().filter(({ msg }) => msg === 'pass over all namespaces done').length;

async function morePasses(controller: Controller, count: number): Promise<void> {
  const before = passes(controller);
  await eventually(() => {
    expect(passes(controller)).toBeGreaterThanOrEqual(before + count);
  });
}

describe('the interval', () => {
  it('begins a pass over all namespaces again and again, and each shows in the metrics', async () => {
    const namespace = await job.createTenant('quiet');
    const backup = await objects.create(gen.backup({ namespace }));
    const controller = await job.controller(['--sync-period', '1s']);
    await controller.line('sync period in force', { syncPeriod: '1s', source: 'flag' });
    await controller.firstPass();
    const first = await metricsOf(controller);
    await morePasses(controller, 2);
    const later = await metricsOf(controller);

    expect(later.value('nab_sync_sync_period_seconds')).toBe(1);
    const passesDone = 'nab_sync_pass_duration_seconds_count{outcome="succeeded"}';
    expect(later.value(passesDone)).toBeGreaterThanOrEqual(first.value(passesDone) + 2);
    for (const time of ['nab_sync_last_attempt_timestamp_seconds', 'nab_sync_last_success_timestamp_seconds']) {
      expect(later.value(time)).toBeGreaterThanOrEqual(first.value(time) + 1);
    }
    // Passes that find everything in order write nothing.
    expect(later.value('nab_sync_created_total')).toBe(1);
    expect(later.value('nab_sync_repaired_total')).toBe(0);
    expect(await job.nabs(namespace)).toEqual([expectedNab(backup)]);
  });

  it('of 0 means none: one pass at the start, and what happens is acted on all the same', async () => {
    const namespace = job.tenant('eventful');
    const backup = await objects.create(gen.backup({ namespace }));
    const controller = await job.controller([], { SYNC_PERIOD: '0' });
    await controller.line('sync period in force', { syncPeriod: 'off', source: 'environment' });
    await controller.firstPass();
    await job.createTenant('eventful');
    await eventually(async () => {
      expect(await job.nabs(namespace)).toEqual([expectedNab(backup)]);
    });
    // Long enough for the intervals of the other tests here to have come.
    await sleep(2_500);
    expect(passes(controller)).toBe(1);
    expect((await metricsOf(controller)).value('nab_sync_sync_period_seconds')).toBe(0);
  });

  it('follows the DPA without a restart: set, changed, and taken away', async () => {
    const controller = await job.controller();
    await controller.line('sync period in force', { syncPeriod: '2m0s', source: 'default' });
    await controller.firstPass();
    expect(passes(controller)).toBe(1);

    const dpa = await objects.create(gen.dataProtectionApplication({ backupSyncPeriod: '5m' }));
    await controller.line('sync period in force', { syncPeriod: '5m0s', source: 'dpa' });
    const ref = { namespace: oadpNamespace, name: 'dpa' };
    await objects.patch(kinds.dataProtectionApplications, ref, { spec: { nonAdmin: { backupSyncPeriod: '1s' } } });
    await controller.line('sync period in force', { syncPeriod: '1s', source: 'dpa' });
    await morePasses(controller, 2);

    await objects.patch(kinds.dataProtectionApplications, ref, { spec: { nonAdmin: { backupSyncPeriod: '0s' } } });
    await controller.line('sync period in force', { syncPeriod: 'off', source: 'dpa' });
    // 0 is meant for the NAC's synchronizer, so an admin may not know what it does to ours.
    const off = controller.log().find(({ warning }) => warning === 'IntervalOff');
    expect(off?.msg).toMatch(/^there is no interval, since spec\.nonAdmin\.backupSyncPeriod .*: set SYNC_PERIOD/);
    expect((await metricsOf(controller)).value('nab_sync_settings_warning{warning="IntervalOff"}')).toBe(1);
    await objects.deleteObject(dpa);
    await eventually(() => {
      expect(controller.log().filter(({ msg }) => msg === 'sync period in force')).toMatchObject([
        { syncPeriod: '2m0s', source: 'default' },
        { syncPeriod: '5m0s', source: 'dpa' },
        { syncPeriod: '1s', source: 'dpa' },
        { syncPeriod: 'off', source: 'dpa' },
        { syncPeriod: '2m0s', source: 'default' },
      ]);
    });
  });

  it('of the flag or the variable wins over the DPA, whatever happens to that', async () => {
    const dpa = await objects.create(gen.dataProtectionApplication({ backupSyncPeriod: '5m' }));
    const controller = await job.controller(['--sync-period', '1s'], { SYNC_PERIOD: '7m' });
    await controller.line('sync period in force', { syncPeriod: '1s', source: 'flag' });
    await objects.patch(
      kinds.dataProtectionApplications,
      { namespace: oadpNamespace, name: 'dpa' },
      { spec: { nonAdmin: { backupSyncPeriod: '10m' } } },
    );
    await morePasses(controller, 2);
    expect(controller.log().filter(({ msg }) => msg === 'sync period in force')).toHaveLength(1);
    await objects.deleteObject(dpa);
  });

  it('of the DPA is logged once, with its source, and not before the DPA was read', async () => {
    const dpa = await objects.create(gen.dataProtectionApplication({ backupSyncPeriod: '5m' }));
    const controller = await job.controller();
    await controller.line('sync period in force', { syncPeriod: '5m0s', source: 'dpa' });
    await controller.firstPass();
    expect(controller.log().filter(({ msg }) => msg === 'sync period in force')).toHaveLength(1);
    expect(controller.log().filter(({ warning }) => warning !== undefined)).toEqual([]);
    await objects.deleteObject(dpa);
  });

  it('that does not lie between Velero’s and the garbage collector’s is told once, with the value to change, and as a metric', async () => {
    const dpa = await objects.create(gen.dataProtectionApplication({ garbageCollectionPeriod: '10m' }));
    const location = { namespace: oadpNamespace, name: 'default' };
    const controller = await job.controller(['--sync-period', '10m']);
    const warnings = (): unknown[] =>
      controller.log().flatMap(({ level, warning }) => (level === 'warn' && warning !== undefined ? [warning] : []));
    const metric = async (warning: string): Promise<number> =>
      (await metricsOf(controller)).value(`nab_sync_settings_warning{warning="${warning}"}`);

    await eventually(() => {
      expect(warnings()).toEqual(['SyncPeriodTooLong']);
    });
    const said = controller.log().find(({ warning }) => warning === 'SyncPeriodTooLong');
    expect(said?.msg).toMatch(
      /the sync period of 10m0s is not shorter than the 10m0s .* lower --sync-period below that/,
    );
    expect([await metric('SyncPeriodTooLong'), await metric('SyncPeriodTooShort')]).toEqual([1, 0]);

    await objects.patch(kinds.backupStorageLocations, location, { spec: { backupSyncPeriod: '15m' } });
    await eventually(async () => {
      expect(warnings()).toEqual(['SyncPeriodTooLong', 'SyncPeriodTooShort']);
      expect(await metric('SyncPeriodTooShort')).toBe(1);
    });
    expect((await metricsOf(controller)).value('nab_sync_storage_location_sync_period_seconds')).toBe(900);

    await objects.patch(kinds.backupStorageLocations, location, { spec: { backupSyncPeriod: null } });
    await objects.patch(
      kinds.dataProtectionApplications,
      { namespace: oadpNamespace, name: 'dpa' },
      { spec: { nonAdmin: { garbageCollectionPeriod: '1h' } } },
    );
    await eventually(async () => {
      expect([await metric('SyncPeriodTooLong'), await metric('SyncPeriodTooShort')]).toEqual([0, 0]);
    });
    expect(warnings()).toHaveLength(2);
    await objects.deleteObject(dpa);
  });

  it('of a DPA that makes no sense is told, and the default holds', async () => {
    const dpa = await objects.create(gen.dataProtectionApplication({ backupSyncPeriod: '-5m' }));
    const controller = await job.controller();
    const warning = await eventually(() => {
      const found = controller.log().find(({ level, msg }) => level === 'warn' && msg.includes('backupSyncPeriod'));
      if (found === undefined) throw new Error('no warning yet');
      return found;
    });
    expect(warning.msg).toContain('"-5m"');
    expect(controller.log().filter(({ msg }) => msg === 'sync period in force')).toMatchObject([
      { syncPeriod: '2m0s' },
    ]);
    await objects.deleteObject(dpa);
  });
});
