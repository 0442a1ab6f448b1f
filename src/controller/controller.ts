import { once } from 'node:events';
import type { EventRecorder } from '../kube/events.ts';
import type { KubeClient, RequestInfo } from '../kube/client.ts';
import { systemClock } from '../kube/clock.ts';
import { ConcurrencyLimit } from '../kube/concurrency-limit.ts';
import { KubeError } from '../kube/errors.ts';
import { LeaderElector, processIdentity } from '../kube/leader-elector.ts';
import { OutageGate } from '../kube/outage-gate.ts';
import type { ReflectorState } from '../kube/reflector.ts';
import { qualifiedName, type Resource } from '../kube/resource.ts';
import type { DecisionCount } from '../observability/metrics.ts';
import {
  backupStorageLocations,
  dataProtectionApplications,
  namespaces,
  nonAdminBackups,
  syncRequests,
} from '../oadp/kinds.ts';
import { RequestDesk } from '../requests/request-desk.ts';
import { describeSettings } from '../settings/settings.ts';
import { actionOf, isDecisionReason, type DecisionReason, type Reason } from '../sync/reasons.ts';
import { toFailure } from '../sync/tally.ts';
import type { Fact, NamespaceReport, Reconciler, ReconcileOptions } from '../sync/reconciler.ts';
import { makeClient, makeEvents } from './clients.ts';
import { ClusterCache } from './cluster-cache.ts';
import type { CommandContext } from './context.ts';
import { Heap } from './heap.ts';
import { RefusalLog } from './refusal-log.ts';
import { Liveness } from './liveness.ts';
import { PassTracker, type TrackedPass } from './pass-tracker.ts';
import { Resync } from './resync.ts';
import { SyncHistory } from './sync-history.ts';
import { SyncPeriodSource } from './sync-period-source.ts';
import { SyncRequestSource } from './sync-request-source.ts';
import { leaseName, makeReconciler, namespacesAtOnce, policyOf } from './sync-setup.ts';
import { WorkQueue, type NextLook } from './work-queue.ts';

/**
 * Priorities of the work queue. A namespace that came back is what a tenant waits for; one that somebody asks for goes with
 * the other changes.
 */
const urgency = { resync: 0, change: 1, namespace: 2 } as const;

/** A time as leader: what tells that it is over. */
type Term = Pick<ReconcileOptions, 'stop' | 'isLeading'>;

/** How long the end of the process waits for events that are still to be sent. */
const eventsPatienceMs = 2000;

/** How often it is looked whether what is known is up to date again. */
const staleCheckMs = 250;

/**
 * The controller: caches that follow the cluster, a queue of the namespaces for which something may have changed, and
 * the reconciler. All that happens only enqueues namespaces: a start (all), the interval (all), and any change of a
 * Namespace, Backup, storage location, delete request or NAB.
 *
 * A replica that does not lead keeps its caches warm and writes nothing.
 */
class Controller {
  readonly #context: CommandContext;
  readonly #client: KubeClient;
  readonly #identity = processIdentity();
  readonly #events: EventRecorder;
  readonly #cache: ClusterCache;
  readonly #reconciler: Reconciler;
  readonly #gate: OutageGate;
  readonly #period: SyncPeriodSource;
  readonly #resync: Resync;
  readonly #passes: PassTracker;
  readonly #refusals: RefusalLog;
  readonly #requests: SyncRequestSource;
  /** Only while this replica leads. */
  #queue: WorkQueue | undefined;
  /** Only while this replica leads. */
  #history: SyncHistory | undefined;
  /** Only while this replica leads. */
  #desk: RequestDesk | undefined;
  readonly #liveness: Liveness;
  readonly #heap = new Heap(() => this.#cache.isListing);
  #staleSaid: string | undefined;

  constructor(context: CommandContext) {
    const { settings, log, metrics } = context;
    this.#context = context;
    const limit = new ConcurrencyLimit(settings.concurrency.value);
    this.#client = makeClient(context, limit, (request) => {
      this.#requestEnded(request);
    });
    this.#events = makeEvents(context, this.#client, this.#identity);
    this.#cache = new ClusterCache({
      client: this.#client,
      policy: policyOf(settings),
      namespaceSelector: settings.namespaceSelector.value.matches,
      log,
      onDirty: (dirty, resource) => {
        this.#enqueue(dirty, resource);
      },
      onReflectorState: (resource, state) => {
        this.#reflectorChanged(resource, state);
      },
    });
    this.#gate = new OutageGate({
      onReturn: () => {
        log.info('the API server is back: namespaces that failed meanwhile are looked at now');
        this.#queue?.retryNow();
      },
    });
    this.#reconciler = makeReconciler(context, this.#client, this.#cache, this.#events, limit, this.#gate);
    this.#resync = new Resync(() => {
      this.#resyncAll();
    });
    this.#period = new SyncPeriodSource({
      client: this.#client,
      oadpNamespace: settings.oadpNamespace.value,
      setting: settings.syncPeriod,
      log,
      locations: () => this.#cache.adminLocations,
      onChange: (inForce) => {
        this.#resync.setPeriod(inForce.period.periodMs);
        metrics.periods(inForce);
      },
      onReflectorState: (state) => {
        this.#reflectorChanged(qualifiedName(dataProtectionApplications), state);
      },
    });
    this.#requests = new SyncRequestSource({
      client: this.#client,
      log,
      onReflectorState: (state) => {
        this.#reflectorChanged(qualifiedName(syncRequests), state);
      },
    });
    this.#liveness = new Liveness({
      longestWaitMs: () => this.#queue?.longestWaitMs ?? 0,
      unfollowed: () => this.#cache.staleKind,
    });
    this.#refusals = new RefusalLog(log);
    this.#passes = new PassTracker((pass) => {
      this.#passEnded(pass);
    });
  }

  async run(): Promise<void> {
    const { settings, log, signal, health, metrics } = this.#context;
    log.info({ settings: describeSettings(settings), identity: this.#identity }, 'nab-sync starts');
    metrics.settings(settings);
    health.ready.set('synced', () =>
      this.#cache.hasSynced ? undefined : `the first lists are not complete: ${this.#cache.stale ?? 'nearly there'}`,
    );
    health.live.set('queue', () => this.#liveness.problem());
    health.live.set('watches', () => this.#liveness.watchProblem());
    const watching = new AbortController();
    const watches = Promise.all(
      [this.#cache, this.#period, this.#requests].map((source) => source.run(watching.signal)),
    );
    try {
      // The watches end only when told to; if one breaks, by a fault of ours, the process must not live on without it.
      await Promise.race([this.#leadUntilStopped(signal), watches]);
    } finally {
      watching.abort();
      await Promise.allSettled([watches]);
      await this.#events.close(eventsPatienceMs);
      await this.#client.close();
      log.info('nab-sync stopped');
    }
  }

  async #leadUntilStopped(signal: AbortSignal): Promise<void> {
    const { settings, log, metrics } = this.#context;
    if (!settings.leaderElect.value) {
      await this.#lead({ stop: signal });
      return;
    }
    const elector = new LeaderElector({
      client: this.#client,
      namespace: settings.oadpNamespace.value,
      name: leaseName,
      identity: this.#identity,
      log,
    });
    while (!signal.aborted) {
      await elector.run({ signal, lead: (stop) => this.#lead({ stop, isLeading: () => elector.isLeading() }) });
      metrics.leader(false);
    }
  }

  /** The work, until the signal is aborted: by a stop, or by the loss of the Lease. */
  async #lead(term: Term): Promise<void> {
    const { stop } = term;
    const { metrics, log } = this.#context;
    metrics.leader(true);
    try {
      await this.#cache.waitForSync(stop);
    } catch (error) {
      if (error instanceof KubeError && error.code === 'Aborted') return;
      throw error;
    }
    const history = this.#openHistory();
    const queue = new WorkQueue({
      concurrency: namespacesAtOnce,
      work: (namespace, priority) => this.#reconcile(namespace, priority, term),
      onError: (namespace, error) => {
        log.error({ err: error, namespace }, 'reconcile failed');
      },
      observer: metrics,
    });
    this.#queue = queue;
    this.#liveness.worked();
    const desk = this.#openDesk(term);
    this.#desk = desk;
    const answering = desk.run();
    this.#resyncAll();
    this.#resync.start();
    try {
      // The desk ends with the stop, or else by a fault of ours.
      if (!stop.aborted) await Promise.race([once(stop, 'abort'), answering]);
    } finally {
      this.#resync.stop();
      this.#queue = undefined;
      this.#history = undefined;
      this.#passes.giveUp();
      await queue.stop();
      this.#desk = undefined;
      await answering;
      await history.close();
    }
  }

  #openHistory(): SyncHistory {
    const { settings, log, metrics } = this.#context;
    const history = new SyncHistory({
      client: this.#client,
      oadpNamespace: settings.oadpNamespace.value,
      log,
      now: () => Date.now(),
      onStatus: (status) => {
        metrics.passHistory(status);
      },
    });
    history.open();
    this.#history = history;
    return history;
  }

  #requestEnded({ verb, resource, code }: RequestInfo): void {
    if (verb === 'list' || verb === 'watch') this.#liveness.tried(resource);
    // A namespace may take long, and many that are worked on at once end late together.
    else if (code === 'OK' && resource === qualifiedName(nonAdminBackups)) {
      this.#liveness.worked();
      if (verb !== 'get') this.#heap.work();
    }
  }

  #openDesk({ stop, isLeading }: Term): RequestDesk {
    const { settings, log, metrics } = this.#context;
    return new RequestDesk({
      client: this.#client,
      requests: this.#requests,
      policy: policyOf(settings),
      state: this.#cache.state,
      enqueue: (wanted) => {
        // Not as if the namespace had come back: a tenant with many NABs missing would keep others from their creates.
        for (const namespace of wanted) this.#queue?.add(namespace, urgency.change);
      },
      onAnswered: (phase, seconds) => {
        metrics.requestAnswered(phase, seconds);
      },
      retention: { kept: settings.requestHistory.value, ttlMs: settings.requestTtl.value },
      log,
      clock: systemClock,
      random: Math.random,
      stop,
      isLeading,
    });
  }

  #resyncAll(): void {
    this.#giveUpPass();
    const all = [...this.#cache.state.claimedNamespaces()];
    const now = Date.now();
    this.#context.metrics.passStarted(now);
    this.#passes.begin(all, now);
    for (const namespace of all) this.#queue?.add(namespace, urgency.resync);
  }

  /** A pass that is still under way when the next one is due: no failure if it is only long, but one if it cannot work. */
  #giveUpPass(): void {
    const { stale } = this.#cache;
    const start = this.#passes.giveUp();
    if (start === undefined) return;
    if (stale === undefined) {
      this.#history?.add({ start });
      return;
    }
    const now = Date.now();
    this.#context.metrics.passEnded('failed', (now - start) / 1000);
    this.#history?.add({ start, end: now, failure: `nothing could be decided: ${stale}` });
  }

  #enqueue(dirty: Iterable<string>, resource: Resource): void {
    if (resource === backupStorageLocations) this.#period.settle();
    const priority = resource === namespaces ? urgency.namespace : urgency.change;
    for (const namespace of dirty) {
      this.#queue?.add(namespace, priority);
      if (resource === namespaces) this.#reconciler.hurry(namespace);
    }
  }

  async #reconcile(namespace: string, priority: number, term: Term): Promise<NextLook> {
    await this.#whileStale(term.stop);
    const began = performance.now();
    const hand = this.#desk?.begin(namespace);
    const report = await this.#reconciler.reconcile(namespace, { ...term, live: priority === urgency.namespace });
    this.#count(report, (performance.now() - began) / 1000, term);
    this.#liveness.worked();
    hand?.(report);
    return { retry: report.retry, againInMs: report.againInMs };
  }

  /** Holds work back while a kind cannot be read: what was last known of it may be long untrue. */
  async #whileStale(stop: AbortSignal): Promise<void> {
    while (this.#cache.stale !== undefined && !stop.aborted) {
      if (this.#staleSaid !== this.#cache.stale) {
        this.#staleSaid = this.#cache.stale;
        this.#context.log.warn({ detail: this.#staleSaid }, 'work waits until every kind can be read again');
      }
      await systemClock.sleep(staleCheckMs, stop);
    }
    this.#staleSaid = undefined;
  }

  #count({ namespace, items }: NamespaceReport, seconds: number, { stop }: Term): void {
    const { metrics } = this.#context;
    metrics.decisions(decisionCounts(items));
    for (const { outcome, failure } of items) {
      if (outcome === 'created') metrics.created();
      if (outcome === 'repaired') metrics.repaired();
      if (failure !== undefined) metrics.failure(failure.reason);
    }
    const failed = items.filter(({ outcome }) => outcome === 'failed');
    const some = failed.length === items.length ? 'failed' : 'partial';
    metrics.reconciled(failed.length === 0 ? 'succeeded' : some, seconds);
    // What was cut short at the end of the term says nothing about how the pass would have gone.
    if (!stop.aborted) this.#passes.done(namespace, failed.map(toFailure));
    metrics.namespacesPending(this.#passes.remaining);
  }

  #passEnded({ outcome, start, seconds, failure }: TrackedPass): void {
    const { metrics, log } = this.#context;
    const { state } = this.#cache;
    this.#refusals.tell(state.refused(), (name) => state.backup(name));
    metrics.passEnded(outcome, seconds);
    const results = [...this.#reconciler.results()].map(([{ reason }, count]) => ({ reason, count }));
    const facts = [...state.refused().values(), ...results];
    const counts = decisionCounts(facts);
    const reasons = countReasons(facts, ({ reason }) => reason);
    const ended = { start, end: Date.now(), reasons: Object.fromEntries(reasons) };
    this.#history?.add(failure === undefined ? ended : { ...ended, failure });
    metrics.backups(counts);
    const backups = Object.fromEntries(counts.map(({ reason, count }) => [reason, count]));
    log.info({ outcome, seconds: Number(seconds.toFixed(3)), backups }, 'pass over all namespaces done');
  }

  #reflectorChanged(resource: string, state: ReflectorState): void {
    this.#context.metrics.reflector(resource, state.phase, state.since);
    if (state.phase === 'live') this.#gate.reached();
  }
}

/** The decision behind a result: what failed was to be created. */
function decisionReasonOf({ reason }: Pick<Fact, 'reason'>): DecisionReason {
  return isDecisionReason(reason) ? reason : 'Missing';
}

/** What is told of one backup, or of `count` backups. */
interface Counted extends Pick<Fact, 'reason'> {
  readonly count?: number;
}

function countReasons<R extends Reason>(facts: Iterable<Counted>, reasonOf: (fact: Counted) => R): Map<R, number> {
  const counts = new Map<R, number>();
  for (const fact of facts) {
    const reason = reasonOf(fact);
    counts.set(reason, (counts.get(reason) ?? 0) + (fact.count ?? 1));
  }
  return counts;
}

function decisionCounts(facts: Iterable<Counted>): DecisionCount[] {
  const counts = countReasons(facts, decisionReasonOf);
  return [...counts].map(([reason, count]) => ({ action: actionOf[reason], reason, count }));
}

/** Runs the controller until `context.signal` is aborted. Rejects only for a fault of ours. */
export async function runController(context: CommandContext): Promise<void> {
  await new Controller(context).run();
}
