import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { answerWithin, codeOf, messageOf } from './answer-within.ts';
import { systemClock } from './clock.ts';
import type { Clock } from './clock.ts';
import { KubeError, policyFor } from './errors.ts';
import { heldLease, leaseResource, newLease, readLease, releasedLease, sameVersion } from './lease-record.ts';
import type { LeaseClaim, LeaseRecord } from './lease-record.ts';
import type { JsonObject, ObjectRef, Resource } from './resource.ts';
import { retryDelay } from './retry-delay.ts';

/** What the elector asks of the API; KubeClient has it. Errors carry the `code` of a KubeError. */
export interface LeaseClient {
  get(resource: Resource, ref: ObjectRef, options: LeaseRequestOptions): Promise<JsonObject>;
  create(resource: Resource, ref: ObjectRef, body: JsonObject, options: LeaseRequestOptions): Promise<JsonObject>;
  update(resource: Resource, ref: ObjectRef, body: JsonObject, options: LeaseRequestOptions): Promise<JsonObject>;
}

export interface LeaseRequestOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

export interface LeaderElectorOptions {
  readonly client: LeaseClient;
  /** Where the Lease is and how it is called. */
  readonly namespace: string;
  readonly name: string;
  /** Never used by two processes, nor by one before and after a restart: take `processIdentity()`. */
  readonly identity: string;
  readonly log: Logger;
  /** How long others wait, after the last renewal that they saw, before they take over. Whole seconds; 15 s. */
  readonly leaseDurationMs?: number;
  /** How long a leader goes on without a successful renewal; 8 s. */
  readonly renewDeadlineMs?: number;
  /** The time from one try to the next; up to a fifth shorter, by chance; 2 s. */
  readonly retryPeriodMs?: number;
  /** The deadline of one request, here and in the leader's work; 5 s. */
  readonly requestTimeoutMs?: number;
  /** Its `now()` is written into the Lease and `state.since`; what is judged is judged by its `monotonic()`. */
  readonly clock?: Clock;
  /** Uniform in [0, 1). */
  readonly random?: () => number;
}

/** What the elector knows; compared by value, told to listeners when it changes. */
export interface ElectionState {
  readonly leader: boolean;
  /** Who holds the Lease as far as it was last seen; undefined when nobody does or it was never read. */
  readonly holder: string | undefined;
  /** Why the Lease cannot be read or written now, as the code of a KubeError; undefined when it can. */
  readonly problem: string | undefined;
  /** When this state began; milliseconds since the epoch. */
  readonly since: number;
}

/**
 * How a run ended. `released`: stopped, or the work was done; the Lease is free. `lost`: the work was aborted because the
 * Lease could not be renewed or is another's. `held`: only with `ifHeld: 'leave'`.
 */
export type ElectionEnd =
  { readonly ended: 'released' } | { readonly ended: 'lost' } | { readonly ended: 'held'; readonly holder: string };

export interface ElectionRun {
  /** Stops the candidate, or ends the leader's work. */
  readonly signal: AbortSignal;
  /**
   * The leader's work. Its signal aborts before anybody else can lead. The Lease is kept, if it can be, until the work
   * has settled: it may finish the requests that are under way, each of at most `requestTimeoutMs`, and start none.
   */
  readonly lead: (signal: AbortSignal) => Promise<void>;
  /**
   * When another holds the Lease: `wait` (the default) until it is free; `leave` as soon as the holder has shown that
   * it lives. A holder that shows no life for its lease duration is taken over from in both cases.
   */
  readonly ifHeld?: 'wait' | 'leave';
}

/** One try to take or to keep the Lease. */
type Attempt =
  | { readonly kind: 'holding'; readonly validUntil: number }
  | { readonly kind: 'held'; readonly record: LeaseRecord; readonly expiresAt: number }
  /** Somebody else wrote first; a look will tell who. */
  | { readonly kind: 'raced' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** The Lease as last seen, and since when (on the monotonic clock) it has been just so. */
interface Observation {
  readonly lease: JsonObject;
  readonly record: LeaseRecord;
  readonly since: number;
}

/** A time as leader, from the acquisition to the loss or the release. */
interface Tenure {
  /** Its signal is the work's: aborts on a stop and on loss. */
  readonly work: AbortController;
  /** Its signal aborts when there is nothing left to renew for: the work has settled, or the Lease is lost. */
  readonly keeping: AbortController;
  /** From this moment on (monotonic) the process may not act as leader, unless a renewal has moved it. */
  validUntil: number;
  lost: boolean;
}

/** The share by which a wait may be shortened by chance, so that candidates do not ask in step. */
const jitter = 0.2;
/** A candidate that meets errors waits up to this many retry periods: low enough to lead soon after an outage. */
const longestWaitInRetries = 2;
/** A leader whose renewal failed tries this many times as often: its time is running out. */
const hastyRetries = 4;
const releaseAttempts = 3;
/** More than a leader can make between its last renewal and its loss. */
const mostUnanswered = 32;

/** `host_uuid`: tells people where a holder runs, and stays unique over restarts. */
export function processIdentity(host = hostname(), uuid: string = randomUUID()): string {
  return `${host}_${uuid}`;
}

/**
 * Leader election on a coordination.k8s.io/v1 Lease.
 *
 * Why two never lead at once: a leader stops `renewDeadlineMs` after the *start* of its last successful renewal, and
 * its last request ends `requestTimeoutMs` later. Others see that renewal after its start, and take over when *they* have
 * seen the Lease unchanged for the holder's whole lease duration, which is longer; and only in the version that they
 * saw. All of it is measured on each process's own monotonic clock, none by the times in the Lease (field case D9).
 *
 * What no election can prevent, and why writes stay safe with two writers all the same: somebody deletes or frees the
 * Lease by hand, or etcd is put back to an earlier state; the old leader then stops at its next renewal.
 */
export class LeaderElector {
  readonly #client: LeaseClient;
  readonly #ref: { readonly namespace: string; readonly name: string };
  readonly #identity: string;
  readonly #log: Logger;
  readonly #leaseDurationMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryPeriodMs: number;
  readonly #requestTimeoutMs: number;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #listeners = new Set<(state: ElectionState) => void>();
  #state: ElectionState;
  #running = false;
  #observed: Observation | undefined;
  #tenure: Tenure | undefined;
  /** Writes whose answers never came, since the last one that was answered: the Lease may be ours without our knowing. */
  #unanswered: readonly LeaseRecord[] = [];
  /** What our latest write made of the Lease, for as long as no look has shown anything else. */
  #written: LeaseRecord | undefined;

  /** Throws RangeError or TypeError, saying what was expected and what came, when the times do not fit together. */
  constructor(options: LeaderElectorOptions) {
    this.#client = options.client;
    this.#ref = { namespace: required('namespace', options.namespace), name: required('name', options.name) };
    this.#identity = required('identity', options.identity);
    this.#log = options.log;
    this.#leaseDurationMs = positive('leaseDurationMs', options.leaseDurationMs ?? 15_000);
    this.#renewDeadlineMs = positive('renewDeadlineMs', options.renewDeadlineMs ?? 8_000);
    this.#retryPeriodMs = positive('retryPeriodMs', options.retryPeriodMs ?? 2_000);
    this.#requestTimeoutMs = positive('requestTimeoutMs', options.requestTimeoutMs ?? 5_000);
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    if (this.#leaseDurationMs % 1_000 !== 0) {
      throw new RangeError(`leaseDurationMs must be whole seconds, got ${this.#leaseDurationMs}`);
    }
    if (this.#renewDeadlineMs + this.#requestTimeoutMs >= this.#leaseDurationMs) {
      throw new RangeError(
        'renewDeadlineMs + requestTimeoutMs must be less than leaseDurationMs, or a request of the old leader may end ' +
          `after a new one has started; got ${this.#renewDeadlineMs} + ${this.#requestTimeoutMs} and ${this.#leaseDurationMs}`,
      );
    }
    if (this.#retryPeriodMs >= this.#renewDeadlineMs) {
      throw new RangeError(
        'retryPeriodMs must be less than renewDeadlineMs, or the Lease is lost before its first renewal; ' +
          `got ${this.#retryPeriodMs} and ${this.#renewDeadlineMs}`,
      );
    }
    this.#state = { leader: false, holder: undefined, problem: undefined, since: this.#clock.now() };
  }

  get state(): ElectionState {
    return this.#state;
  }

  /** The returned function unsubscribes. A listener that throws is logged and harms nothing. */
  onState(listener: (state: ElectionState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Whether this process may act as leader at this very moment. To be asked just before each write: after the process
   * was stopped, or its event loop blocked, the clock tells of the loss before the timer that aborts the signal has run.
   */
  isLeading(): boolean {
    const tenure = this.#tenure;
    return tenure !== undefined && this.#isValid(tenure) && !tenure.work.signal.aborted;
  }

  /**
   * Takes the Lease, does the work, gives the Lease back. Runs until stopped, until the work is done or until the Lease
   * is lost; after that it may be called again.
   *
   * Faults of the API never reject it while it waits for the Lease or leads; they show in `state` and in the log. With
   * `ifHeld: 'leave'` it rejects with the last error when the Lease could not be read or written for a whole lease
   * duration, or at once when only an admin can help, as with a missing right. When the work rejects, the Lease is given
   * back and the run rejects with the same error.
   */
  async run({ signal, lead, ifHeld = 'wait' }: ElectionRun): Promise<ElectionEnd> {
    if (this.#running) throw new Error('LeaderElector.run was called while a run is under way');
    this.#running = true;
    try {
      const acquired = await this.#acquire(signal, ifHeld);
      return typeof acquired === 'number' ? await this.#lead(acquired, signal, lead) : acquired;
    } finally {
      this.#running = false;
    }
  }

  /** Resolves to the `validUntil` of the new tenure, or to the end of a run that never led. */
  async #acquire(signal: AbortSignal, ifHeld: 'wait' | 'leave'): Promise<number | ElectionEnd> {
    let answeredAt = this.#clock.monotonic();
    let failures = 0;
    // The first look at the Lease in this run. Another holder in any later version of it is one that lives.
    let firstSeen: LeaseRecord | 'absent' | undefined;
    while (!signal.aborted) {
      const attempt = await this.#attempt(signal);
      if (attempt.kind === 'holding') return attempt.validUntil;
      let wait = this.#jittered(this.#retryPeriodMs);
      if (attempt.kind === 'failed') {
        const failingForMs = this.#clock.monotonic() - answeredAt;
        const hopeless = policyFor(attempt.error) === 'needsAdmin' || failingForMs >= this.#leaseDurationMs;
        if (ifHeld === 'leave' && hopeless) throw attempt.error;
        wait = this.#backoff(failures, attempt.error);
        failures += 1;
      } else {
        failures = 0;
        answeredAt = this.#clock.monotonic();
      }
      if (attempt.kind === 'raced') firstSeen ??= this.#observed?.record ?? 'absent';
      if (attempt.kind === 'held') {
        const { record, expiresAt } = attempt;
        const alive = firstSeen === 'absent' || (firstSeen !== undefined && !sameVersion(firstSeen, record));
        if (ifHeld === 'leave' && alive) return { ended: 'held', holder: record.holder };
        firstSeen ??= record;
        // Asking again at the moment of expiry bounds a take-over by lease duration + retry period.
        wait = Math.max(0, Math.min(wait, expiresAt - this.#clock.monotonic()));
      }
      await this.#clock.sleep(wait, signal);
    }
    // The stop may have cut off the answer to a write that took the Lease: then it is given back here.
    if (this.#unanswered.length > 0) await this.#release();
    return { ended: 'released' };
  }

  async #lead(validUntil: number, stop: AbortSignal, lead: ElectionRun['lead']): Promise<ElectionEnd> {
    const tenure: Tenure = { work: new AbortController(), keeping: new AbortController(), validUntil, lost: false };
    const onStop = (): void => {
      tenure.work.abort(stop.reason);
    };
    if (stop.aborted) onStop();
    else stop.addEventListener('abort', onStop, { once: true });
    this.#tenure = tenure;
    this.#setState({ leader: true });
    this.#log.info({ lease: this.#ref, identity: this.#identity }, 'became leader');

    const work = (async () => {
      try {
        await lead(tenure.work.signal);
      } finally {
        tenure.keeping.abort();
      }
    })();
    // The Lease is kept until the work has settled, also after a stop: nobody else leads while its last requests run.
    await Promise.allSettled([work, this.#renew(tenure), this.#watchDeadline(tenure)]);

    stop.removeEventListener('abort', onStop);
    this.#tenure = undefined;
    this.#setState({ leader: false });
    await this.#release();
    this.#log.info({ lease: this.#ref, identity: this.#identity, lost: tenure.lost }, 'leadership ended');
    await work;
    return { ended: tenure.lost ? 'lost' : 'released' };
  }

  async #renew(tenure: Tenure): Promise<void> {
    const { signal } = tenure.keeping;
    let wait = this.#retryPeriodMs;
    for (;;) {
      await this.#clock.sleep(this.#jittered(wait), signal);
      if (signal.aborted || !this.#isValid(tenure)) return;
      const attempt = await this.#attempt(signal);
      if (attempt.kind === 'holding') tenure.validUntil = attempt.validUntil;
      if (attempt.kind === 'held') this.#lose(tenure, 'another holds the lease');
      wait = attempt.kind === 'holding' ? this.#retryPeriodMs : this.#retryPeriodMs / hastyRetries;
    }
  }

  /** Sees to it that the work's signal aborts at `validUntil`, whatever the requests under way do. */
  async #watchDeadline(tenure: Tenure): Promise<void> {
    const { signal } = tenure.keeping;
    while (!signal.aborted && this.#isValid(tenure)) {
      await this.#clock.sleep(tenure.validUntil - this.#clock.monotonic(), signal);
    }
  }

  /** Whether the last renewal still counts; if it does not, the tenure is lost from here on. */
  #isValid(tenure: Tenure): boolean {
    if (!tenure.lost && this.#clock.monotonic() >= tenure.validUntil) this.#lose(tenure, 'not renewed in time');
    return !tenure.lost;
  }

  #lose(tenure: Tenure, reason: string): void {
    if (tenure.lost) return;
    tenure.lost = true;
    tenure.work.abort(new Error('leadership lost'));
    tenure.keeping.abort();
    this.#setState({ leader: false });
    this.#log.warn(
      { lease: this.#ref, identity: this.#identity, holder: this.#state.holder, reason },
      'leadership lost',
    );
  }

  async #attempt(signal: AbortSignal): Promise<Attempt> {
    try {
      const attempt = await this.#tryToHold(signal);
      this.#setState({ problem: undefined });
      return attempt;
    } catch (error) {
      if (!signal.aborted) this.#setState({ problem: codeOf(error) }, messageOf(error));
      return { kind: 'failed', error };
    }
  }

  async #tryToHold(signal: AbortSignal): Promise<Attempt> {
    const leading = this.#tenure !== undefined;
    // A leader knows the version that it wrote itself: one request a renewal instead of two.
    if (leading && this.#observed?.record.holder === this.#identity) {
      const renewed = await this.#write(this.#observed.lease, signal);
      if (renewed.kind === 'holding') return renewed;
    }
    const lease = await this.#read(signal);
    const now = this.#clock.monotonic();
    if (lease === undefined) {
      const last = this.#observed;
      // Deleted under a holder that may not have noticed yet: what is known of its lease still counts.
      if (!leading && last !== undefined && last.record.holder !== '' && now < this.#expiresAt(last)) {
        return { kind: 'held', record: last.record, expiresAt: this.#expiresAt(last) };
      }
      return await this.#write(undefined, signal);
    }
    const observed = this.#observe(lease, now);
    const { record } = observed;
    // Asked first, since it also takes note of a Lease that is somebody else's.
    const known = this.#isAsWritten(record) || this.#isUnanswered(record);
    const mine = record.holder === this.#identity && (leading || known);
    if (record.holder !== '' && !mine && (leading || now < this.#expiresAt(observed))) {
      return { kind: 'held', record, expiresAt: this.#expiresAt(observed) };
    }
    return await this.#write(lease, signal);
  }

  /** Undefined: there is no Lease of that name. */
  async #read(signal: AbortSignal): Promise<JsonObject | undefined> {
    try {
      return await this.#request(signal, (options) => this.#client.get(leaseResource, this.#ref, options));
    } catch (error) {
      if (codeOf(error) === 'NotFound') return undefined;
      throw error;
    }
  }

  /** Creates the Lease, or updates it in the version given, with this process as its holder. */
  async #write(lease: JsonObject | undefined, signal: AbortSignal): Promise<Attempt> {
    const claim: LeaseClaim = {
      identity: this.#identity,
      durationMs: this.#leaseDurationMs,
      now: this.#clock.now(),
    };
    const body = lease === undefined ? newLease(this.#ref.name, this.#ref.namespace, claim) : heldLease(lease, claim);
    // Measured from here, because others can see the write from here on and no earlier.
    const startedAt = this.#clock.monotonic();
    const attempt = readLease(body);
    this.#unanswered = [...this.#unanswered.slice(1 - mostUnanswered), attempt];
    try {
      const written = await this.#request(signal, (options) =>
        lease === undefined
          ? this.#client.create(leaseResource, { namespace: this.#ref.namespace }, body, options)
          : this.#client.update(leaseResource, this.#ref, body, options),
      );
      this.#unanswered = [];
      const { record } = this.#observe(written, this.#clock.monotonic());
      this.#written = record;
      const validUntil = startedAt + this.#renewDeadlineMs;
      const holding = record.holder === this.#identity && this.#clock.monotonic() < validUntil;
      return holding ? { kind: 'holding', validUntil } : { kind: 'raced' };
    } catch (error) {
      if (policyFor(error) !== 'lostRace') throw error;
      // Perhaps against an earlier one of our own.
      this.#unanswered = this.#unanswered.filter((each) => each !== attempt);
      return { kind: 'raced' };
    }
  }

  /** Gives the Lease back if it is ours. One that cannot be given back expires by itself. */
  async #release(): Promise<void> {
    try {
      // One deadline for all of it: a process that stops does not wait longer for this than for any other request.
      await answerWithin(this.#clock, this.#requestTimeoutMs, undefined, async (signal) => {
        let lease = this.#observed?.lease;
        for (let attempt = 0; attempt < releaseAttempts; attempt += 1) {
          // What was seen last saves a request where it is up to date, and is refused where it is not.
          if (lease !== undefined && readLease(lease).holder === this.#identity) {
            if (await this.#giveBack(lease, signal)) break;
          } else if (attempt > 0) break;
          lease = await this.#read(signal);
        }
      });
      this.#unanswered = [];
    } catch (error) {
      const detail = messageOf(error);
      this.#log.warn({ lease: this.#ref, code: codeOf(error), detail }, 'lease not released, it will expire');
    }
  }

  /** False: somebody wrote in between. */
  async #giveBack(lease: JsonObject, signal: AbortSignal): Promise<boolean> {
    try {
      const body = releasedLease(lease, this.#clock.now());
      const released = await this.#request(signal, (options) =>
        this.#client.update(leaseResource, this.#ref, body, options),
      );
      this.#observe(released, this.#clock.monotonic());
      return true;
    } catch (error) {
      if (policyFor(error) === 'lostRace') return false;
      throw error;
    }
  }

  #request<T>(signal: AbortSignal, send: (options: LeaseRequestOptions) => Promise<T>): Promise<T> {
    // A leader gives one request at most half of the time that it has left, so that one hung request is not the end.
    const left = this.#tenure === undefined ? Infinity : (this.#tenure.validUntil - this.#clock.monotonic()) / 2;
    const timeoutMs = Math.max(1, Math.ceil(Math.min(this.#requestTimeoutMs, left)));
    return answerWithin(this.#clock, timeoutMs, signal, (inner) => send({ signal: inner, timeoutMs }));
  }

  /** Remembers a look at the Lease; the time counts from the first look at this version. */
  #observe(lease: JsonObject, now: number): Observation {
    const record = readLease(lease);
    const before = this.#observed;
    const since = before !== undefined && sameVersion(before.record, record) ? before.since : now;
    this.#observed = { lease, record, since };
    this.#setState({ holder: record.holder === '' ? undefined : record.holder });
    return this.#observed;
  }

  #expiresAt({ record, since }: Observation): number {
    return since + (record.durationMs ?? this.#leaseDurationMs);
  }

  #isUnanswered(record: LeaseRecord): boolean {
    const { holder, renewTime, acquireTime } = record;
    if (holder !== this.#identity) this.#unanswered = [];
    return this.#unanswered.some((ours) => ours.renewTime === renewTime && ours.acquireTime === acquireTime);
  }

  /**
   * Whether the Lease is still just as we wrote it, so that nobody can have led since, and no write of ours is needed to
   * expire: after an outage that has cost the leadership, the only candidate leads again at once.
   */
  #isAsWritten(record: LeaseRecord): boolean {
    if (this.#written !== undefined && !sameVersion(this.#written, record)) this.#written = undefined;
    return this.#written !== undefined;
  }

  #backoff(failures: number, error: unknown): number {
    return retryDelay({
      attempt: failures,
      baseMs: this.#retryPeriodMs,
      capMs: this.#retryPeriodMs * longestWaitInRetries,
      retryAfterMs: error instanceof KubeError ? error.retryAfterMs : undefined,
      retryAfterCapMs: this.#leaseDurationMs,
      random: this.#random,
    });
  }

  #jittered(ms: number): number {
    return ms * (1 - jitter * this.#random());
  }

  /** @param detail says more about a problem than its code, for the log */
  #setState(change: Partial<Omit<ElectionState, 'since'>>, detail?: string): void {
    const before = this.#state;
    const after = { ...before, ...change };
    if (before.leader === after.leader && before.holder === after.holder && before.problem === after.problem) return;
    this.#state = { ...after, since: this.#clock.now() };
    if (after.problem !== before.problem) {
      if (after.problem === undefined) this.#log.info({ lease: this.#ref }, 'lease can be used again');
      else this.#log.warn({ lease: this.#ref, code: after.problem, detail }, 'lease cannot be used');
    }
    if (after.holder !== before.holder && after.holder !== undefined && after.holder !== this.#identity) {
      this.#log.info({ lease: this.#ref, holder: after.holder }, 'lease is held by another');
    }
    for (const listener of this.#listeners) {
      try {
        listener(this.#state);
      } catch (error) {
        this.#log.error({ err: error }, 'a listener of the election state threw');
      }
    }
  }
}

function positive(name: string, value: number): number {
  if (Number.isFinite(value) && value > 0) return value;
  throw new RangeError(`${name} must be a positive number of milliseconds, got ${value}`);
}

function required(name: string, value: string): string {
  if (value !== '') return value;
  throw new TypeError(`${name} must not be empty`);
}
