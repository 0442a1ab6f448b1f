import { quoted } from '../oadp/printable.ts';
import type { DpaSettings, EffectiveSyncPeriod } from './dpa.ts';
import { DurationError, formatDuration, parseDuration } from './duration.ts';
import type { SettingsWarning } from './settings-warning.ts';

/** Velero's own, for a location without a period where its arguments name none either. */
const defaultLocationPeriodMs = 60_000;

/** The NAC's own. */
const defaultCollectionPeriodMs = 24 * 3_600_000;

/** A storage location of the admin's, as far as it has a say here. */
export interface LocationPeriod {
  readonly name: string;
  /** `spec.backupSyncPeriod` as it stands there. */
  readonly syncPeriod: string | undefined;
}

/** The periods that have to be in order, in milliseconds; 0 = off. */
export interface Periods {
  /** How often Velero reads the location that it reads least often; undefined where there is no location. */
  readonly location: { readonly name: string; readonly periodMs: number } | undefined;
  readonly collectionMs: number;
}

/** How often Velero reads a location. What it cannot read counts as not set, as for Velero itself. */
function locationPeriodMs({ syncPeriod }: LocationPeriod, fallbackMs: number): number {
  if (syncPeriod === undefined) return fallbackMs;
  try {
    return parseDuration(syncPeriod);
  } catch (error) {
    if (!(error instanceof DurationError)) throw error;
    return fallbackMs;
  }
}

/**
 * @param locations those of the admin's whose backups count. A tenant's own is left out: its period is the tenant's to set,
 * and no reason to change one that holds for all.
 */
export function periodsOf(dpa: DpaSettings, locations: Iterable<LocationPeriod>): Periods {
  const fallbackMs = dpa.veleroSyncPeriodMs ?? defaultLocationPeriodMs;
  const [slowest] = [...locations]
    .map((location) => ({ name: location.name, periodMs: locationPeriodMs(location, fallbackMs) }))
    .sort((a, b) => b.periodMs - a.periodMs || (a.name < b.name ? -1 : 1));
  return { location: slowest, collectionMs: dpa.collectionPeriodMs ?? defaultCollectionPeriodMs };
}

/** Where an admin changes our period, by where it comes from now. */
function periodKnob({ source }: EffectiveSyncPeriod, dpa: DpaSettings): string {
  switch (source) {
    case 'flag':
      return '--sync-period';
    case 'dpa':
      return `spec.nonAdmin.backupSyncPeriod of DataProtectionApplication ${dpa.name ?? ''}`;
    case 'environment':
    case 'default':
      return 'SYNC_PERIOD';
  }
}

/**
 * BSL's sync period < our period < NAC's garbage collection period. Below the first, passes find nothing new. Above the
 * last, the collector deletes Velero Backups whose NonAdminBackup is not back yet (field cases A3, A4).
 */
export function judgePeriods(period: EffectiveSyncPeriod, dpa: DpaSettings, periods: Periods): SettingsWarning[] {
  const { periodMs, source } = period;
  const knob = periodKnob(period, dpa);
  if (periodMs === 0) {
    // Set by flag or variable, it is meant for us.
    if (source !== 'dpa') return [];
    const message = `there is no interval, since ${knob} is 0: nab-sync syncs at its start and when something happens`;
    return [{ code: 'IntervalOff', message, next: 'set SYNC_PERIOD for an interval of its own' }];
  }
  const ours = formatDuration(periodMs);
  const { location, collectionMs } = periods;
  const warnings: SettingsWarning[] = [];
  if (location !== undefined && periodMs <= location.periodMs) {
    const message = `the sync period of ${ours} is not longer than the ${formatDuration(location.periodMs)} in which Velero reads BackupStorageLocation ${quoted(location.name)}, so most passes find nothing new`;
    const next = `raise ${knob} above that, or lower spec.backupSyncPeriod of the location`;
    warnings.push({ code: 'SyncPeriodTooShort', message, next });
  }
  if (collectionMs > 0 && periodMs >= collectionMs) {
    const message = `the sync period of ${ours} is not shorter than the ${formatDuration(collectionMs)} of the non-admin controller's garbage collection, which deletes Velero Backups whose NonAdminBackup is not back yet`;
    const next = `lower ${knob} below that, or raise spec.nonAdmin.garbageCollectionPeriod of the DataProtectionApplication`;
    warnings.push({ code: 'SyncPeriodTooLong', message, next });
  }
  return warnings;
}
