import type { JsonObject } from '../kube/resource.ts';
import { nameAt, valueAt } from '../oadp/read.ts';
import { printable, quoted } from '../oadp/printable.ts';
import { DurationError, parseDuration } from './duration.ts';
import type { SettingsWarning } from './settings-warning.ts';
import type { Setting, Source } from './settings.ts';
import { defaultSyncPeriodMs, parseSyncPeriod } from './sync-period.ts';

/** What is kept of a DataProtectionApplication. Periods in milliseconds, 0 = off, undefined = not set or not usable. */
export interface DpaRecord {
  readonly name: string;
  /** `spec.nonAdmin.enable` is true; explicitly false means the same as not set (field case A11). */
  readonly enabled: boolean;
  /** `spec.nonAdmin.backupSyncPeriod` */
  readonly syncPeriodMs?: number;
  /** `spec.nonAdmin.garbageCollectionPeriod` */
  readonly collectionPeriodMs?: number;
  /** `spec.configuration.velero.args`: how often Velero reads a location that has no period of its own. */
  readonly veleroSyncPeriodMs?: number;
  /** Fields that could not be used, one line each. */
  readonly problems: readonly string[];
}

/** The DPAs' say in the settings, as far as they have one. */
export interface DpaSettings {
  /** The DPA that counts. */
  readonly name?: string;
  readonly syncPeriodMs?: number;
  readonly collectionPeriodMs?: number;
  readonly veleroSyncPeriodMs?: number;
  /** To be told once, and again when they change. */
  readonly warnings: readonly SettingsWarning[];
}

/** The interval in force. `periodMs` 0 = none: a pass at start and on events only. */
export interface EffectiveSyncPeriod {
  readonly periodMs: number;
  readonly source: Source;
}

/** A DataProtectionApplication from the API, read defensively; undefined for an object without a name. */
export function toDpaRecord(object: JsonObject): DpaRecord | undefined {
  const name = nameAt(object, 'metadata', 'name');
  if (name === undefined) return undefined;
  const problems: string[] = [];

  function period(parse: (text: string) => number, ...path: string[]): number | undefined {
    const value = valueAt(object, ...path);
    if (value === undefined || value === null || value === '') return undefined;
    try {
      // Velero's arguments are Go durations in JSON, hence whole nanoseconds; all others are text.
      if (typeof value === 'number') return parse(`${Number.isSafeInteger(value) ? value : NaN}ns`);
      return parse(typeof value === 'string' ? value : '');
    } catch (error) {
      if (!(error instanceof DurationError)) throw error;
      const came = typeof value === 'string' ? quoted(value, 80) : printable(JSON.stringify(value), 80);
      problems.push(
        `DataProtectionApplication ${printable(name)}, ${path.join('.')}: ${error.message}, got ${came}; the default is used`,
      );
      return undefined;
    }
  }

  const syncPeriodMs = period(parseSyncPeriod, 'spec', 'nonAdmin', 'backupSyncPeriod');
  const collectionPeriodMs = period(parseDuration, 'spec', 'nonAdmin', 'garbageCollectionPeriod');
  const veleroArguments = ['spec', 'configuration', 'velero', 'args'];
  const veleroSyncPeriodMs =
    // The name in the CRD of OADP 1.5, and the one that its Go struct would suggest.
    period(parseDuration, ...veleroArguments, 'backup-sync-period') ??
    period(parseDuration, ...veleroArguments, 'backupSyncPeriod');
  return {
    name,
    enabled: valueAt(object, 'spec', 'nonAdmin', 'enable') === true,
    ...(syncPeriodMs !== undefined && { syncPeriodMs }),
    ...(collectionPeriodMs !== undefined && { collectionPeriodMs }),
    ...(veleroSyncPeriodMs !== undefined && { veleroSyncPeriodMs }),
    problems,
  };
}

function byName(a: DpaRecord, b: DpaRecord): number {
  return a.name < b.name ? -1 : 1;
}

/**
 * Picks among the DPAs of the OADP namespace: the one that enables non-admin backups; of several the first by name, with a
 * warning. One that does not enable them has no say in their periods, as for the NAC itself. Velero's period counts in any
 * case, since Velero runs in any case.
 */
export function chooseDpa(records: Iterable<DpaRecord>): DpaSettings {
  const sorted = [...records].sort(byName);
  const enabled = sorted.filter((record) => record.enabled);
  const chosen = enabled[0];
  const velero = chosen ?? sorted[0];
  const warnings = ((chosen ?? velero)?.problems ?? []).map((message): SettingsWarning => ({
    code: 'DpaFieldUnusable',
    message,
    next: 'correct that field',
  }));
  if (chosen !== undefined && enabled.length > 1) {
    const names = enabled.map(({ name }) => printable(name)).join(', ');
    const message = `several DataProtectionApplications enable non-admin backups (${names}); ${printable(chosen.name)} is used`;
    warnings.unshift({ code: 'SeveralDpas', message, next: 'disable them in the others' });
  }
  return {
    ...(chosen !== undefined && { name: printable(chosen.name) }),
    ...(chosen?.syncPeriodMs !== undefined && { syncPeriodMs: chosen.syncPeriodMs }),
    ...(chosen?.collectionPeriodMs !== undefined && { collectionPeriodMs: chosen.collectionPeriodMs }),
    ...(velero?.veleroSyncPeriodMs !== undefined && { veleroSyncPeriodMs: velero.veleroSyncPeriodMs }),
    warnings,
  };
}

/** Flag over environment over DPA over the default. */
export function effectiveSyncPeriod(setting: Setting<number | undefined>, dpa: DpaSettings): EffectiveSyncPeriod {
  if (setting.value !== undefined) return { periodMs: setting.value, source: setting.source };
  if (dpa.syncPeriodMs !== undefined) return { periodMs: dpa.syncPeriodMs, source: 'dpa' };
  return { periodMs: defaultSyncPeriodMs, source: 'default' };
}
