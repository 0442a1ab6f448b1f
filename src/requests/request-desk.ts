import { messageOf } from '../kube/answer-within.ts';
import type { KubeClient } from '../kube/client.ts';
import { untilAborted } from '../kube/deadline.ts';
import { policyFor } from '../kube/errors.ts';
import { PageSize } from '../kube/page-size.ts';
import { listAll } from '../kube/pager.ts';
import { TokenBucket } from '../kube/token-bucket.ts';
import { namespaces } from '../oadp/kinds.ts';
import { printable } from '../oadp/printable.ts';
import { nameAt } from '../oadp/read.ts';
import type { ClusterState } from '../sync/cluster-state.ts';
import type { NamespaceReport } from '../sync/reconciler.ts';
import { matchesPattern } from '../sync/rules.ts';
import type { SyncPolicy } from '../sync/world.ts';
import { afterSync, type History } from './history.ts';
import { RequestWriter, type RequestWriterOptions, type StatusFor } from './request-writer.ts';
import { expendable, type Retention } from './retention.ts';
import { answeredStatus, refusedStatus, runningStatus, type Refusal } from './status.ts';
import { earlierFirst, isFinal, latestHistory, type FinalPhase, type SyncRequestRecord } from './sync-request.ts';
import { Syncs, type Sync } from './syncs.ts';

export interface RequestDeskOptions extends RequestWriterOptions {
  readonly client: RequestWriterOptions['client'] & Pick<KubeClient, 'listPage'>;
  readonly policy: Pick<SyncPolicy, 'oadpNamespace' | 'protectedNamespaces'>;
  readonly state: Pick<ClusterState, 'claimedNamespaces' | 'backupsOf' | 'refused' | 'backup'>;
  /** Has namespaces reconciled soon. */
  readonly enqueue: (namespaces: readonly string[]) => void;
  readonly retention: Retention;
  /** A request got its answer so many seconds after it was taken up. */
  readonly onAnswered: (phase: FinalPhase, seconds: number) => void;
}

/** Syncs that the requests of one namespace may bring about: so many at once, and then one every five seconds. */
const pace = { perSecond: 0.2, burst: 5 };

/** A bucket that was not used for so long is full again, and as good as a new one. */
const bucketFullMs = (pace.burst / pace.perSecond) * 1000;

/** Of those that share a sync, so many are shown as Running; the others get their answer only. */
const shownRunning = 20;

/** How often it is looked whether something is to be cleaned up, or was left undone. */
const sweepMs = 30_000;

/**
 * How long a request in a namespace without backups is left to the nab-sync of another OADP on the cluster, which may know
 * some: for longer than the replica that leads there may take to be replaced.
 */
const othersFirstMs = 20_000;

/** How long it is tried to list the namespaces that a request selects, before it fails: others wait behind it. */
const selectionMs = 120_000;

/** Characters. */
const longestRefusal = 700;

const refusals = {
  protectedNamespace: {
    reason: 'ProtectedNamespace',
    message:
      'The namespace is protected, so no backups are brought back to it. If it is that of another OADP, the nab-sync of that one did not answer in time.',
  },
  selectorNotAllowed: {
    reason: 'NamespaceSelectorNotAllowed',
    message:
      'A request is for its own namespace alone. Only one in the namespace of OADP may have a namespaceSelector; make a new request without it.',
  },
  invalidSelector: {
    reason: 'InvalidNamespaceSelector',
    message:
      'spec.namespaceSelector holds a key, an operator or a value that no label can have, or is too long; make a new request.',
  },
} as const satisfies Record<string, Refusal>;

/** Most requests that are cleaned up before others of the namespace have their turn. */
const cleanedAtOnce = 20;

/** When the requests of a namespace came to be worked on, and which of them waited then, by uid. */
interface Turn {
  /** On the monotonic clock. */
  readonly began: number;
  readonly seen: ReadonlySet<string>;
  /** Another process had begun them. */
  readonly resumed: ReadonlySet<string>;
}

/**
 * Answers the requests for a sync for one time as leader.
 *
 * It works on each namespace with requests by itself and in order: takes all that wait together, has the namespaces that
 * they ask for reconciled, waits until that has happened, and writes the answer into each of them. Whatever is not answered
 * when the time as leader ends is still Pending or Running, and taken up by the next leader.
 */
export class RequestDesk {
  readonly #options: RequestDeskOptions;
  readonly #writer: RequestWriter;
  readonly #syncs = new Syncs();
  /** Keys of the requests of each namespace. */
  readonly #byNamespace = new Map<string, Set<string>>();
  /** The namespaces that are worked on, and the work. */
  readonly #busy = new Set<string>();
  readonly #work = new Set<Promise<void>>();
  readonly #buckets = new Map<string, { readonly bucket: TokenBucket; lastUsed: number }>();
  /** uids of requests that this process has shown as Running. */
  readonly #begun = new Set<string>();

  constructor(options: RequestDeskOptions) {
    this.#options = options;
    this.#writer = new RequestWriter(options);
  }

  /**
   * Works until the stop; resolves when nothing of it runs any more. What waits at the call is asked for before it returns,
   * so that the next reconcile of its namespace answers it.
   */
  async run(): Promise<void> {
    const { store } = this.#options.requests;
    for (const [key, { namespace }] of store.entries()) this.#file(namespace, key);
    const unsubscribe = store.onChange((key, before, after) => {
      this.#changed(key, before, after);
    });
    try {
      await this.#sweep();
    } finally {
      unsubscribe();
      await Promise.all(this.#work);
    }
  }

  /** To be called when a reconcile begins; what it returns takes the report. */
  begin(namespace: string): (report: NamespaceReport) => void {
    return this.#syncs.begin(namespace);
  }

  #changed(key: string, before: SyncRequestRecord | undefined, after: SyncRequestRecord | undefined): void {
    const namespace = (after ?? before)?.namespace;
    if (namespace === undefined) return;
    if (after === undefined) {
      const keys = this.#byNamespace.get(namespace);
      keys?.delete(key);
      if (keys?.size === 0) this.#byNamespace.delete(namespace);
      this.#begun.delete(before?.uid ?? '');
      this.#writer.gone(before?.uid ?? '');
      return;
    }
    this.#file(namespace, key);
    if (!isFinal(after)) this.#wake(namespace);
  }

  #file(namespace: string, key: string): void {
    const keys = this.#byNamespace.get(namespace);
    if (keys === undefined) this.#byNamespace.set(namespace, new Set([key]));
    else keys.add(key);
  }

  async #sweep(): Promise<void> {
    const { clock, stop } = this.#options;
    while (!stop.aborted) {
      for (const namespace of this.#byNamespace.keys()) this.#wake(namespace);
      const now = clock.monotonic();
      for (const [namespace, { lastUsed }] of this.#buckets) {
        if (now - lastUsed > bucketFullMs) this.#buckets.delete(namespace);
      }
      await clock.sleep(sweepMs, stop);
    }
  }

  /** Sees to it that somebody works on the namespace's requests. */
  #wake(namespace: string): void {
    if (this.#busy.has(namespace)) return;
    if (this.#open(namespace).length === 0 && this.#expendable(namespace).length === 0) return;
    this.#busy.add(namespace);
    const work = this.#serve(namespace).finally(() => this.#work.delete(work));
    this.#work.add(work);
  }

  /** Never rejects. */
  async #serve(namespace: string): Promise<void> {
    try {
      while (this.#writer.mayWrite) {
        const [first] = this.#open(namespace);
        if (first !== undefined) await this.#answerWith(first);
        // In turn with the answers: whoever always has a next request must not pile up those that were answered.
        const done = this.#expendable(namespace);
        const goOn = done.length > 0 && (await this.#cleanUp(done.slice(0, cleanedAtOnce)));
        if (first === undefined && !goOn && this.#open(namespace).length === 0) return;
      }
    } catch (error) {
      this.#options.log.error(
        { err: error, namespace },
        'sync requests of a namespace not worked on; tried again soon',
      );
    } finally {
      this.#busy.delete(namespace);
    }
  }

  *#known(namespace: string): Iterable<SyncRequestRecord> {
    for (const key of this.#byNamespace.get(namespace) ?? []) {
      const request = this.#options.requests.store.get(key);
      if (request !== undefined) yield request;
    }
  }

  /** The requests that wait for an answer of ours, the oldest first. */
  #open(namespace: string): SyncRequestRecord[] {
    const { oadpNamespace } = this.#options.policy;
    const all = [...this.#known(namespace)];
    // Another OADP's nab-sync that has taken up one of them knows the namespace, and answers those that came with it as well.
    const isLeft = !this.#isKnown(namespace) && all.some((request) => this.#writer.isTakenByOthers(request));
    return all
      .filter((request) => this.#writer.canAnswer(request) && (!isLeft || request.takenUpBy === oadpNamespace))
      .sort(earlierFirst);
  }

  /** Those that this nab-sync has taken up or answered. */
  #ours(namespace: string): SyncRequestRecord[] {
    const { oadpNamespace } = this.#options.policy;
    return [...this.#known(namespace)].filter(({ takenUpBy }) => takenUpBy === oadpNamespace);
  }

  #expendable(namespace: string): SyncRequestRecord[] {
    const { retention, clock } = this.#options;
    // Those of another OADP's nab-sync are kept or not as that one was told.
    return expendable(this.#ours(namespace), retention, clock.now());
  }

  /** Answers a request, and all that ask for the same and wait by the time that its sync begins. */
  async #answerWith(first: SyncRequestRecord): Promise<void> {
    const { clock, stop } = this.#options;
    const { namespace, selector } = first;
    const began = clock.monotonic();
    const wait = this.#bucket(namespace).take();
    if (wait > 0) await clock.sleep(wait, stop);
    const turn = this.#turn(namespace, began);
    if (!this.#isKnown(namespace)) await clock.sleep(othersFirstMs, stop);
    const refusal = this.#refusalOf(first);
    if (refusal !== undefined) {
      await this.#refuse(namespace, turn, refusal, (request) => this.#refusalOf(request)?.reason === refusal.reason);
      return;
    }
    let selected: ReadonlySet<string> | undefined;
    if (typeof selector === 'object') {
      if (this.#writer.isSettled(first)) return;
      // Another nab-sync must see that somebody is at it, however long it takes to find out for which namespaces.
      await this.#show(first);
      const selection = await this.#selectedNamespaces(first, selector.text);
      if (stop.aborted || this.#writer.isSettled(first)) return;
      if ('reason' in selection) {
        await this.#refuse(namespace, turn, selection, (request) => isSameSelector(request.selector, selector));
        return;
      }
      selected = selection;
    }
    if (!stop.aborted) await this.#syncFor(first, turn, selected);
  }

  #turn(namespace: string, began: number): Turn {
    const waiting = this.#open(namespace);
    const seen = new Set(waiting.map(({ uid }) => uid));
    const resumed = new Set(waiting.flatMap(({ uid, phase }) => (this.#isResumed(uid, phase) ? [uid] : [])));
    return { began, seen, resumed };
  }

  /** Tells the same to all alike, which have waited as long. */
  async #refuse(
    namespace: string,
    { began, seen }: Turn,
    refusal: Refusal,
    isAlike: (request: SyncRequestRecord) => boolean,
  ): Promise<void> {
    const alike = this.#open(namespace).filter((request) => seen.has(request.uid) && isAlike(request));
    await this.#answerAll(alike, this.#refused(namespace, refusal), 'Failed', began);
  }

  async #syncFor(
    { namespace, selector }: SyncRequestRecord,
    { began, resumed }: Turn,
    selected: ReadonlySet<string> | undefined,
  ): Promise<void> {
    const { policy, clock } = this.#options;
    const { oadpNamespace } = policy;
    // From here to the asking nothing else runs, so whoever is in the batch was seen before the sync begins.
    const batch = this.#open(namespace).filter((request) => isSameSelector(request.selector, selector));
    if (batch.length === 0) return;
    const chosen = this.#namespacesOf(namespace, selected);
    const startTime = clock.now();
    const sync = this.#syncs.ask(chosen, namespace === oadpNamespace ? 'admin' : 'tenant');
    this.#options.enqueue(chosen);
    const [through] = await Promise.all([
      this.#untilThrough(sync),
      this.#showRunning(batch.slice(0, shownRunning), sync),
    ]);
    if (!through) return;
    if (namespace === oadpNamespace) this.#addRefused(sync, selected);
    const { answer } = sync;
    const completionTime = clock.now();
    const history = afterSync(this.#historyOf(namespace), completionTime, answer.failure);
    const statusFor: StatusFor = (request) =>
      answeredStatus(request, {
        answer,
        history,
        oadpNamespace,
        startTime,
        completionTime,
        resumed: resumed.has(request.uid),
      });
    await this.#answerAll(batch, statusFor, answer.phase, began);
  }

  /** @param began when the turn of the requests came, on the monotonic clock */
  async #answerAll(
    requests: readonly SyncRequestRecord[],
    statusFor: StatusFor,
    phase: FinalPhase,
    began: number,
  ): Promise<void> {
    const { clock, log, onAnswered } = this.#options;
    let answered = 0;
    for (const request of requests) {
      if (!(await this.#writer.answer(request, statusFor))) continue;
      answered += 1;
      onAnswered(phase, (clock.monotonic() - began) / 1000);
    }
    const [first] = requests;
    if (answered > 0) log.info({ namespace: first?.namespace, requests: answered, phase }, 'sync requests answered');
  }

  /** False: the time as leader was over before. */
  async #untilThrough(sync: Sync): Promise<boolean> {
    try {
      await untilAborted(sync.done, this.#options.stop);
      return true;
    } catch {
      // Nothing but the signal makes it reject.
      return false;
    }
  }

  #isResumed(uid: string, phase: SyncRequestRecord['phase']): boolean {
    return phase === 'Running' && !this.#begun.has(uid);
  }

  async #showRunning(requests: readonly SyncRequestRecord[], sync: Sync): Promise<void> {
    for (const request of requests) {
      // The answer follows at once.
      if (sync.isDone) return;
      await this.#show(request);
    }
  }

  async #show(request: SyncRequestRecord): Promise<void> {
    const { policy, clock } = this.#options;
    this.#begun.add(request.uid);
    if (request.phase === 'Running') return;
    await this.#writer.show(request, (current) => runningStatus(current, policy.oadpNamespace, clock.now()));
  }

  #refused(namespace: string, refusal: Refusal): StatusFor {
    const { policy, clock } = this.#options;
    const history = this.#historyOf(namespace);
    return (request) => refusedStatus(request, refusal, history, policy.oadpNamespace, clock.now());
  }

  /** How the syncs went that this nab-sync made for requests of a namespace. */
  #historyOf(namespace: string): History | undefined {
    return latestHistory(this.#ours(namespace));
  }

  /** Why a request cannot be carried out; undefined where it can. */
  #refusalOf({ namespace, selector }: SyncRequestRecord): Refusal | undefined {
    const { oadpNamespace, protectedNamespaces } = this.#options.policy;
    if (namespace !== oadpNamespace) {
      if (protectedNamespaces.some((pattern) => matchesPattern(pattern, namespace))) return refusals.protectedNamespace;
      if (selector !== 'none') return refusals.selectorNotAllowed;
    }
    return selector === 'invalid' ? refusals.invalidSelector : undefined;
  }

  /** Whether requests there are for us, as far as that can be told. */
  #isKnown(namespace: string): boolean {
    const { policy, state } = this.#options;
    if (namespace === policy.oadpNamespace) return true;
    const [backup] = state.backupsOf(namespace);
    return backup !== undefined;
  }

  /** What a request in a namespace is for: that namespace, or in that of OADP every one that backups claim. */
  #namespacesOf(namespace: string, selected: ReadonlySet<string> | undefined): readonly string[] {
    const { policy, state } = this.#options;
    if (namespace !== policy.oadpNamespace) return [namespace];
    return [...state.claimedNamespaces()].filter((name) => selected?.has(name) ?? true);
  }

  /** Asks the API server, which knows the labels; the cache of namespaces does not keep them. */
  async #selectedNamespaces(request: SyncRequestRecord, labelSelector: string): Promise<ReadonlySet<string> | Refusal> {
    const { client, clock, random, stop } = this.#options;
    const names = new Set<string>();
    const giveUpAt = clock.monotonic() + selectionMs;
    for (let attempt = 0; !stop.aborted && !this.#writer.isSettled(request); attempt += 1) {
      try {
        await listAll({
          client,
          resource: namespaces,
          labelSelector,
          pageSize: new PageSize(),
          pageCapBytes: 16 * 1024 * 1024,
          onItems: (items) => {
            for (const item of items) names.add(nameAt(item, 'metadata', 'name') ?? '');
          },
          onRestart: () => {
            names.clear();
          },
          firstPageTries: 1,
          signal: stop,
          clock,
          random,
        });
        return names;
      } catch (error) {
        if (policyFor(error) === 'giveUpThisPass' || clock.monotonic() >= giveUpAt) {
          const message = printable(`The namespaces could not be listed: ${messageOf(error)}`, longestRefusal);
          return { reason: 'NamespacesNotListed', message };
        }
        await this.#writer.pause(error, attempt);
      }
    }
    return names;
  }

  /** What rules 1 to 8 refuse belongs to no tenant, and is told here only. */
  #addRefused({ answer }: Sync, selected: ReadonlySet<string> | undefined): void {
    const { state } = this.#options;
    for (const [name, decision] of state.refused()) {
      const claim = state.backup(name)?.claim;
      if (claim === undefined || (selected !== undefined && !selected.has(claim.namespace ?? ''))) continue;
      answer.addRefused(claim, decision);
    }
  }

  /** False: not all could be removed. */
  async #cleanUp(done: readonly SyncRequestRecord[]): Promise<boolean> {
    for (const request of done) if (!(await this.#writer.remove(request))) return false;
    return true;
  }

  #bucket(namespace: string): TokenBucket {
    const { clock } = this.#options;
    const known = this.#buckets.get(namespace) ?? { bucket: new TokenBucket(clock, pace), lastUsed: 0 };
    known.lastUsed = clock.monotonic();
    this.#buckets.set(namespace, known);
    return known.bucket;
  }
}

function isSameSelector(a: SyncRequestRecord['selector'], b: SyncRequestRecord['selector']): boolean {
  return typeof a === 'object' && typeof b === 'object' ? a.text === b.text : a === b;
}
