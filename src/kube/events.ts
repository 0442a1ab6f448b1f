import type { Logger } from 'pino';
import { answerWithin, codeOf, DeadlineExceeded, messageOf } from './answer-within.ts';
import { systemClock } from './clock.ts';
import type { Clock } from './clock.ts';
import { KubeError, policyFor } from './errors.ts';
import { countOf, eventName, eventNamespace, eventResource, newEvent, repeatedEvent } from './event-object.ts';
import type { EventFact, EventSource, Sightings } from './event-object.ts';
import type { JsonObject, ObjectRef, Resource } from './resource.ts';
import { retryDelay } from './retry-delay.ts';
import { TokenBucket } from './token-bucket.ts';

export type { EventFact, Regarding } from './event-object.ts';

/** What the recorder asks of the API; KubeClient has it. Needs the verbs create and patch on events, not get. */
export interface EventClient {
  create(resource: Resource, ref: ObjectRef, body: JsonObject, options: EventRequestOptions): Promise<JsonObject>;
  /** A merge patch. */
  patch(resource: Resource, ref: ObjectRef, body: JsonObject, options: EventRequestOptions): Promise<JsonObject>;
}

export interface EventRequestOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

export interface EventRecorderOptions {
  readonly client: EventClient;
  readonly log: Logger;
  /** Who speaks: the program, and which of its processes. */
  readonly component: string;
  readonly instance: string;
  /** Facts that may wait; those beyond it are dropped and counted; 5,000. */
  readonly queueLimit?: number;
  /** 10 a second in the long run, 50 at once. */
  readonly perSecond?: number;
  readonly burst?: number;
  /** Requests at a time: few, for the writes that matter share the API server with them; 2. */
  readonly concurrency?: number;
  /** Deadline of one request; 5 s. */
  readonly requestTimeoutMs?: number;
  readonly clock?: Clock;
  /** Uniform in [0, 1). */
  readonly random?: () => number;
}

/** What has become of the facts so far. Every fact told ends in exactly one of these, or still waits. */
export interface EventCounters {
  /** Facts told in an event of their own. */
  readonly sent: number;
  /** Facts that raised the count of an event that was there. */
  readonly aggregated: number;
  /** Facts given up unsent: the queue was full, or the recorder was closed. */
  readonly dropped: number;
  /** Facts that the API server refused, or did not take in several tries. */
  readonly failed: number;
  readonly waiting: number;
}

/** Facts of one event name that wait to be told; the same told again in the meantime joins them. */
interface Entry {
  readonly name: string;
  readonly namespace: string;
  fact: EventFact;
  seen: Sightings;
  attempts: number;
  /** An earlier try may have made the event without our hearing of it. */
  unsure: boolean;
}

const mostAttempts = 4;
const backoff = { baseMs: 1_000, capMs: 15_000, retryAfterCapMs: 60_000 };
/** Names whose count is remembered; of one forgotten, the API server tells the count. */
const mostCounts = 4_096;
/** The same kind of failure is logged once in this time, with how often it came. */
const quietMs = 600_000;

/**
 * Tells facts as core/v1 Events. Events are a courtesy: telling one returns at once and never throws, what is behind it
 * has a bounded queue, pace, concurrency, number of tries and deadline, and no failure of it concerns anybody else.
 *
 * The same fact is one event whose count goes up, also across restarts and with two writers (field case D13).
 */
export class EventRecorder {
  readonly #client: EventClient;
  readonly #log: Logger;
  readonly #source: EventSource;
  readonly #queueLimit: number;
  readonly #concurrency: number;
  readonly #requestTimeoutMs: number;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #bucket: TokenBucket;
  /** By event name, oldest first. */
  readonly #waiting = new Map<string, Entry>();
  readonly #underWay = new Set<string>();
  readonly #workers = new Set<Promise<void>>();
  /** What the count of an event is, as far as this process raised it; the least recently used is forgotten first. */
  readonly #counts = new Map<string, number>();
  readonly #logged = new Map<string, { readonly at: number; readonly unlogged: number }>();
  readonly #tally = { sent: 0, aggregated: 0, dropped: 0, failed: 0 };
  /** Ends waiting for the pace: what is left is to be told now, or never. */
  readonly #hurry = new AbortController();
  readonly #abandon = new AbortController();
  #closed = false;
  #failuresInARow = 0;
  #pausedUntil = -Infinity;

  /** Throws RangeError when a bound makes no sense. Starts nothing. */
  constructor(options: EventRecorderOptions) {
    this.#client = options.client;
    this.#log = options.log;
    this.#source = { component: options.component, instance: options.instance };
    this.#queueLimit = atLeastOne('queueLimit', options.queueLimit ?? 5_000);
    this.#concurrency = atLeastOne('concurrency', options.concurrency ?? 2);
    this.#requestTimeoutMs = atLeastOne('requestTimeoutMs', options.requestTimeoutMs ?? 5_000);
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#bucket = new TokenBucket(this.#clock, { perSecond: options.perSecond ?? 10, burst: options.burst ?? 50 });
  }

  get counters(): EventCounters {
    return { ...this.#tally, waiting: this.#waiting.size + this.#underWay.size };
  }

  /** Tells a fact, some time. Returns at once; never throws. */
  record(fact: EventFact): void {
    if (this.#closed) {
      this.#tally.dropped += 1;
      return;
    }
    const namespace = eventNamespace(fact.regarding);
    if (namespace === undefined) {
      this.#fail('Invalid', 1, 'the object of the event is in no namespace that can exist');
      return;
    }
    const now = this.#clock.now();
    this.#enqueue({
      name: eventName(fact),
      namespace,
      fact,
      seen: { count: 1, first: now, last: now },
      attempts: 0,
      unsure: false,
    });
    this.#staff();
  }

  /** Waits until every fact told so far is through, at most `deadlineMs`; whether it was. Goes at the usual pace. */
  async flush(deadlineMs: number): Promise<boolean> {
    const patience = new AbortController();
    const through = async (): Promise<void> => {
      while (this.#workers.size > 0) await Promise.all(this.#workers);
      patience.abort();
    };
    await Promise.race([through(), this.#clock.sleep(deadlineMs, patience.signal)]);
    return this.#workers.size === 0;
  }

  /**
   * Takes no more facts, gives those that wait `patienceMs` to be told, without regard to the pace, and drops the rest.
   * Resolves when nothing of the recorder runs any more; never rejects. May be called again.
   */
  async close(patienceMs = 0): Promise<void> {
    this.#closed = true;
    this.#hurry.abort();
    if (patienceMs > 0) await this.flush(patienceMs);
    this.#abandon.abort();
    await Promise.all(this.#workers);
    for (const { seen } of this.#waiting.values()) this.#drop(seen.count, 'closed');
    this.#waiting.clear();
  }

  #enqueue(entry: Entry): void {
    const same = this.#waiting.get(entry.name);
    if (same !== undefined) {
      const [earlier, later] = same.seen.last <= entry.seen.last ? [same, entry] : [entry, same];
      same.fact = later.fact;
      same.seen = {
        count: same.seen.count + entry.seen.count,
        first: earlier.seen.first,
        last: later.seen.last,
      };
      same.attempts = Math.max(same.attempts, entry.attempts);
      same.unsure ||= entry.unsure;
    } else if (this.#waiting.size >= this.#queueLimit) {
      // The new one goes, not the oldest: what began a storm says more about it than its middle does.
      this.#drop(entry.seen.count, 'the queue is full');
    } else {
      this.#waiting.set(entry.name, entry);
    }
  }

  /** Sees to it that somebody works on what waits. Workers end by themselves when nothing does. */
  #staff(): void {
    if (this.#workers.size >= this.#concurrency || this.#waiting.size === 0) return;
    const worker = this.#work().finally(() => this.#workers.delete(worker));
    this.#workers.add(worker);
  }

  async #work(): Promise<void> {
    // Only so that `record` has returned before anything is sent.
    await Promise.resolve();
    while (this.#nextEntry() !== undefined) {
      await this.#clock.sleep(this.#bucket.take(), this.#hurry.signal);
      const pause = this.#pausedUntil - this.#clock.monotonic();
      if (pause > 0) await this.#clock.sleep(pause, this.#abandon.signal);
      // Chosen only now, so that facts told meanwhile could still join.
      const entry = this.#nextEntry();
      if (entry === undefined) return;
      this.#waiting.delete(entry.name);
      this.#underWay.add(entry.name);
      await this.#tell(entry);
      this.#underWay.delete(entry.name);
    }
  }

  /** The oldest; but never one whose name is under way, or the two would race each other. None once abandoned. */
  #nextEntry(): Entry | undefined {
    if (this.#abandon.signal.aborted) return undefined;
    for (const entry of this.#waiting.values()) {
      if (!this.#underWay.has(entry.name)) return entry;
    }
    return undefined;
  }

  async #tell(entry: Entry): Promise<void> {
    try {
      const outcome = await this.#send(entry);
      this.#tally[outcome] += entry.seen.count;
      this.#failuresInARow = 0;
    } catch (error) {
      if (this.#abandon.signal.aborted) {
        this.#drop(entry.seen.count, 'closed');
        return;
      }
      entry.attempts += 1;
      if (!passes(error) || entry.attempts >= mostAttempts) {
        this.#fail(codeOf(error), entry.seen.count, messageOf(error));
        return;
      }
      // All wait, not only this one: whatever ails the API server, more events do not cure it.
      const delay = retryDelay({
        ...backoff,
        attempt: this.#failuresInARow,
        retryAfterMs: error instanceof KubeError ? error.retryAfterMs : undefined,
        random: this.#random,
      });
      this.#failuresInARow += 1;
      this.#pausedUntil = Math.max(this.#pausedUntil, this.#clock.monotonic() + delay);
      this.#enqueue(entry);
    }
  }

  async #send(entry: Entry): Promise<'sent' | 'aggregated'> {
    const { name, namespace, fact, seen } = entry;
    const known = this.#counts.get(name);
    if (known !== undefined) {
      if (await this.#patchIfThere(entry, known + seen.count)) return 'aggregated';
      // Events live for an hour by default; this one is gone, or its namespace is, which the create will tell.
      this.#counts.delete(name);
    }
    try {
      const body = newEvent(name, namespace, fact, seen, this.#source);
      await this.#request((options) => this.#client.create(eventResource, { namespace }, body, options));
      this.#remember(name, seen.count);
      return 'sent';
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'AlreadyExists') {
        // A server that throttles has not looked at the request; of any other error it cannot be told.
        entry.unsure ||= code !== 'Throttled';
        throw error;
      }
    }
    // Most likely made by our own earlier try; to raise the count would tell of a second time that never was.
    if (entry.unsure) return 'sent';
    // An earlier process or another writer told it: the count is the server's to know, so it is asked along the way.
    const event = await this.#patch(entry);
    await this.#patch(entry, countOf(event) + seen.count);
    return 'aggregated';
  }

  async #patchIfThere(entry: Entry, count: number): Promise<boolean> {
    try {
      await this.#patch(entry, count);
      return true;
    } catch (error) {
      if (codeOf(error) === 'NotFound') return false;
      throw error;
    }
  }

  async #patch({ name, namespace, fact, seen }: Entry, count?: number): Promise<JsonObject> {
    const body = repeatedEvent(fact, seen, this.#source, count);
    const event = await this.#request((options) =>
      this.#client.patch(eventResource, { namespace, name }, body, options),
    );
    if (count !== undefined) this.#remember(name, count);
    return event;
  }

  #request<T>(send: (options: EventRequestOptions) => Promise<T>): Promise<T> {
    const timeoutMs = this.#requestTimeoutMs;
    return answerWithin(this.#clock, timeoutMs, this.#abandon.signal, (signal) => send({ signal, timeoutMs }));
  }

  #remember(name: string, count: number): void {
    this.#counts.delete(name);
    this.#counts.set(name, count);
    const [oldest] = this.#counts.keys();
    if (this.#counts.size > mostCounts && oldest !== undefined) this.#counts.delete(oldest);
  }

  #drop(count: number, why: 'the queue is full' | 'closed'): void {
    this.#tally.dropped += count;
    this.#logNowAndThen(why, count, 'events dropped');
  }

  #fail(code: string, count: number, detail: string): void {
    this.#tally.failed += count;
    this.#logNowAndThen(code, count, 'events could not be written', detail);
  }

  /** The reasons are few, so the memory of them is bounded. */
  #logNowAndThen(reason: string, count: number, message: string, detail?: string): void {
    const now = this.#clock.monotonic();
    const before = this.#logged.get(reason);
    const events = (before?.unlogged ?? 0) + count;
    const quiet = before !== undefined && now - before.at < quietMs;
    this.#logged.set(reason, quiet ? { at: before.at, unlogged: events } : { at: now, unlogged: 0 });
    if (!quiet) this.#log.warn({ reason, events, ...(detail === undefined ? {} : { detail }) }, message);
  }
}

/** Whether the same request may well succeed later. */
function passes(error: unknown): boolean {
  const policy = policyFor(error);
  return error instanceof DeadlineExceeded || policy === 'retry' || policy === 'lostRace';
}

function atLeastOne(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new RangeError(`${name} must be a whole number of at least 1, got ${value}`);
}
