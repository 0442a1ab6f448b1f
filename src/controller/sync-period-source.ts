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
import type { Setting } from '../settings/settings.ts';

export interface SyncPeriodSourceOptions {
  readonly client: KubeClient;
  readonly oadpNamespace: string;
  /** What flag or environment say. */
  readonly setting: Setting<number | undefined>;
  readonly log: Logger;
  /** Called with the period in force at the start of `run`, and whenever it changes. */
  readonly onPeriod: (period: EffectiveSyncPeriod) => void;
  readonly onReflectorState: (state: ReflectorState) => void;
}

/**
 * The interval in force. Flag and environment settle it; otherwise it follows the DPA of the OADP namespace, without a
 * restart. Nothing waits for the DPA: without its CRD, or the right to read it, the default holds.
 */
export class SyncPeriodSource {
  readonly #options: SyncPeriodSourceOptions;
  readonly #store = new Store<DpaRecord>();
  #period: EffectiveSyncPeriod | undefined;
  #warnings: readonly string[] = [];

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
    reflector.onState(onReflectorState);
    this.#store.onChange(() => {
      this.#settle();
    });
    this.#settle();
    await reflector.run(signal);
  }

  #settle(): void {
    const { setting, log, onPeriod } = this.#options;
    const dpa = chooseDpa(this.#store.values());
    if (!isEqual(dpa.warnings, this.#warnings)) {
      for (const warning of dpa.warnings) log.warn(warning);
      this.#warnings = dpa.warnings;
    }
    const period = effectiveSyncPeriod(setting, dpa);
    if (isEqual(period, this.#period)) return;
    this.#period = period;
    const shown = period.periodMs === 0 ? 'off' : formatDuration(period.periodMs);
    log.info({ syncPeriod: shown, source: period.source }, 'sync period in force');
    onPeriod(period);
  }
}
