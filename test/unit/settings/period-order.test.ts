import { describe, expect, test } from 'vitest';
import type { DpaSettings, EffectiveSyncPeriod } from '../../../src/settings/dpa.ts';
import { judgePeriods, periodsOf, type LocationPeriod } from '../../../src/settings/period-order.ts';
import type { SettingsWarning } from '../../../src/settings/settings-warning.ts';

const minute = 60_000;
const hour = 60 * minute;
const dpa: DpaSettings = { name: 'velero', warnings: [] };
const byDefault: LocationPeriod = { name: 'default', syncPeriod: undefined };

describe('the periods that ours has to fit in with', () => {
  test('are Velero’s and the NAC’s own where nobody says otherwise', () => {
    expect(periodsOf(dpa, [byDefault])).toEqual({
      location: { name: 'default', periodMs: minute },
      collectionMs: 24 * hour,
    });
    expect(periodsOf(dpa, []).location).toBeUndefined();
  });

  test.each([
    ['Velero’s argument, where the location has none', undefined, 3 * minute, 3 * minute],
    ['the location’s own, whatever Velero’s argument says', '5m', 3 * minute, 5 * minute],
    ['never, where the location says 0', '0s', 3 * minute, 0],
    ['Velero’s, where the location’s makes no sense', '-5m', 3 * minute, 3 * minute],
  ])('of a location is %s', (_, syncPeriod, veleroSyncPeriodMs, periodMs) => {
    const { location } = periodsOf({ ...dpa, veleroSyncPeriodMs }, [{ name: 'default', syncPeriod }]);
    expect(location?.periodMs).toBe(periodMs);
  });

  test('is that of the location that is read least often', () => {
    const locations = ['1m', '9m', '5m'].map((syncPeriod, index) => ({ name: `l${index}`, syncPeriod }));
    expect(periodsOf(dpa, locations).location).toEqual({ name: 'l1', periodMs: 9 * minute });
  });
});

describe('a sync period', () => {
  function judged(period: EffectiveSyncPeriod, settings: DpaSettings = dpa): SettingsWarning[] {
    return judgePeriods(period, settings, periodsOf(settings, [byDefault]));
  }

  test.each<[number, string[]]>([
    [minute, ['SyncPeriodTooShort']],
    [minute + 1, []],
    [24 * hour - 1, []],
    [24 * hour, ['SyncPeriodTooLong']],
  ])('of %d ms lies between a minute and a day, or is warned of: %j', (periodMs, codes) => {
    expect(judged({ periodMs, source: 'flag' }).map(({ code }) => code)).toEqual(codes);
  });

  test.each([
    ['flag', 'lower --sync-period below that'],
    ['environment', 'lower SYNC_PERIOD below that'],
    ['default', 'lower SYNC_PERIOD below that'],
    ['dpa', 'lower spec.nonAdmin.backupSyncPeriod of DataProtectionApplication velero below that'],
  ] as const)('from the %s is changed where it comes from', (source, advice) => {
    const [warning] = judged({ periodMs: 2 * hour, source }, { ...dpa, collectionPeriodMs: hour });
    expect(warning?.next).toContain(advice);
    expect(warning?.message).toContain('the sync period of 2h0m0s is not shorter than the 1h0m0s');
  });

  test('is never too long for a collector that is off', () => {
    expect(judged({ periodMs: 100 * hour, source: 'flag' }, { ...dpa, collectionPeriodMs: 0 })).toEqual([]);
  });

  test('of 0 is as it was meant, unless it comes from the DPA, where it is meant for the NAC', () => {
    expect(judged({ periodMs: 0, source: 'environment' })).toEqual([]);
    expect(judged({ periodMs: 0, source: 'dpa' }).map(({ code }) => code)).toEqual(['IntervalOff']);
  });
});
