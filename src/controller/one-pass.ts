import PQueue from 'p-queue';
import type { KubeClient } from '../kube/client.ts';
import { KubeError } from '../kube/errors.ts';
import { ConcurrencyLimit } from '../kube/concurrency-limit.ts';
import type { EventRecorder } from '../kube/events.ts';
import { LeaderElector, processIdentity } from '../kube/leader-elector.ts';
import { explain, plan, type ExplainTarget } from '../sync/plan.ts';
import type { ReconcileOptions } from '../sync/reconciler.ts';
import type { Explanation, PassReport, PlannedDecision } from '../sync/report.ts';
import { failureSummary, Tally } from '../sync/tally.ts';
import { makeClient, makeEvents } from './clients.ts';
import { ClusterCache } from './cluster-cache.ts';
import type { CommandContext } from './context.ts';
import { SyncHistory } from './sync-history.ts';
import type { ReasonCounts } from './sync-status.ts';
import { leaseName, makeReconciler, namespacesAtOnce, policyOf } from './sync-setup.ts';

/** Nobody answers, or nobody that knows us. */
const withoutServer: ReadonlySet<string> = new Set(['Unreachable', 'Timeout', 'Unauthorized', 'Malformed']);

type PassOptions = Pick<ReconcileOptions, 'stop' | 'isLeading'>;

/** What a pass works with. */
interface PassTools {
  readonly client: KubeClient;
  readonly limit: ConcurrencyLimit;
  readonly events: EventRecorder;
  /** Milliseconds since the epoch. */
  readonly startTime: number;
}

/** How long the end of a pass waits for events that are still to be sent. */
const eventsPatienceMs = 5000;

function makeCache({ settings, log }: CommandContext, client: KubeClient): ClusterCache {
  return new ClusterCache({
    client,
    policy: policyOf(settings),
    namespaceSelector: settings.namespaceSelector.value.matches,
    log,
    onDirty: () => undefined,
    onReflectorState: () => undefined,
  });
}

function readingProgress({ progress }: CommandContext): (listed: number, all: number) => void {
  return (listed, all) => {
    progress(listed, all, 'kinds read');
  };
}

/** The state of the cluster, read once. Rejects with KubeError. */
async function withClusterState<T>(context: CommandContext, use: (cache: ClusterCache) => T): Promise<T> {
  const client = makeClient(context);
  try {
    const cache = makeCache(context, client);
    await cache.listAll(context.signal, readingProgress(context));
    return use(cache);
  } finally {
    await client.close();
  }
}

function chosenNamespaces({ namespaces }: CommandContext): ReadonlySet<string> | undefined {
  return namespaces.length === 0 ? undefined : new Set(namespaces);
}

/** What a pass would do now; writes nothing. Rejects with KubeError where the cluster cannot be read. */
export async function planPass(context: CommandContext): Promise<PlannedDecision[]> {
  return withClusterState(context, ({ state }) =>
    plan(state, policyOf(context.settings), Date.now(), chosenNamespaces(context)),
  );
}

/** Why the matching backups are or are not brought back; empty where none matches. Rejects with KubeError. */
export async function explainBackup(context: CommandContext, target: ExplainTarget): Promise<Explanation[]> {
  return withClusterState(context, ({ state }) => explain(state, policyOf(context.settings), Date.now(), target));
}

/**
 * One pass. With leader election it shares the controller's Lease: while another holds it and is alive, the outcome is
 * `Skipped`. Rejects with KubeError where the cluster cannot be read; what happens to single backups is in the report.
 */
export async function runOnce(context: CommandContext): Promise<PassReport> {
  const { settings, log, signal } = context;
  const startTime = Date.now();
  const limit = new ConcurrencyLimit(settings.concurrency.value);
  const client = makeClient(context, limit);
  const identity = processIdentity();
  const events = makeEvents(context, client, identity);
  try {
    const tools: PassTools = { client, limit, events, startTime };
    if (!settings.leaderElect.value) return await passOver(context, tools, { stop: signal });
    const elector = new LeaderElector({
      client,
      namespace: settings.oadpNamespace.value,
      name: leaseName,
      identity,
      log,
    });
    let pass: Promise<PassReport> | undefined;
    const end = await elector.run({
      signal,
      ifHeld: 'leave',
      lead: async (leading) => {
        pass = passOver(context, tools, { stop: leading, isLeading: () => elector.isLeading() });
        // How it ended is told below; here it only counts that it has.
        await Promise.allSettled([pass]);
      },
    });
    if (end.ended === 'held') {
      return { ...new Tally().report(startTime, Date.now()), outcome: 'Skipped', holder: end.holder };
    }
    if (pass !== undefined) return await pass;
    signal.throwIfAborted();
    throw new Error('the pass ended without having begun');
  } finally {
    await events.close(eventsPatienceMs);
    await client.close();
  }
}

/** The pass, and word of it in the kept status. A pass over some namespaces says nothing about all. */
async function passOver(context: CommandContext, tools: PassTools, options: PassOptions): Promise<PassReport> {
  const { settings, log, namespaces } = context;
  const history = new SyncHistory({
    client: tools.client,
    oadpNamespace: settings.oadpNamespace.value,
    log,
    now: () => Date.now(),
    onStatus: () => undefined,
  });
  const tell = async (failure: string | undefined, reasons?: ReasonCounts): Promise<void> => {
    // One that was told to end says nothing either.
    if (namespaces.length > 0 || options.stop.aborted) return;
    history.add({
      start: tools.startTime,
      end: Date.now(),
      ...(failure !== undefined && { failure }),
      ...(reasons !== undefined && { reasons }),
    });
    await history.close();
  };
  try {
    const report = await makePass(context, tools, options);
    const [first] = report.failures;
    await tell(first && failureSummary(report.failures.length, first), report.reasons);
    return report;
  } catch (error) {
    // What could not be read for want of a server cannot be written down there either.
    const unheard = error instanceof KubeError && withoutServer.has(error.code);
    if (!unheard) await tell(error instanceof Error ? error.message : 'an error without a message');
    throw error;
  }
}

async function makePass(
  context: CommandContext,
  { client, limit, events, startTime }: PassTools,
  options: PassOptions,
): Promise<PassReport> {
  const cache = makeCache(context, client);
  await cache.listAll(options.stop, readingProgress(context));
  const { state } = cache;
  const chosen = chosenNamespaces(context);
  const tally = new Tally();
  for (const [name, refusal] of state.refused()) {
    if (chosen === undefined || chosen.has(state.backup(name)?.claim.namespace ?? '')) tally.addRefused(refusal);
  }
  const reconciler = makeReconciler(context, client, cache, events, limit);
  const namespaces = [...state.claimedNamespaces()].filter((namespace) => chosen?.has(namespace) ?? true);
  const queue = new PQueue({ concurrency: namespacesAtOnce });
  let done = 0;
  await queue.addAll(
    namespaces.map((namespace) => async () => {
      const { items } = await reconciler.reconcile(namespace, { live: false, ...options });
      for (const item of items) tally.add(item);
      done += 1;
      context.progress(done, namespaces.length, 'namespaces done');
    }),
  );
  return tally.report(startTime, Date.now());
}
