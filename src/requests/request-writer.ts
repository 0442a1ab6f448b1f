import PQueue from 'p-queue';
import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import { Complaints } from '../kube/complaints.ts';
import { KubeError, policyFor } from '../kube/errors.ts';
import type { JsonObject } from '../kube/resource.ts';
import { retryDelay } from '../kube/retry-delay.ts';
import type { Store } from '../kube/store.ts';
import { syncRequests } from '../oadp/kinds.ts';
import { namespacedKey } from '../sync/cluster-state.ts';
import type { SyncPolicy } from '../sync/world.ts';
import { withStatus } from './status.ts';
import { isFinal, toSyncRequestRecord, type SyncRequestRecord } from './sync-request.ts';

/** The requests that there are, and where the answers to our own writes go. */
export interface KnownRequests {
  readonly store: Store<SyncRequestRecord>;
  /** As `Reflector.learn`. */
  readonly learn: (key: string, record: SyncRequestRecord, resourceVersion: string) => void;
}

export interface RequestWriterOptions {
  readonly policy: Pick<SyncPolicy, 'oadpNamespace'>;
  readonly client: Pick<KubeClient, 'update' | 'delete'>;
  readonly requests: KnownRequests;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: () => number;
  /** Aborted: nothing is begun any more. */
  readonly stop: AbortSignal;
  /** Asked before each write, as in a pass. */
  readonly isLeading?: (() => boolean) | undefined;
}

/** The status to be written to a request as it is by then. */
export type StatusFor = (current: SyncRequestRecord) => JsonObject;

/**
 * Most writes to requests under way at once. A namespace has one at a time, so a thousand requests of one tenant keep those
 * of another waiting for one write.
 */
const writesAtOnce = 4;

/** How long a request that another OADP's nab-sync has taken up is left to it. */
const claimMs = 600_000;

const backoff = { baseMs: 250, capMs: 30_000 };

/** Writes to requests and removes them, for as long as this replica leads. */
export class RequestWriter {
  readonly #options: RequestWriterOptions;
  readonly #slots = new PQueue({ concurrency: writesAtOnce });
  /** uids of requests whose status the server does not take. */
  readonly #hopeless = new Set<string>();
  readonly #complaints: Complaints;

  constructor(options: RequestWriterOptions) {
    this.#options = options;
    this.#complaints = new Complaints(options.log);
  }

  get mayWrite(): boolean {
    const { stop, isLeading } = this.#options;
    return !stop.aborted && isLeading?.() !== false;
  }

  /** The request waits for an answer of ours, and can get one. */
  canAnswer(request: SyncRequestRecord): boolean {
    return !isFinal(request) && !this.isTakenByOthers(request) && !this.#hopeless.has(request.uid);
  }

  /** The request is answered, or taken up by another OADP's nab-sync, or not there any more. */
  isSettled({ namespace, name, uid }: SyncRequestRecord): boolean {
    const current = this.#options.requests.store.get(namespacedKey(namespace, name));
    return current?.uid !== uid || isFinal(current) || this.isTakenByOthers(current);
  }

  /** Another OADP's nab-sync is at it. Not for ever: it may have been removed in the middle. */
  isTakenByOthers(request: SyncRequestRecord): boolean {
    const { takenUpBy, startTime = 0 } = request;
    const { policy, clock } = this.#options;
    if (isFinal(request) || takenUpBy === undefined || takenUpBy === policy.oadpNamespace) return false;
    return Math.abs(clock.now() - startTime) < claimMs;
  }

  /** A request with this uid is gone. */
  gone(uid: string): void {
    this.#hopeless.delete(uid);
  }

  /**
   * Writes the answer, as often as it takes. Gives up only where the request is gone or answered, or where the server will
   * never take it; and when the time as leader is over: then it returns false.
   */
  async answer(request: SyncRequestRecord, statusFor: StatusFor): Promise<boolean> {
    for (let attempt = 0; this.mayWrite; attempt += 1) {
      try {
        return await this.#write(request, statusFor);
      } catch (error) {
        if (policyFor(error) === 'giveUpThisPass') {
          this.#complaints.tell(error, 'the answer to a sync request is not accepted; it stays without one');
          this.#hopeless.add(request.uid);
          return false;
        }
        await this.pause(error, attempt);
      }
    }
    return false;
  }

  /** Writes a status that is no answer, once: what fails here is made up for by the answer. */
  async show(request: SyncRequestRecord, statusFor: StatusFor): Promise<void> {
    if (!this.mayWrite) return;
    try {
      await this.#write(request, statusFor);
    } catch (error) {
      this.#complaints.tell(error, 'a sync request cannot be shown as Running');
    }
  }

  /** False: it could not be removed, which is to be tried again later. */
  async remove(request: SyncRequestRecord): Promise<boolean> {
    const { client } = this.#options;
    const { namespace, name, uid } = request;
    if (!this.mayWrite) return false;
    try {
      await this.#slots.add(() => client.delete(syncRequests, { namespace, name }, uid));
    } catch (error) {
      if (!isGone(error)) {
        this.#complaints.tell(error, 'an answered sync request could not be removed');
        return false;
      }
    }
    this.#forget(request);
    return true;
  }

  /** Waits before the next try of what failed, longer with each. Ends early with the stop. */
  async pause(error: unknown, attempt: number): Promise<void> {
    const { clock, random, stop } = this.#options;
    // A lost race is nothing to speak of: the watch will bring what somebody else wrote.
    if (policyFor(error) !== 'lostRace' && !stop.aborted)
      this.#complaints.tell(error, 'a sync request cannot be answered yet');
    const retryAfterMs = error instanceof KubeError ? error.retryAfterMs : undefined;
    await clock.sleep(retryDelay({ ...backoff, attempt, retryAfterMs, random }), stop);
  }

  /** Writes to the request as it is now. False: it is settled. Rejects with KubeError. */
  async #write(request: SyncRequestRecord, statusFor: StatusFor): Promise<boolean> {
    const { client, requests } = this.#options;
    const { namespace, name } = request;
    const key = namespacedKey(namespace, name);
    const current = requests.store.get(key);
    if (current === undefined || this.isSettled(request)) return false;
    try {
      const body = withStatus(current, statusFor(current));
      const answer = await this.#slots.add(() =>
        client.update(syncRequests, { namespace, name, subresource: 'status' }, body),
      );
      const record = toSyncRequestRecord(answer);
      if (record !== undefined) requests.learn(key, record, record.resourceVersion);
      this.#complaints.end();
      return true;
    } catch (error) {
      if (!isGone(error)) throw error;
      this.#forget(request);
      return false;
    }
  }

  /** The watch will tell the same; but there may be another of its name by now, which stays. */
  #forget({ namespace, name, uid }: SyncRequestRecord): void {
    const { store } = this.#options.requests;
    const key = namespacedKey(namespace, name);
    if (store.get(key)?.uid === uid) store.delete(key);
  }
}

/** The request, or all of its kind, went away. A delete for its uid also meets Conflict where another has its name. */
function isGone(error: unknown): boolean {
  if (!(error instanceof KubeError)) return false;
  if (error.code === 'Conflict') return error.verb === 'delete';
  return error.code === 'NotFound' || error.code === 'NamespaceNotFound' || error.code === 'KindNotInstalled';
}
