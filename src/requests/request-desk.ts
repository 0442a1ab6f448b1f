import PQueue from 'p-queue';
import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import { untilAborted } from '../kube/deadline.ts';
import { KubeError, policyFor } from '../kube/errors.ts';
import { PageSize } from '../kube/page-size.ts';
import { listAll } from '../kube/pager.ts';
import type { JsonObject } from '../kube/resource.ts';
import { retryDelay } from '../kube/retry-delay.ts';
import type { Store } from '../kube/store.ts';
import { TokenBucket } from '../kube/token-bucket.ts';
import { namespaces, syncRequests } from '../oadp/kinds.ts';
import { nameAt } from '../oadp/read.ts';
import { namespacedKey, type ClusterState } from '../sync/cluster-state.ts';
import type { NamespaceReport } from '../sync/reconciler.ts';
import { matchesPattern } from '../sync/rules.ts';
import type { SyncPolicy } from '../sync/world.ts';
import { afterSync } from './history.ts';
import { expendable, type Retention } from './retention.ts';
import { answeredStatus, refusedStatus, runningStatus, withStatus, type Refusal } from './status.ts';
import { earlierFirst, isFinal, latestHistory, toSyncRequestRecord, type SyncRequestRecord } from './sync-request.ts';
import { Syncs, type Sync } from './syncs.ts';

/** The requests that there are, and where the answers to our own writes go. */
export interface KnownRequests {
  readonly store: Store<SyncRequestRecord>;
  /** As `Reflector.learn`. */
  readonly learn: (key: string, record: SyncRequestRecord, resourceVersion: string) => void;
}

export interface RequestDeskOptions {
  readonly client: Pick<KubeClient, 'listPage' | 'update' | 'delete'>;
  readonly requests: KnownRequests;
  readonly policy: Pick<SyncPolicy, 'oadpNamespace' | 'protectedNamespaces'>;
  readonly state: Pick<ClusterState, 'claimedNamespaces' | 'backupsOf' | 'refused' | 'backup'>;
  /** Has namespaces reconciled soon. */
  readonly enqueue: (namespaces: readonly string[]) => void;
  readonly retention: Retention;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: () => number;
  /** Aborted: nothing is begun any more. */
  readonly stop: AbortSignal;
  /** Asked before each write, as in a pass. */
  readonly isLeading?: (() => boolean) | undefined;
}

/** Syncs that the requests of one namespace may bring about: so many at once, and then one every five seconds. */
const pace = { perSecond: 0.2, burst: 5 };

/** A bucket that was not used for so long is full again, and as good as a new one. */
const bucketFullMs = (pace.burst / pace.perSecond) * 1000;

/**
 * Most writes to requests under way at once. A namespace has one at a time, so a thousand requests of one tenant keep those
 * of another waiting for one write.
 */
const writesAtOnce = 4;

/** Of those that share a sync, so many are shown as Running; the others get their answer only. */
const shownRunning = 20;

/** How often it is looked whether something is to be cleaned up, or was left undone. */
const sweepMs = 30_000;

/**
 * How long a request in a namespace without backups is left to the nab-sync of another OADP on the cluster, which may know
 * some: for longer than the replica that leads there may take to be replaced.
 */
const othersFirstMs = 20_000;

/** Most requests that are cleaned up before others of the namespace have their turn. */
const cleanedAtOnce = 20;

const backoff = { baseMs: 250, capMs: 30_000 };

/**
 * Answers the requests for a sync for one time as leader.
 *
 * It works on each namespace with requests by itself and in order: takes all that wait together, has the namespaces that
 * they ask for reconciled, waits until that has happened, and writes the answer into each of them. Whatever is not answered
 * when the time as leader ends is still Pending or Running, and taken up by the next leader.
 */
export class RequestDesk {
  readonly #options: RequestDeskOptions;
  readonly #syncs = new Syncs();
  /** Keys of the requests of each namespace. */
  readonly #byNamespace = new Map<string, Set<string>>();
  /** The namespaces that are worked on, and the work. */
  readonly #busy = new Set<string>();
  readonly #work = new Set<Promise<void>>();
  readonly #buckets = new Map<string, { readonly bucket: TokenBucket; lastUsed: number }>();
  readonly #slots = new PQueue({ concurrency: writesAtOnce });
  /** uids of requests that this process has shown as Running. */
  readonly #begun = new Set<string>();
  /** uids of requests whose status the server does not take. */
  readonly #hopeless = new Set<string>();
  readonly #unsubscribe: () => void;
  readonly #sweeping: Promise<void>;
  #complained: string | undefined;

  /** Begins to work. */
  constructor(options: RequestDeskOptions) {
    this.#options = options;
    const { store } = options.requests;
    for (const [key, { namespace }] of store.entries()) this.#file(namespace, key);
    this.#unsubscribe = store.onChange((key, before, after) => {
      this.#changed(key, before, after);
    });
    this.#sweeping = this.#sweep();
  }

  /** To be called when a reconcile begins; what it returns takes the report. */
  begin(namespace: string): (report: NamespaceReport) => void {
    return this.#syncs.begin(namespace);
  }

  /** After the stop: resolves when nothing of it runs any more. */
  async close(): Promise<void> {
    this.#unsubscribe();
    await Promise.all([this.#sweeping, ...this.#work]);
  }

  #changed(key: string, before: SyncRequestRecord | undefined, after: SyncRequestRecord | undefined): void {
    const namespace = (after ?? before)?.namespace;
    if (namespace === undefined) return;
    if (after === undefined) {
      const keys = this.#byNamespace.get(namespace);
      keys?.delete(key);
      if (keys?.size === 0) this.#byNamespace.delete(namespace);
      this.#begun.delete(before?.uid ?? '');
      this.#hopeless.delete(before?.uid ?? '');
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
      while (this.#mayWrite()) {
        const [first] = this.#open(namespace);
        if (first !== undefined) {
          await this.#answerWith(first);
          continue;
        }
        const done = this.#expendable(namespace);
        if (done.length === 0 || !(await this.#cleanUp(done.slice(0, cleanedAtOnce)))) return;
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
    const { oadpNamespace, protectedNamespaces } = this.#options.policy;
    // A protected one can have no backups, but may be that of another OADP, and then its requests are not ours to answer.
    const isProtected = protectedNamespaces.some((pattern) => matchesPattern(pattern, namespace));
    if (isProtected && namespace !== oadpNamespace) return [];
    return [...this.#known(namespace)]
      .filter((request) => !isFinal(request) && !this.#hopeless.has(request.uid))
      .sort(earlierFirst);
  }

  #expendable(namespace: string): SyncRequestRecord[] {
    return expendable(this.#known(namespace), this.#options.retention, this.#options.clock.now());
  }

  /** Answers a request, and all that ask for the same and wait by the time that its sync begins. */
  async #answerWith(first: SyncRequestRecord): Promise<void> {
    const { policy, clock, stop } = this.#options;
    const { oadpNamespace } = policy;
    const { namespace, selector } = first;
    if (!this.#isKnown(namespace)) {
      await clock.sleep(othersFirstMs, stop);
      if (isAnswered(this.#options.requests.store, first)) return;
    }
    const refusal = refusalOf(first, oadpNamespace);
    if (refusal !== undefined) {
      await this.#refuse(first, refusal);
      return;
    }
    const wait = this.#bucket(namespace).take();
    if (wait > 0) await clock.sleep(wait, stop);
    const selected = typeof selector === 'object' ? await this.#selectedNamespaces(selector.text) : undefined;
    if (stop.aborted) return;
    // From here to the asking nothing else runs, so whoever is in the batch was seen before the sync begins.
    const batch = this.#open(namespace).filter((request) => isSameSelector(request.selector, selector));
    if (batch.length === 0) return;
    const chosen = this.#namespacesOf(namespace, selected);
    const startTime = clock.now();
    const sync = this.#syncs.ask(chosen);
    this.#options.enqueue(chosen);
    const resumed = new Set(batch.flatMap(({ uid, phase }) => (this.#isResumed(uid, phase) ? [uid] : [])));
    const [through] = await Promise.all([
      this.#untilThrough(sync),
      this.#showRunning(batch.slice(0, shownRunning), sync),
    ]);
    if (!through) return;
    if (namespace === oadpNamespace) this.#addRefused(sync, selected);
    const { answer } = sync;
    const completionTime = clock.now();
    const history = afterSync(latestHistory(this.#known(namespace)), completionTime, answer.failure);
    this.#options.log.info(
      { namespace, requests: batch.length, namespaces: chosen.length, phase: answer.phase },
      'sync requests answered',
    );
    for (const request of batch) {
      await this.#write(request, (current) =>
        answeredStatus(current, {
          answer,
          history,
          oadpNamespace,
          startTime,
          completionTime,
          resumed: resumed.has(request.uid),
        }),
      );
    }
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

  /** Each once: what fails here is made up for by the answer. */
  async #showRunning(requests: readonly SyncRequestRecord[], sync: Sync): Promise<void> {
    for (const request of requests) {
      // The answer follows at once, and is written once.
      if (sync.isDone || !this.#mayWrite()) return;
      this.#begun.add(request.uid);
      if (request.phase === 'Running') continue;
      try {
        await this.#writeOnce(request, (current) => runningStatus(current, this.#options.clock.now()));
      } catch (error) {
        this.#complain(error, 'a sync request cannot be shown as Running');
      }
    }
  }

  async #refuse(request: SyncRequestRecord, refusal: Refusal): Promise<void> {
    const history = latestHistory(this.#known(request.namespace));
    await this.#write(request, (current) => refusedStatus(current, refusal, history, this.#options.clock.now()));
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
  async #selectedNamespaces(labelSelector: string): Promise<ReadonlySet<string>> {
    const { client, clock, random, stop } = this.#options;
    const names = new Set<string>();
    for (let attempt = 0; !stop.aborted; attempt += 1) {
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
        await this.#afterFailure(error, attempt);
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

  /**
   * Writes the status of a request. Gives up only where the request is gone or answered, or where the server will never take
   * it; and when the time as leader is over.
   */
  async #write(request: SyncRequestRecord, statusFor: StatusFor): Promise<void> {
    for (let attempt = 0; this.#mayWrite(); attempt += 1) {
      try {
        await this.#writeOnce(request, statusFor);
        return;
      } catch (error) {
        if (policyFor(error) === 'giveUpThisPass') {
          this.#complain(error, 'the answer to a sync request is not accepted; it stays without one');
          this.#hopeless.add(request.uid);
          return;
        }
        // Where somebody else wrote to it, the watch will bring what.
        await this.#afterFailure(error, attempt);
      }
    }
  }

  /** Writes to the request as it is now, unless it is gone or answered. Rejects with KubeError. */
  async #writeOnce(request: SyncRequestRecord, statusFor: StatusFor): Promise<void> {
    const { client, requests } = this.#options;
    const { namespace, name } = request;
    const key = namespacedKey(namespace, name);
    const current = requests.store.get(key);
    if (current === undefined || isAnswered(requests.store, request)) return;
    try {
      const body = withStatus(current, statusFor(current));
      const answer = await this.#slots.add(() =>
        client.update(syncRequests, { namespace, name, subresource: 'status' }, body),
      );
      const record = toSyncRequestRecord(answer);
      if (record !== undefined) requests.learn(key, record, record.resourceVersion);
      this.#complained = undefined;
    } catch (error) {
      if (!isGone(error)) throw error;
      requests.store.delete(key);
    }
  }

  /** False: not all could be removed, which is tried again later. */
  async #cleanUp(done: readonly SyncRequestRecord[]): Promise<boolean> {
    const { client, requests } = this.#options;
    for (const { namespace, name, uid } of done) {
      if (!this.#mayWrite()) return false;
      try {
        await this.#slots.add(() => client.delete(syncRequests, { namespace, name }, uid));
      } catch (error) {
        if (!isGone(error)) {
          this.#complain(error, 'an answered sync request could not be removed');
          return false;
        }
      }
      requests.store.delete(namespacedKey(namespace, name));
    }
    return true;
  }

  #mayWrite(): boolean {
    const { stop, isLeading } = this.#options;
    return !stop.aborted && isLeading?.() !== false;
  }

  async #afterFailure(error: unknown, attempt: number): Promise<void> {
    const { clock, random, stop } = this.#options;
    if (stop.aborted) return;
    // A lost race is nothing to speak of.
    if (policyFor(error) !== 'lostRace') this.#complain(error, 'a sync request cannot be answered yet');
    const retryAfterMs = error instanceof KubeError ? error.retryAfterMs : undefined;
    await clock.sleep(retryDelay({ ...backoff, attempt, retryAfterMs, random }), stop);
  }

  /** Once for as long as it stays the same. */
  #complain(error: unknown, message: string): void {
    const what = error instanceof KubeError ? `${error.verb} ${error.code}` : String(error);
    if (what === this.#complained) return;
    this.#complained = what;
    this.#options.log.warn({ err: error }, message);
  }

  #bucket(namespace: string): TokenBucket {
    const { clock } = this.#options;
    const known = this.#buckets.get(namespace) ?? { bucket: new TokenBucket(clock, pace), lastUsed: 0 };
    known.lastUsed = clock.monotonic();
    this.#buckets.set(namespace, known);
    return known.bucket;
  }
}

type StatusFor = (current: SyncRequestRecord) => JsonObject;

function refusalOf({ namespace, selector }: SyncRequestRecord, oadpNamespace: string): Refusal | undefined {
  if (selector !== 'none' && namespace !== oadpNamespace) {
    return {
      reason: 'NamespaceSelectorNotAllowed',
      message:
        'A request is for its own namespace alone. Only one in the namespace of OADP may have a namespaceSelector; make a new request without it.',
    };
  }
  if (selector === 'invalid') {
    return {
      reason: 'InvalidNamespaceSelector',
      message: 'spec.namespaceSelector holds a key, an operator or a value that no label can have; make a new request.',
    };
  }
  return undefined;
}

/** Or not there any more. */
function isAnswered(store: Store<SyncRequestRecord>, { namespace, name, uid }: SyncRequestRecord): boolean {
  const current = store.get(namespacedKey(namespace, name));
  return current?.uid !== uid || isFinal(current);
}

function isSameSelector(a: SyncRequestRecord['selector'], b: SyncRequestRecord['selector']): boolean {
  return typeof a === 'object' && typeof b === 'object' ? a.text === b.text : a === b;
}

/** The request, or all of its kind, went away. A delete for its uid also meets Conflict where another has its name. */
function isGone(error: unknown): boolean {
  if (!(error instanceof KubeError)) return false;
  if (error.code === 'Conflict') return error.verb === 'delete';
  return error.code === 'NotFound' || error.code === 'NamespaceNotFound' || error.code === 'KindNotInstalled';
}
