import type { RequestInfo } from '../kube/client.ts';
import type { ReflectorPhase } from '../kube/reflector.ts';
import type { FinalPhase } from '../requests/sync-request.ts';
import type { EffectiveSyncPeriod } from '../settings/dpa.ts';
import type { Periods } from '../settings/period-order.ts';
import type { SettingsWarning } from '../settings/settings-warning.ts';
import type { Settings } from '../settings/settings.ts';
import type { Action, DecisionReason, FailureReason } from '../sync/reasons.ts';

/** How a reconcile of one namespace, or a pass over all, ended. */
export const passOutcomes = ['succeeded', 'partial', 'failed'] as const;
export type PassOutcome = (typeof passOutcomes)[number];

/** Times in milliseconds since the epoch; absent = never. */
interface PassHistory {
  readonly lastSuccess?: number;
  readonly lastFailure?: number;
  readonly consecutiveFailures: number;
}

/** One decision and how many backups share it. */
export interface DecisionCount {
  readonly action: Action;
  readonly reason: DecisionReason;
  readonly count: number;
}

/**
 * What the controller reports about itself, in its own words; nothing in here knows how it is exposed. No call throws,
 * waits or takes a namespace or an object's name: metrics leave the OADP namespace.
 */
export interface Metrics {
  /** Backups were decided on (counter: every time). */
  decisions(counts: Iterable<DecisionCount>): void;
  /** The present state: all labelled backups by their latest decision. Replaces what was set before. */
  backups(counts: Iterable<DecisionCount>): void;
  /** NABs written. */
  created(): void;
  repaired(): void;
  /** A write that did not succeed. */
  failure(reason: FailureReason): void;
  /** A sync request got its answer so many seconds after it was taken up. */
  requestAnswered(phase: FinalPhase, seconds: number): void;
  /** Namespaces that the pass under way has still to look at. */
  namespacesPending(count: number): void;

  /** A pass over all namespaces begins, at a time in milliseconds since the epoch. */
  passStarted(now: number): void;
  passEnded(outcome: PassOutcome, seconds: number): void;
  /** How the passes went so far, those before a restart included. */
  passHistory(history: PassHistory): void;

  /** The work queue, with client-go's meanings. `depth` counts waiting keys, not running ones. */
  queueAdded(): void;
  queueRetried(): void;
  queueDepth(depth: number): void;
  /** A key left the queue after waiting so long. */
  queueWaited(seconds: number): void;
  /** One reconcile is done. */
  reconciled(outcome: PassOutcome, seconds: number): void;

  /** To be handed to KubeClient as it is (`onRequest: metrics.request`). */
  readonly request: (info: RequestInfo) => void;
  /** A reflector's phase; `since` in milliseconds since the epoch. */
  reflector(resource: string, phase: ReflectorPhase, since: number): void;
  /** How many requests of passes may be in flight at once. */
  concurrencyLimit(requests: number): void;
  leader(leading: boolean): void;
  /** What flags and environment settled; not what the DPA adds. */
  settings(settings: Settings): void;
  /** The interval in force and those that it has to fit in with, in milliseconds; 0 = none. */
  periods(inForce: {
    readonly period: EffectiveSyncPeriod;
    readonly others: Periods;
    readonly warnings: readonly SettingsWarning[];
  }): void;
}

function ignore(): void {
  // Commands that end at once have nobody to tell.
}

/** For once, plan and explain. */
export const noMetrics: Metrics = {
  decisions: ignore,
  backups: ignore,
  created: ignore,
  repaired: ignore,
  failure: ignore,
  requestAnswered: ignore,
  namespacesPending: ignore,
  passStarted: ignore,
  passEnded: ignore,
  passHistory: ignore,
  queueAdded: ignore,
  queueRetried: ignore,
  queueDepth: ignore,
  queueWaited: ignore,
  reconciled: ignore,
  request: ignore,
  reflector: ignore,
  concurrencyLimit: ignore,
  leader: ignore,
  settings: ignore,
  periods: ignore,
};
