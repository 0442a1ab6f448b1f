import countBy from 'lodash/countBy.js';
import type { Logger } from 'pino';
import type { BackupRecord } from '../oadp/backup.ts';
import type { NamespaceRecord } from '../oadp/namespace.ts';
import { rfc3339Seconds } from '../oadp/read.ts';
import { decide, worldAt } from './decide.ts';
import {
  failedResult,
  NamespacePass,
  type Decided,
  type ItemResult,
  type PassContext,
  type PassOptions,
} from './namespace-pass.ts';
import { toWriteFailure, type WriteFailure } from './failure.ts';
import { tellNews, type EventSink } from './notices.ts';
import type { Decision, Reason } from './reasons.ts';
import { writableAt, writtenAgain, type Recurrence } from './recurrence.ts';
import type { Outcome } from './report.ts';

export interface ReconcilerContext extends PassContext {
  readonly events: EventSink;
  readonly log: Logger;
}

export interface ReconcileOptions extends Pick<PassOptions, 'stop' | 'isLeading'> {
  /** Something just happened to the namespace, so its writes go ahead of a resync's. */
  readonly live: boolean;
}

/** What a pass over one namespace did, and when the namespace wants to be looked at again. */
export interface NamespaceReport {
  readonly namespace: string;
  readonly items: readonly ItemResult[];
  /** Something failed that may work later: again with back-off, not before `retryAfterMs`. */
  readonly retry: { readonly retryAfterMs: number | undefined } | undefined;
  /** Something waits for a time: again in so many milliseconds, whatever happens. */
  readonly againInMs: number | undefined;
}

/** A failure that is the same for as long as neither the backup nor the namespace changes. */
interface PermanentFailure {
  readonly backupVersion: string;
  readonly namespaceVersion: string | undefined;
  readonly failure: WriteFailure;
}

/** What is told of a backup. There is one object for each kind of fact, so they are compared by identity. */
export interface Fact {
  readonly outcome: Outcome;
  readonly reason: Reason;
}

/** What is remembered of a namespace from one pass to the next. Never decides what is due, only how and how loudly. */
interface Memory {
  /** The last pass met nothing that speaks against the next create; else the next one begins with a single create. */
  readonly takesNabs: boolean;
  /** How many passes there were. */
  readonly passes: number;
  /** By Backup: the pass in which its write was last tried and failed. */
  readonly failedIn: ReadonlyMap<string, number>;
  /** By Backup: what was told of it last. */
  readonly told: ReadonlyMap<string, Fact>;
  readonly permanent: ReadonlyMap<string, PermanentFailure>;
  readonly recurrences: ReadonlyMap<string, Recurrence>;
}

const nothing: Memory = {
  takesNabs: false,
  passes: 0,
  failedIn: new Map(),
  told: new Map(),
  permanent: new Map(),
  recurrences: new Map(),
};

/** What is told of a backup whose NAB was written, once it was. */
const nowPresent: Fact = { outcome: 'present', reason: 'Present' };

/** Most backups of a pass that get a log line of their own. */
const singleLines = 20;

/**
 * Brings one namespace to the state that its backups call for: looks at the caches, decides, carries out, reports.
 * Level-triggered: it may be called at any time, as often as one likes, but for one namespace only once at a time.
 */
export class Reconciler {
  readonly #context: ReconcilerContext;
  readonly #memories = new Map<string, Memory>();
  /** Namespaces that are being reconciled; `live`: they changed just before, or meanwhile. */
  readonly #running = new Map<string, { live: boolean }>();
  /** Every kind of fact that was told, by its reason. */
  readonly #facts = new Map<Reason, readonly Fact[]>();

  constructor(context: ReconcilerContext) {
    this.#context = context;
  }

  /** Whatever happens is in the report, a fault of ours as a failure of each backup that has no result yet. */
  async reconcile(namespace: string, options: ReconcileOptions): Promise<NamespaceReport> {
    const { state, log, now } = this.#context;
    const memory = this.#memories.get(namespace) ?? nothing;
    const backups = [...state.backupsOf(namespace)];
    let items: ItemResult[] | undefined;
    const running = { live: options.live };
    this.#running.set(namespace, running);
    try {
      const record = state.namespace(namespace);
      items = await this.#pass(backups, memory, record, options, running);
      this.#tell(namespace, memory, items);
      this.#remember(namespace, record, memory, items);
    } catch (error) {
      log.error({ err: error, namespace }, 'reconcile failed');
      // What was written was written, whatever went wrong after it.
      items ??= backups.map((backup) => ({ backup, ...failedResult(toWriteFailure(error)) }));
    } finally {
      this.#running.delete(namespace);
    }
    return { namespace, items, retry: retryOf(items), againInMs: againInMs(items, now()) };
  }

  async #pass(
    backups: readonly BackupRecord[],
    memory: Memory,
    record: NamespaceRecord | undefined,
    options: ReconcileOptions,
    running: { readonly live: boolean },
  ): Promise<ItemResult[]> {
    const { state, policy, now } = this.#context;
    const world = worldAt(policy, state, now());
    const work: Decided[] = [];
    const spared: ItemResult[] = [];
    for (const backup of backups) {
      const decision = decide(backup, world);
      const reprieve = sparedFor(backup, decision, memory, record, world.now);
      if (reprieve === undefined) work.push({ backup, decision });
      else spared.push(reprieve);
    }
    const pass = new NamespacePass(this.#context, {
      isLive: () => running.live,
      probe: !memory.takesNabs,
      failedIn: memory.failedIn,
      stop: options.stop,
      isLeading: options.isLeading,
    });
    return [...(await pass.run(work)), ...spared];
  }

  /**
   * Something just happened to a namespace. If it is being reconciled, its writes go ahead of a resync's from here on: those
   * that wait may be for a namespace that is gone by now, and keep the next reconcile from the one that was made anew.
   */
  hurry(namespace: string): void {
    const running = this.#running.get(namespace);
    if (running === undefined) return;
    running.live = true;
    this.#context.slots.hurry(namespace);
  }

  /** The latest result of every backup that was reconciled, counted. */
  results(): Map<Fact, number> {
    const counts = new Map<Fact, number>();
    const claimed = new Set(this.#context.state.claimedNamespaces());
    for (const [namespace, { told }] of this.#memories) {
      if (claimed.has(namespace)) {
        for (const fact of told.values()) counts.set(fact, (counts.get(fact) ?? 0) + 1);
      } else {
        // All backups of a namespace may go while another replica leads, and then nobody reconciles it here any more.
        this.#memories.delete(namespace);
      }
    }
    return counts;
  }

  #remember(
    namespace: string,
    record: NamespaceRecord | undefined,
    memory: Memory,
    items: readonly ItemResult[],
  ): void {
    if (items.length === 0) {
      this.#memories.delete(namespace);
      return;
    }
    const now = this.#context.now();
    const failed = items.filter(({ outcome }) => outcome === 'failed');
    const permanent = new Map<string, PermanentFailure>();
    const recurrences = new Map<string, Recurrence>();
    const passes = memory.passes + 1;
    const failedIn = new Map<string, number>();
    const told = new Map<string, Fact>();
    for (const item of items) {
      const { backup, outcome, failure, untried } = item;
      told.set(backup.name, this.#factOf(item));
      const failedLast = untried === true ? memory.failedIn.get(backup.name) : passes;
      if (outcome === 'failed' && failedLast !== undefined) failedIn.set(backup.name, failedLast);
      if (failure?.permanent === true) {
        const backupVersion = versionOf(backup);
        permanent.set(backup.name, { backupVersion, namespaceVersion: record?.resourceVersion, failure });
      }
      const before = memory.recurrences.get(backup.name);
      const recurrence = isWritten(item) ? writtenAgain(before, record?.uid, now) : before;
      if (recurrence !== undefined) recurrences.set(backup.name, recurrence);
    }
    this.#memories.set(namespace, {
      takesNabs: failed.every(({ failure }) => failure?.rest === 'next'),
      passes,
      failedIn,
      told,
      permanent,
      recurrences,
    });
  }

  /** That a NAB which was written in one pass is present in the next is no news. */
  #factOf(item: ItemResult): Fact {
    const { outcome, reason }: Fact = isWritten(item) ? nowPresent : item;
    const alike = this.#facts.get(reason) ?? [];
    const known = alike.find((fact) => fact.outcome === outcome);
    if (known !== undefined) return known;
    const fact = { outcome, reason };
    this.#facts.set(reason, [...alike, fact]);
    return fact;
  }

  /** Speaks of what changed since the last pass, and of nothing else. */
  #tell(namespace: string, memory: Memory, items: readonly ItemResult[]): void {
    const { events, log, state } = this.#context;
    const news = items.filter((item) => isWritten(item) || memory.told.get(item.backup.name) !== this.#factOf(item));
    if (news.length === 0) return;
    tellNews(events, namespace, state.namespace(namespace)?.uid, news);
    const loud = news.filter(({ outcome }) => outcome !== 'present' && outcome !== 'skipped');
    for (const { backup, outcome, reason, message, failure } of loud.slice(0, singleLines)) {
      // The stack of a fault of ours is the one thing by which it can be found.
      const fault = failure?.fault === undefined ? {} : { err: failure.fault };
      const facts = {
        namespace,
        name: backup.claim.name,
        backup: backup.name,
        outcome,
        reason,
        detail: message,
        ...fault,
      };
      log[loudness[outcome].level](facts, loudness[outcome].message);
    }
    const level = news.every(({ outcome }) => outcome === 'present') ? 'debug' : 'info';
    const changed = countBy(news, 'reason');
    log[level]({ namespace, backups: items.length, changed }, 'namespace reconciled');
  }
}

/** How a result is told in the log, where it is. */
const loudness = {
  created: { level: 'info', message: 'NonAdminBackup re-created' },
  repaired: { level: 'info', message: 'NonAdminBackup repaired' },
  present: { level: 'debug', message: 'NonAdminBackup present' },
  skipped: { level: 'info', message: 'backup skipped' },
  waiting: { level: 'info', message: 'NonAdminBackup waits' },
  conflict: { level: 'warn', message: 'NonAdminBackup not re-created' },
  failed: { level: 'warn', message: 'NonAdminBackup not re-created' },
} as const satisfies Record<Outcome, { level: 'debug' | 'info' | 'warn'; message: string }>;

/** The result of a backup that is not tried now, for what happened before; undefined for one that is. */
function sparedFor(
  backup: BackupRecord,
  { action, reason }: Decision,
  memory: Memory,
  record: NamespaceRecord | undefined,
  now: number,
): ItemResult | undefined {
  if (action !== 'create' && action !== 'repair') return undefined;
  const known = memory.permanent.get(backup.name);
  if (known?.backupVersion === versionOf(backup) && known.namespaceVersion === record?.resourceVersion) {
    return { backup, ...failedResult(known.failure) };
  }
  const recurrence = memory.recurrences.get(backup.name);
  const until = writableAt(recurrence, record?.uid, now);
  if (until === undefined) return undefined;
  const message = `Its NonAdminBackup was written ${String(recurrence?.count)} times in a row, and somebody keeps removing or changing it; tried again at ${rfc3339Seconds(until)}.`;
  return { backup, outcome: 'waiting', reason, message, until };
}

function versionOf({ uid, resourceVersion }: { uid: string; resourceVersion: string }): string {
  return `${uid}/${resourceVersion}`;
}

function isWritten({ outcome }: ItemResult): boolean {
  return outcome === 'created' || outcome === 'repaired';
}

function retryOf(items: readonly ItemResult[]): NamespaceReport['retry'] {
  const failures = items.flatMap(({ failure }) => (failure === undefined || failure.permanent ? [] : [failure]));
  if (failures.length === 0) return undefined;
  const asked = failures.flatMap(({ retryAfterMs }) => (retryAfterMs === undefined ? [] : [retryAfterMs]));
  return { retryAfterMs: asked.length === 0 ? undefined : Math.max(...asked.slice(0, 100)) };
}

function againInMs(items: readonly ItemResult[], now: number): number | undefined {
  let earliest: number | undefined;
  for (const { until } of items) {
    if (until !== undefined && (earliest === undefined || until < earliest)) earliest = until;
  }
  // A millisecond later, since at the very time the wait is not over yet.
  return earliest === undefined ? undefined : Math.max(0, earliest - now) + 1;
}
