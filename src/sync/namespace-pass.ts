import { systemClock } from '../kube/clock.ts';
import { KubeError } from '../kube/errors.ts';
import type { OutageGate } from '../kube/outage-gate.ts';
import { apiVersion, qualifiedName, type JsonObject, type ObjectRef, type Resource } from '../kube/resource.ts';
import { toBackupRecord, type BackupRecord } from '../oadp/backup.ts';
import { backups, nonAdminBackups } from '../oadp/kinds.ts';
import {
  nonAdminBackupFor,
  syncedStatus,
  toNonAdminBackupRecord,
  type NonAdminBackupRecord,
  type Origin,
} from '../oadp/non-admin-backup.ts';
import { printable } from '../oadp/printable.ts';
import { objectAt, textAt } from '../oadp/read.ts';
import { namespacedKey, type ClusterState } from './cluster-state.ts';
import { decide, originOf, worldAt } from './decide.ts';
import { toWriteFailure, type WriteFailure } from './failure.ts';
import type { Decision, Reason } from './reasons.ts';
import type { Outcome } from './report.ts';
import { liveLane, statusPatienceMs, type Lane, type RequestSlots } from './request-slots.ts';
import type { RetainedBackup, RetainedBackups } from './retained-backups.ts';
import { settlesAt } from './rules.ts';
import type { ClusterView, SyncPolicy } from './world.ts';

/**
 * The requests that a pass makes; the client for the API server has them. All reject with a KubeError, and settle within
 * the deadline that a leader has for its requests under way when it loses its Lease.
 */
export interface NabClient {
  get(resource: Resource, ref: ObjectRef): Promise<JsonObject>;
  create(resource: Resource, ref: ObjectRef, body: JsonObject): Promise<JsonObject>;
  update(resource: Resource, ref: ObjectRef, body: JsonObject): Promise<JsonObject>;
}

/** Thrown instead of beginning a request after the stop. */
class Stopped extends Error {
  override readonly name = 'Stopped';
}

/** Thrown instead of a write whose grounds are too old by the time that it could be made. */
class Outdated extends Error {
  override readonly name = 'Outdated';
}

export interface PassContext {
  readonly client: NabClient;
  readonly state: ClusterState;
  readonly policy: SyncPolicy;
  /**
   * The store behind `state`: what a request answered goes there at once, so that no decision rests on older knowledge.
   * An answer that is older than what the store knows already, by its resourceVersion, is ignored there.
   */
  readonly nonAdminBackups: {
    set(key: string, record: NonAdminBackupRecord, resourceVersion: string | undefined): void;
    delete(key: string): void;
  };
  readonly slots: RequestSlots;
  readonly retained: RetainedBackups;
  /** Holds requests back while the API server is away. Without it they fail, which is right for a single pass. */
  readonly gate?: Pick<OutageGate, 'pass'> | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export interface PassOptions {
  /** Something just happened to the namespace, so it goes ahead of others; asked each time, since it may happen meanwhile. */
  readonly isLive: () => boolean;
  /** Nothing says that the namespace takes NABs: one create, and later one status, goes ahead alone before the others. */
  readonly probe: boolean;
  /**
   * By Backup: the pass in which its creation was last tried and failed. Those never tried go first, then those that
   * have waited longest, so that no number of hopeless ones keeps the others from their turn.
   */
  readonly failedIn: ReadonlyMap<string, number>;
  /** Aborted: no request is begun any more; those under way are let finish. */
  readonly stop: AbortSignal;
  /**
   * Asked before each write, where a Lease says who may write: a process that was frozen for a while may have lost it
   * without its signal having had the time to abort.
   */
  readonly isLeading?: (() => boolean) | undefined;
}

/** A backup and its decision. */
export interface Decided {
  readonly backup: BackupRecord;
  readonly decision: Decision;
}

/** What became of one backup. */
export interface ItemResult {
  readonly backup: BackupRecord;
  readonly outcome: Outcome;
  readonly reason: Reason;
  /** Printable. */
  readonly message: string;
  /** uid of the NAB that was written or is in the way, where there is one. */
  readonly nabUid?: string | undefined;
  /** Only with `failed`. */
  readonly failure?: WriteFailure;
  /** Only with `failed`: it did not come to a request, since others had failed before it. */
  readonly untried?: boolean;
  /** When to look again, whatever happens, in milliseconds since the epoch. */
  readonly until?: number | undefined;
}

/** A NAB that was created and waits for its status. */
interface PendingStatus {
  readonly item: Decided;
  readonly origin: Origin;
  readonly nab: Written;
  /** uid of the Backup that the NAB was made from. */
  readonly backupUid: string;
  /** That Backup, where there was room to keep it. */
  readonly kept: RetainedBackup | undefined;
  readonly dueSince: number;
}

/** A NAB as the precondition of the next write to it. */
interface Written {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
}

type Task = () => Promise<void>;

/** How it goes with one kind of writes. What stops creates, a quota for instance, need not stop statuses. */
interface Progress {
  /** Doubtful failures in a row. */
  doubts: number;
  /** Why no further one is tried. */
  stopped: WriteFailure | undefined;
}

/** Most requests of one namespace in flight. Of the sixteen slots that there are by default, it leaves four to others. */
const namespaceConcurrency = 12;

/** After so many doubtful failures in a row no further write of the kind is tried: it would most likely fail alike. */
const doubtsAllowed = 5;

/** Most statuses of one namespace that wait before they go ahead of creates. */
const pendingStatusBound = 1000;

/** For how long a write may rest on what was read before it: a request waits while the API server is away. */
const lookLastsMs = 5000;

/** When a decision changed under way, the next look comes soon. */
const soonMs = 1000;

function sameClaim(a: BackupRecord, b: BackupRecord): boolean {
  return (
    a.name === b.name &&
    a.claim.nacuuid === b.claim.nacuuid &&
    a.claim.namespace === b.claim.namespace &&
    a.claim.name === b.claim.name
  );
}

function hasCode(error: unknown, ...codes: KubeError['code'][]): error is KubeError {
  return error instanceof KubeError && codes.includes(error.code);
}

/** Whether a NAB, of which a request was, is not there. */
function isGone(error: unknown): boolean {
  return hasCode(error, 'NotFound') && error.resource === qualifiedName(nonAdminBackups);
}

/**
 * One pass over one namespace: carries out what was decided for its backups.
 *
 * Creates go first. Statuses follow when no create of the namespace waits or is under way; those under way are waited for two
 * seconds at most. One that has waited for two seconds while creates wait goes beside them, one at a time. No failure of one
 * item keeps the others from being tried, unless it says that they would fail alike.
 */
export class NamespacePass {
  readonly #context: PassContext;
  readonly #options: PassOptions;
  readonly #creates: Decided[] = [];
  readonly #repairs: Decided[] = [];
  readonly #statuses: PendingStatus[] = [];
  #statusesUnderWay = 0;
  /** Only with `probe`. */
  #firstCompletion: Promise<void> | undefined;
  readonly #results = new Map<string, ItemResult>();
  readonly #creating: Progress = { doubts: 0, stopped: undefined };
  /** Statuses, first ones and repairs. */
  readonly #completing: Progress = { doubts: 0, stopped: undefined };
  /** What is decided for all that follow once the namespace turned out to be gone. */
  #gone: Decision | undefined;

  constructor(context: PassContext, options: PassOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Never rejects: whatever happens to an item is in its result. Results are in the order of `items`. */
  async run(items: readonly Decided[]): Promise<ItemResult[]> {
    for (const item of items) {
      if (item.decision.action === 'create') this.#creates.push(item);
      else if (item.decision.action === 'repair') this.#repairs.push(item);
      else this.#settle(item, item.decision);
    }
    // The next one is taken from the end.
    this.#creates.sort((a, b) => this.#turn(b) - this.#turn(a) || oldestFirst(a.backup, b.backup));
    if (this.#creates.length > 0 || this.#repairs.length > 0) await this.#writeAll();
    for (const item of this.#creates) this.#notTried(item, this.#creating);
    for (const item of this.#repairs) this.#notTried(item, this.#completing);
    for (const { kept } of this.#statuses) kept?.release();
    return items.flatMap((item) => this.#results.get(item.backup.name) ?? []);
  }

  async #writeAll(): Promise<void> {
    if (this.#options.probe) await this.#probe();
    const workers = Array.from({ length: namespaceConcurrency }, () => this.#work(() => this.#nextWhileCreating()));
    const statusesMayGo = settledOrLate(workers);
    await Promise.all(
      workers.map(async (creating) => {
        await Promise.all([creating, statusesMayGo]);
        await this.#work(() => this.#nextStatus() ?? this.#nextRepair());
      }),
    );
  }

  #turn(item: Decided): number {
    return this.#options.failedIn.get(item.backup.name) ?? 0;
  }

  /**
   * One create at a time until one succeeds. The first that gets no answer ends it: a webhook that hangs costs one
   * deadline in one slot, whatever it has to do with how many namespaces.
   */
  async #probe(): Promise<void> {
    while (this.#statuses.length === 0) {
      const item = this.#creates.at(-1);
      const task = this.#nextCreate();
      if (item === undefined || task === undefined) return;
      await task();
      this.#endIfTimedOut(item, this.#creating);
    }
  }

  async #work(next: () => Task | undefined): Promise<void> {
    for (let task = next(); task !== undefined; task = next()) await task();
  }

  #mayRequest(): boolean {
    const { stop, isLeading } = this.#options;
    return !stop.aborted && isLeading?.() !== false;
  }

  #mayGoOn(progress: Progress): boolean {
    return progress.stopped === undefined && this.#mayRequest();
  }

  /** Makes one more request. Rejects with Stopped once the stop has come. */
  #request<T>(send: (client: NabClient) => Promise<T>): Promise<T> {
    const { client, gate } = this.#context;
    const attempt = (): Promise<T> => (this.#mayRequest() ? send(client) : Promise.reject(new Stopped()));
    return gate === undefined ? attempt() : gate.pass(this.#options.stop, attempt);
  }

  /** As `#request`, for a write that rests on what was read at `lookedAt`. Rejects with Outdated if that is too long ago. */
  #write<T>(lookedAt: number, send: (client: NabClient) => Promise<T>): Promise<T> {
    return this.#request((client) =>
      this.#context.now() - lookedAt > lookLastsMs ? Promise.reject(new Outdated()) : send(client),
    );
  }

  /** A create, or a status that goes beside those that wait; undefined once no create is to be begun any more. */
  #nextWhileCreating(): Task | undefined {
    if (this.#creates.length === 0 || !this.#mayGoOn(this.#creating)) return undefined;
    const [oldest] = this.#statuses;
    // Beyond the bound they would otherwise keep the namespace from its next create for as long as others have any.
    const isBeyond = this.#statuses.length >= pendingStatusBound;
    const isDue =
      oldest !== undefined && this.#statusesUnderWay === 0 && this.#context.now() - oldest.dueSince >= statusPatienceMs;
    const status = isBeyond || isDue ? this.#nextStatus(isBeyond) : undefined;
    return status ?? this.#nextCreate();
  }

  #lane(kind: keyof typeof liveLane): Lane {
    return this.#options.isLive() ? liveLane[kind] : kind;
  }

  #nextCreate(): Task | undefined {
    if (!this.#mayGoOn(this.#creating)) return undefined;
    const item = this.#creates.pop();
    if (item === undefined) return undefined;
    return () =>
      this.#context.slots.run(
        this.#lane('create'),
        () => this.#settleErrors(item, this.#creating, () => this.#create(item)),
        { namespace: item.backup.claim.namespace },
      );
  }

  /** @param asCreate it waits for its slot among the creates */
  #nextStatus(asCreate = false): Task | undefined {
    if (!this.#mayGoOn(this.#completing)) return undefined;
    const pending = this.#statuses.shift();
    if (pending === undefined) return undefined;
    this.#statusesUnderWay += 1;
    return () =>
      this.#complete(pending.item, () => this.#writeFirstStatus(pending), {
        waitingSince: pending.dueSince,
        asCreate,
      }).finally(() => {
        pending.kept?.release();
        this.#statusesUnderWay -= 1;
      });
  }

  #nextRepair(): Task | undefined {
    if (!this.#mayGoOn(this.#completing)) return undefined;
    const item = this.#repairs.pop();
    if (item === undefined) return undefined;
    return () => this.#complete(item, () => this.#repair(item));
  }

  /** Writes a status, first or repaired. As with creates, the first goes ahead alone, and one that gets no answer ends it. */
  async #complete(
    item: Decided,
    work: () => Promise<void>,
    { waitingSince, asCreate = false }: { readonly waitingSince?: number; readonly asCreate?: boolean } = {},
  ): Promise<void> {
    const { namespace } = item.backup.claim;
    const kind = asCreate ? 'create' : 'status';
    const run = (): Promise<void> =>
      this.#context.slots.run(this.#lane(kind), () => this.#settleErrors(item, this.#completing, work), {
        namespace,
        waitingSince,
      });
    if (!this.#options.probe) return run();
    if (this.#firstCompletion === undefined) {
      this.#firstCompletion = run().then(() => {
        this.#endIfTimedOut(item, this.#completing);
      });
      return this.#firstCompletion;
    }
    await this.#firstCompletion;
    return run();
  }

  #endIfTimedOut(item: Decided, progress: Progress): void {
    const failure = this.#results.get(item.backup.name)?.failure;
    if (failure?.reason === 'Timeout') progress.stopped ??= failure;
  }

  async #create(item: Decided): Promise<void> {
    const { policy, state, now } = this.#context;
    const live = await this.#readBackup(item);
    const lookedAt = now();
    const record = toBackupRecord(live);
    if (!sameClaim(record, item.backup)) {
      this.#skip(item, 'IdentityMismatch', 'The Backup changed its origin since it was listed; it is looked at anew.');
      return;
    }
    const decision = decide(record, worldAt(policy, state, lookedAt));
    if (decision.action !== 'create') {
      await this.#carryOut(item, decision);
      return;
    }
    const origin = originOf(record);
    try {
      const body = nonAdminBackupFor(live, origin, this.#nabslNameFor(record));
      const nab = await this.#write(lookedAt, (client) =>
        client.create(nonAdminBackups, { namespace: origin.namespace }, body),
      );
      this.#created(item, origin, live, nab);
    } catch (error) {
      if (!hasCode(error, 'AlreadyExists')) throw error;
      await this.#alreadyThere(item, origin);
    }
  }

  #nabslNameFor(record: BackupRecord): string | undefined {
    const location = this.#context.state.storageLocation(record.storageLocation ?? '');
    return typeof location?.owner === 'object' ? location.owner.name : undefined;
  }

  #created(item: Decided, origin: Origin, live: JsonObject, nab: JsonObject): void {
    this.#creating.doubts = 0;
    const record = this.#remember(origin, nab);
    this.#statuses.push({
      item,
      origin,
      nab: written(nab),
      backupUid: textAt(live, 'metadata', 'uid') ?? '',
      kept: this.#context.retained.keep(live),
      dueSince: this.#context.now(),
    });
    this.#set(item, {
      outcome: 'created',
      reason: item.decision.reason,
      message: 'Its NonAdminBackup was re-created.',
      nabUid: record.uid,
    });
  }

  /** Somebody else was faster, or the cache was behind: decide again on what is really there. */
  async #alreadyThere(item: Decided, origin: Origin): Promise<void> {
    const { policy, state, now } = this.#context;
    const nab = await this.#readNab(origin);
    if (nab === undefined) {
      this.#goneMeanwhile(item, origin);
      return;
    }
    const view = seenLive(state, origin, this.#remember(origin, nab));
    await this.#carryOut(item, decide(item.backup, worldAt(policy, view, now())));
  }

  /** A decision made on live objects in the course of a create. */
  async #carryOut(item: Decided, decision: Decision): Promise<void> {
    if (decision.action === 'repair') await this.#repair(item);
    else this.#settle(item, decision);
  }

  async #writeFirstStatus({ item, origin, nab, backupUid, kept }: PendingStatus): Promise<void> {
    const { policy, state, now } = this.#context;
    try {
      const live = kept?.take() ?? (await this.#readBackup(item));
      const current = kept === undefined ? toBackupRecord(live) : state.backup(item.backup.name);
      // The Backup went or changed meanwhile: what becomes of the NAB is decided anew, not copied from old knowledge.
      if (current?.uid !== backupUid || !sameClaim(current, item.backup)) return;
      const status = syncedStatus(live, origin, policy.oadpNamespace, undefined, now());
      try {
        await this.#writeStatus(origin, nab, status);
      } catch (error) {
        if (!hasCode(error, 'Conflict')) throw error;
        await this.#writeStatusIfStillEmpty(origin, status);
      }
    } catch (error) {
      // The Backup went, or the NAB did, or the non-admin controller was faster: the status is its to finish now.
      if (!hasCode(error, 'Conflict', 'NotFound')) throw error;
      if (isGone(error)) this.#forget(origin);
      // Nothing may tell us should nobody finish it.
      const result = this.#results.get(item.backup.name);
      if (result !== undefined) this.#set(item, { ...result, until: now() + soonMs });
    }
  }

  /** Somebody wrote to the NAB after its create: most likely its status, but perhaps only a label. */
  async #writeStatusIfStillEmpty(origin: Origin, status: JsonObject): Promise<void> {
    const nab = await this.#readNab(origin);
    if (nab === undefined) {
      this.#forget(origin);
      return;
    }
    const record = this.#remember(origin, nab);
    const ours = record.nacuuid === origin.nacuuid && record.synced && record.statusEmpty;
    if (ours && !record.deleting && !record.deleteBackup) await this.#writeStatus(origin, written(nab), status);
  }

  async #repair(item: Decided): Promise<void> {
    const { policy, state, now } = this.#context;
    const origin = originOf(item.backup);
    const nab = await this.#readNab(origin);
    if (nab === undefined) {
      this.#goneMeanwhile(item, origin);
      return;
    }
    const live = await this.#readBackup(item);
    const record = toBackupRecord(live);
    if (!sameClaim(record, item.backup)) {
      this.#skip(item, 'IdentityMismatch', 'The Backup changed its origin since it was listed; it is looked at anew.');
      return;
    }
    const seen = this.#remember(origin, nab);
    const decision = decide(record, worldAt(policy, seenLive(state, origin, seen), now()));
    if (decision.action !== 'repair') {
      // A `create` cannot come out here, since the NAB was just read.
      this.#settle(item, decision);
      return;
    }
    const status = syncedStatus(live, origin, policy.oadpNamespace, objectAt(nab, 'status'), now());
    try {
      await this.#writeStatus(origin, written(nab), status);
      this.#set(item, {
        outcome: 'repaired',
        reason: decision.reason,
        message: 'The status of its NonAdminBackup was completed.',
        nabUid: seen.uid,
      });
    } catch (error) {
      if (isGone(error)) {
        this.#goneMeanwhile(item, origin);
        return;
      }
      if (!hasCode(error, 'Conflict')) throw error;
      this.#set(item, {
        outcome: 'present',
        reason: 'Present',
        message: 'Its NonAdminBackup was written by somebody else just now.',
        until: now() + soonMs,
      });
    }
  }

  /** Writes the status and nothing else: the server takes only that part of the body. Rejects if the NAB has changed. */
  async #writeStatus(origin: Origin, nab: Written, status: JsonObject): Promise<void> {
    const body = {
      apiVersion: apiVersion(nonAdminBackups),
      kind: nonAdminBackups.kind,
      metadata: { namespace: origin.namespace, name: origin.name, ...nab },
      status,
    };
    const ref = { namespace: origin.namespace, name: origin.name, subresource: 'status' } as const;
    // Everything that the status rests on was looked at just now.
    const lookedAt = this.#context.now();
    this.#remember(origin, await this.#write(lookedAt, (client) => client.update(nonAdminBackups, ref, body)));
    this.#completing.doubts = 0;
  }

  #remember(origin: Origin, nab: JsonObject): NonAdminBackupRecord {
    const record = toNonAdminBackupRecord(nab);
    const { resourceVersion } = written(nab);
    this.#context.nonAdminBackups.set(namespacedKey(origin.namespace, origin.name), record, resourceVersion);
    return record;
  }

  #forget({ namespace, name }: Origin): void {
    this.#context.nonAdminBackups.delete(namespacedKey(namespace, name));
  }

  /** The NAB was there and is not any more, so it is due to come back. */
  #goneMeanwhile(item: Decided, origin: Origin): void {
    this.#forget(origin);
    this.#settle(item, {
      action: 'create',
      reason: 'Missing',
      message: 'Its NonAdminBackup went away while it was looked at; it is looked at anew.',
    });
  }

  #readBackup(item: Decided): Promise<JsonObject> {
    const ref = { namespace: this.#context.policy.oadpNamespace, name: item.backup.name };
    return this.#request((client) => client.get(backups, ref));
  }

  /** Undefined where there is none. */
  async #readNab({ namespace, name }: Origin): Promise<JsonObject | undefined> {
    try {
      return await this.#request((client) => client.get(nonAdminBackups, { namespace, name }));
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  async #settleErrors(item: Decided, progress: Progress, work: () => Promise<void>): Promise<void> {
    // All may have ended while the item waited for its slot. A NAB that is there without its status stays `created`.
    if (this.#gone === undefined && this.#mayGoOn(progress)) {
      try {
        await work();
      } catch (error) {
        this.#fail(item, progress, error);
      }
    } else if (!this.#results.has(item.backup.name)) {
      if (this.#gone === undefined) this.#notTried(item, progress);
      else this.#settle(item, this.#gone);
    }
  }

  #fail(item: Decided, progress: Progress, error: unknown): void {
    if (error instanceof Stopped) {
      // A NAB that is there without its status stays `created`: the next start completes it.
      if (!this.#results.has(item.backup.name)) this.#notTried(item, progress);
      return;
    }
    if (error instanceof Outdated) {
      const message = 'The API server was away for a while; it is looked at anew.';
      if (!this.#results.has(item.backup.name)) this.#settle(item, { ...item.decision, message });
      return;
    }
    if (hasCode(error, 'NotFound') && error.verb === 'get') {
      this.#skip(item, 'BeingDeleted', 'The Backup went away while it was looked at.');
      return;
    }
    if (hasCode(error, 'NamespaceNotFound')) {
      this.#namespaceGone(item, 'NamespaceMissing', 'The namespace went away while it was looked at.');
      return;
    }
    if (hasCode(error, 'NamespaceTerminating')) {
      this.#namespaceGone(item, 'NamespaceTerminating', 'The namespace is being deleted.');
      return;
    }
    const failure = toWriteFailure(error);
    if (failure.rest === 'doubt') progress.doubts += 1;
    if (failure.rest === 'stop' || progress.doubts >= doubtsAllowed) progress.stopped ??= failure;
    this.#set(item, failedResult(failure));
  }

  /** The namespace is gone for this item and so for all that follow. */
  #namespaceGone(item: Decided, reason: 'NamespaceMissing' | 'NamespaceTerminating', message: string): void {
    this.#gone = { action: 'skip', reason, message };
    const rest = [...this.#creates.splice(0), ...this.#repairs.splice(0)];
    // A NAB that was created and only lacks its status was created all the same.
    if (!this.#results.has(item.backup.name)) rest.push(item);
    for (const each of rest) this.#settle(each, this.#gone);
  }

  #notTried(item: Decided, { stopped }: Progress): void {
    const reason = stopped?.reason ?? 'Aborted';
    const message =
      stopped === undefined
        ? 'Not tried: nab-sync is stopping.'
        : `Not tried, since the one before failed: ${stopped.message}`;
    const failure: WriteFailure = {
      reason,
      message: printable(message, 400),
      permanent: false,
      rest: 'stop',
      retryAfterMs: stopped?.retryAfterMs,
    };
    this.#set(item, { ...failedResult(failure), untried: true });
  }

  #skip(item: Decided, reason: Decision['reason'], message: string): void {
    this.#settle(item, { action: 'skip', reason, message });
  }

  #settle(item: Decided, decision: Decision): void {
    const { state, policy, now } = this.#context;
    const { action, reason, message } = decision;
    switch (action) {
      case 'none':
        this.#set(item, { outcome: 'present', reason, message });
        return;
      case 'skip':
        this.#set(item, { outcome: 'skipped', reason, message });
        return;
      case 'wait':
        this.#set(item, {
          outcome: 'waiting',
          reason,
          message,
          // The live Backup may have to wait where the one in the cache has not: the watch will tell of it soon.
          until: settlesAt(item.backup, worldAt(policy, state, now())) ?? now() + soonMs,
        });
        return;
      case 'conflict': {
        const { namespace = '', name = '' } = item.backup.claim;
        this.#set(item, { outcome: 'conflict', reason, message, nabUid: state.nonAdminBackup(namespace, name)?.uid });
        return;
      }
      case 'create':
      case 'repair':
        // It was decided anew in the middle of the other one: left to the next pass, which comes soon.
        this.#set(item, { outcome: 'waiting', reason, message, until: now() + soonMs });
        return;
    }
  }

  #set(item: Decided, result: Omit<ItemResult, 'backup'>): void {
    this.#results.set(item.backup.name, { backup: item.backup, ...result });
  }
}

/** Resolves when all have resolved, or two seconds after the first has, since the others may hang. None may reject. */
async function settledOrLate(workers: readonly Promise<void>[]): Promise<void> {
  const over = new AbortController();
  await Promise.race(workers);
  await Promise.race([Promise.all(workers), systemClock.sleep(statusPatienceMs, over.signal)]);
  over.abort();
}

/** The result of a backup whose write failed. */
export function failedResult(failure: WriteFailure): Omit<ItemResult, 'backup'> {
  return { outcome: 'failed', reason: failure.reason, message: failure.message, failure };
}

/**
 * The state of the cluster with one NAB as it was just read. The caches may never hear of it: a list that was wrongly empty
 * is believed until the next one, and a NAB that is older than that list brings no event.
 */
function seenLive(state: ClusterState, origin: Origin, nab: NonAdminBackupRecord): ClusterView {
  return {
    storageLocation: (name) => state.storageLocation(name),
    locationOwner: (namespace, name) => state.locationOwner(namespace, name),
    deleteRequests: (backupName) => state.deleteRequests(backupName),
    namespace: (name) => state.namespace(name),
    claimants: (namespace, name) => state.claimants(namespace, name),
    nonAdminBackup: (namespace, name) =>
      namespace === origin.namespace && name === origin.name ? nab : state.nonAdminBackup(namespace, name),
  };
}

function oldestFirst(a: BackupRecord, b: BackupRecord): number {
  return (a.completionTime ?? 0) - (b.completionTime ?? 0);
}

function written(nab: JsonObject): Written {
  return { uid: textAt(nab, 'metadata', 'uid'), resourceVersion: textAt(nab, 'metadata', 'resourceVersion') };
}
