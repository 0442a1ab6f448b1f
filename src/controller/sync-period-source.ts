import isEqual from 'lodash/isEqual.js';
import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import { Reflector, type ReflectorState } from '../kube/reflector.ts';
import { Store } from '../kube/store.ts';
import { dataProtectionApplications } from '../oadp/kinds.ts';
import { nameAt } from '../oadp/read.ts';
import {
  chooseDpa,
  effectiveSyncPeriod,
  toDpaRecord,
  type DpaRecord,
  type EffectiveSyncPeriod,
} from '../settings/dpa.ts';
import { formatDuration } from '../settings/duration.ts';
import { judgePeriods, periodsOf, type LocationPeriod, type Periods } from '../settings/period-order.ts';
import type { SettingsWarning } from '../settings/settings-warning.ts';
import type { Setting } from '../settings/settings.ts';

/** What is in force now. */
export interface PeriodsInForce {
  readonly period: EffectiveSyncPeriod;
  readonly others: Periods;
  readonly warnings: readonly SettingsWarning[];
}

export interface SyncPeriodSourceOptions {
  readonly client: KubeClient;
  readonly oadpNamespace: string;
  /** What flag or environment say. */
  readonly setting: Setting<number | undefined>;
  /** The admin's storage locations whose backups count, as far as they are known. */
  readonly locations: () => Iterable<LocationPeriod>;
  readonly log: Logger;
  /** Called with what is in force once the DPA is known, or known to be out of reach, and whenever it changes. */
  readonly onChange: (inForce: PeriodsInForce) => void;
  readonly onReflectorState: (state: ReflectorState) => void;
}

/**
 * The interval in force. Flag and environment settle it; otherwise it follows the DPA of the OADP namespace, without a
 * restart. Nothing waits for the DPA: without its CRD, or the right to read it, the default holds.
 */
export class SyncPeriodSource {
  readonly #options: SyncPeriodSourceOptions;
  readonly #store = new Store<DpaRecord>();
  /** The DPA was read, or cannot be. Before that, a default that does not hold would be logged. */
  #known = false;
  #inForce: PeriodsInForce | undefined;

  constructor(options: SyncPeriodSourceOptions) {
    this.#options = options;
  }

  /** Follows the DPA until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { client, oadpNamespace, log, onReflectorState } = this.#options;
    const reflector = new Reflector<DpaRecord>({
      client,
      resource: dataProtectionApplications,
      namespace: oadpNamespace,
      key: (object) => nameAt(object, 'metadata', 'name'),
      project: toDpaRecord,
      store: this.#store,
      log,
    });
    reflector.onState((state) => {
      onReflectorState(state);
      if (state.phase !== 'syncing' && state.phase !== 'stopped') this.#known = true;
      this.settle();
    });
    this.#store.onChange(() => {
      this.settle();
    });
    await reflector.run(signal);
  }

  /** Looks anew at what is in force; for when a storage location has changed. */
  settle(): void {
    if (!this.#known) return;
    const { setting, locations, log, onChange } = this.#options;
    const dpa = chooseDpa(this.#store.values());
    const period = effectiveSyncPeriod(setting, dpa);
    const others = periodsOf(dpa, locations());
    const warnings = [...dpa.warnings, ...judgePeriods(period, dpa, others)];
    const before = this.#inForce;
    const now = { period, others, warnings };
    if (isEqual(now, before)) return;
    this.#inForce = now;
    if (!isEqual(period, before?.period)) {
      const shown = period.periodMs === 0 ? 'off' : formatDuration(period.periodMs);
      log.info({ syncPeriod: shown, source: period.source }, 'sync period in force');
    }
    const told = new Set(before?.warnings.map(({ message }) => message));
    for (const { code, message, next } of warnings) {
      if (!told.has(message)) log.warn({ warning: code }, `${message}: ${next}`);
    }
    onChange(now);
  }
}
