import type { Logger } from 'pino';
import type { KubeClient } from './client.ts';
import { systemClock, type Clock } from './clock.ts';
import { Deadline, untilAborted } from './deadline.ts';
import { KubeError, policyFor } from './errors.ts';
import { objectAt, printable, stringAt } from './json.ts';
import { PageSize } from './page-size.ts';
import { listAll } from './pager.ts';
import { qualifiedName, type JsonObject, type Resource } from './resource.ts';
import { hasReached, wentBack } from './resource-version.ts';
import { retryDelay } from './retry-delay.ts';
import { requestError } from './status-error.ts';
import type { Store } from './store.ts';
import type { WatchEvent } from './watch-stream.ts';

/**
 * - `syncing`: the first complete list is not there yet.
 * - `live`: listed, and the watch is open.
 * - `offline`: the server cannot be reached or fails; the store holds what was last known.
 * - `kindNotInstalled`, `forbidden`: as said; looked at again now and then, so a CRD or role that comes later is found.
 * - `stopped`: `run` has ended.
 */
export type ReflectorPhase = 'syncing' | 'live' | 'offline' | 'kindNotInstalled' | 'forbidden' | 'stopped';

export interface ReflectorState {
  readonly phase: ReflectorPhase;
  /** Milliseconds since the epoch at which this phase began. */
  readonly since: number;
  /** Why, in one line, for every phase but `syncing` and `live`. */
  readonly reason?: string;
}

export type StateListener = (state: ReflectorState) => void;

export interface ReflectorTuning {
  /** A full list at least this often, whatever the watch says; spread by a tenth either way. */
  readonly relistIntervalMs: number;
  /** The server is asked to end a watch after this long, at random within the bounds. */
  readonly watchMinSeconds: number;
  readonly watchMaxSeconds: number;
  /** A watch that is silent for this long is taken for dead. */
  readonly watchIdleMs: number;
  /** A watch that ends sooner, without an event, counts as an error. */
  readonly shortWatchMs: number;
  readonly retryBaseMs: number;
  /** Small, since it is also how late we notice that the server is back. */
  readonly retryCapMs: number;
  /** The same for a missing kind or right, which only an admin brings. */
  readonly adminRetryCapMs: number;
  /** Without an error for this long, the next one counts as the first. */
  readonly quietMs: number;
  readonly pageCapBytes: number;
}

const MIB = 1024 * 1024;

const DEFAULT_TUNING: ReflectorTuning = {
  relistIntervalMs: 600_000,
  watchMinSeconds: 300,
  watchMaxSeconds: 600,
  watchIdleMs: 150_000,
  shortWatchMs: 1_000,
  retryBaseMs: 500,
  retryCapMs: 3_000,
  adminRetryCapMs: 15_000,
  quietMs: 60_000,
  pageCapBytes: 16 * MIB,
};

export interface ReflectorOptions<R> extends Partial<ReflectorTuning> {
  readonly client: Pick<KubeClient, 'listPage' | 'watch'>;
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  /** The store's key for an object; undefined leaves it out. Must depend on the object's identity alone. */
  readonly key: (object: JsonObject) => string | undefined;
  /** What is kept of an object; undefined leaves it out. What throws is logged and leaves out that object only. */
  readonly project: (object: JsonObject) => R | undefined;
  readonly store: Store<R>;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** Rejects `waitForSync`: says what has not come, and what is in the way. */
export class SyncTimeoutError extends Error {
  override readonly name = 'SyncTimeoutError';
  readonly state: ReflectorState;

  constructor(message: string, state: ReflectorState) {
    super(message);
    this.state = state;
  }
}

/**
 * What the watch tells can no longer be trusted, or there is nothing to watch from; a list settles it. Thrown within
 * this file only.
 */
class Doubt extends Error {
  override readonly name = 'Doubt';
}

/**
 * Keeps a store equal to one collection of the API server: a complete list, then the watch that follows it, and a new
 * list on any doubt. Nothing runs before `run` or `listOnce` is called.
 *
 * A list is a watch that begins with what is there, since it costs the server the same for each object however many there are,
 * and no page is in memory. Where that fails the list comes in pages; where it fails again and again, all do.
 */
export class Reflector<R> {
  readonly #options: ReflectorOptions<R>;
  readonly #tuning: ReflectorTuning;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #log: Logger;
  readonly #pageSize = new PageSize();
  /** Streams in a row that were refused as such or did not come to their end. */
  #brokenStreams = 0;
  /** How the next list comes. */
  #inPages = false;
  readonly #listeners = new Set<StateListener>();
  #state: ReflectorState;
  readonly #synced = Promise.withResolvers<undefined>();
  #hasSynced = false;
  /** Of the last list. */
  #resourceVersion = '';
  /** How far list and watch have come: the store knows of everything up to there. */
  #seen = '';
  #running = false;
  #projectionErrors = 0;
  /** Failures in a row, of the phase that they led to. */
  #attempt = 0;
  #failingPhase: ReflectorPhase | undefined;
  #lastFailureAt = Number.NEGATIVE_INFINITY;
  /** On the monotonic clock. */
  #relistAt = 0;
  /** A watch is open and has told all that was there when it began. */
  #following = false;
  /** On the monotonic clock: when the store was last known to be what the server has, unless that is now. */
  #currentAt = Number.NEGATIVE_INFINITY;

  constructor(options: ReflectorOptions<R>) {
    this.#options = options;
    this.#tuning = tuningOf(options);
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#log = options.log.child({ resource: qualifiedName(options.resource) });
    this.#state = { phase: 'syncing', since: this.#clock.now() };
  }

  get state(): ReflectorState {
    return this.#state;
  }

  /** True once a complete list has been in the store; it stays true. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** How often `key` or `project` threw, for a metric. */
  get projectionErrors(): number {
    return this.#projectionErrors;
  }

  /**
   * For how long the store may have been behind the server, in milliseconds: 0 while a watch is followed, else the time
   * since the last one ended or the last list came in; infinite before the first.
   */
  get staleForMs(): number {
    return this.#following ? 0 : this.#clock.monotonic() - this.#currentAt;
  }

  /** Returns the function that ends the subscription. */
  onState(listener: StateListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /**
   * Resolves after the first complete list. Rejects with SyncTimeoutError when it has not come within `timeoutMs`, and with
   * KubeError `Aborted` on the signal.
   */
  async waitForSync(options: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {}): Promise<void> {
    if (this.#hasSynced) return;
    const { signal, timeoutMs = 60_000 } = options;
    using deadline = new Deadline(timeoutMs, signal);
    try {
      await untilAborted(this.#synced.promise, deadline.signal);
    } catch {
      const request = { verb: 'list', resource: this.#options.resource, ref: { namespace: this.#options.namespace } };
      if (!deadline.expired) throw requestError(request, 'Aborted', 'ended by the caller');
      const { phase, reason } = this.#state;
      const name = qualifiedName(this.#options.resource);
      throw new SyncTimeoutError(
        `no complete list of ${name} within ${timeoutMs / 1000} s (${phase}${reason === undefined ? '' : `: ${reason}`})`,
        this.#state,
      );
    }
  }

  /** Puts the complete collection into the store, once. Rejects with KubeError and then leaves the store as it was. */
  async listOnce(signal?: AbortSignal): Promise<void> {
    await this.#listPages(signal, 4);
  }

  /**
   * Takes in what a request of our own answered, so that nothing is decided on older knowledge until the watch tells it.
   * Ignored where the watch has come that far already: it may have told, too, that the object was deleted since, and an
   * answer that arrives later would bring it back to life for good.
   */
  learn(key: string, record: R, resourceVersion: string | undefined): void {
    if (resourceVersion !== undefined && hasReached(this.#seen, resourceVersion)) return;
    this.#options.store.set(key, record);
  }

  /** Lists and watches until the signal is aborted. Faults of the API never make it reject. */
  async run(signal: AbortSignal): Promise<void> {
    const { resource } = this.#options;
    if (this.#running) throw new Error(`the reflector of ${qualifiedName(resource)} already runs`);
    this.#running = true;
    if (this.#state.phase === 'stopped') this.#enter('syncing');
    try {
      await this.#loop(signal);
    } finally {
      this.#running = false;
      this.#enter('stopped', 'ended by its owner');
    }
  }

  async #loop(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        let resourceVersion = await this.#begin(signal);
        while (this.#clock.monotonic() < this.#relistAt) {
          resourceVersion = await this.#follow(this.#watch(resourceVersion, signal), resourceVersion);
        }
      } catch (error) {
        // After an abort the error is its echo.
        if (!isAborted(signal)) await this.#backOff(error, signal);
      }
    }
  }

  /** Brings a complete list into the store, and where it can follows it; resolves with how far that got. */
  async #begin(signal: AbortSignal): Promise<string> {
    if (this.#inPages) {
      // Where pages fail and streams do not, it is the turn of a stream.
      this.#inPages = this.#brokenStreams >= BROKEN_STREAMS;
      return await this.#listPages(signal, 1);
    }
    const watch = this.#watch(undefined, signal);
    let resourceVersion;
    try {
      resourceVersion = await this.#takeList(watch.events);
    } catch (error) {
      this.#inPages = true;
      if (watch.isOpen() || isRefusal(error)) this.#streamBroke(error);
      // A right to watch that is missing is said by the watch that follows.
      if (!isRefusal(error) && !isForbidden(error)) throw error;
      return await this.#begin(signal);
    }
    this.#brokenStreams = 0;
    this.#opened();
    return await this.#follow(watch, resourceVersion);
  }

  #streamBroke(error: unknown): void {
    this.#brokenStreams += 1;
    if (this.#brokenStreams !== BROKEN_STREAMS) return;
    this.#log.info(
      { reason: reasonOf(error) },
      'lists are not streamed to their end: they are read in pages from now on',
    );
  }

  async #listPages(signal: AbortSignal | undefined, firstPageTries: number): Promise<string> {
    const { client, resource, namespace, labelSelector } = this.#options;
    const records = new Map<string, R>();
    const resourceVersion = await listAll({
      client,
      resource,
      namespace,
      labelSelector,
      pageSize: this.#pageSize,
      pageCapBytes: this.#tuning.pageCapBytes,
      onItems: (items) => {
        for (const item of items) this.#put(item, records);
      },
      onRestart: () => {
        records.clear();
      },
      firstPageTries,
      signal,
      clock: this.#clock,
      random: this.#random,
    });
    this.#listed(records, resourceVersion);
    return resourceVersion;
  }

  #listed(records: ReadonlyMap<string, R>, resourceVersion: string): void {
    if (wentBack(this.#resourceVersion, resourceVersion)) {
      this.#log.warn({ before: this.#resourceVersion, resourceVersion }, 'the API server went back in time');
    }
    this.#resourceVersion = resourceVersion;
    this.#seen = resourceVersion;
    this.#options.store.replace(records);
    this.#currentAt = this.#clock.monotonic();
    this.#hasSynced = true;
    this.#synced.resolve(undefined);
    this.#relistAt = this.#clock.monotonic() + this.#tuning.relistIntervalMs * (EARLIEST_RELIST + this.#random() / 5);
  }

  /** Reads up to the end of what was there when the watch began. Without that end nothing is in the store. */
  async #takeList(events: AsyncIterator<WatchEvent, void>): Promise<string> {
    const records = new Map<string, R>();
    for (let next = await events.next(); next.done !== true; next = await events.next()) {
      const event = next.value;
      this.#apply(event, records);
      if (event.type !== 'BOOKMARK' || event.initialEventsEnd !== true) continue;
      this.#listed(records, event.resourceVersion);
      return event.resourceVersion;
    }
    throw this.#watchError('ended before the list was complete');
  }

  /** Opens a watch from there, or one that begins with a list. */
  #watch(from: string | undefined, signal: AbortSignal): Watch {
    const { client, resource, namespace, labelSelector } = this.#options;
    const { watchMinSeconds, watchMaxSeconds, watchIdleMs, relistIntervalMs } = this.#tuning;
    const started = this.#clock.monotonic();
    // The watch also ends when the next list is due, so that no second timer has to interrupt it.
    const untilRelistMs = from === undefined ? relistIntervalMs * EARLIEST_RELIST : this.#relistAt - started;
    const wanted = Math.round(watchMinSeconds + (watchMaxSeconds - watchMinSeconds) * this.#random());
    const timeoutSeconds = Math.min(wanted, Math.max(1, Math.ceil(untilRelistMs / 1000)));
    let isOpen = false;
    const events = client.watch(resource, {
      namespace,
      labelSelector,
      resourceVersion: from,
      timeoutSeconds,
      idleTimeoutMs: watchIdleMs,
      signal,
      onOpen: () => {
        isOpen = true;
        if (from !== undefined) this.#opened();
      },
    });
    return { events, isOpen: () => isOpen, started, askedMs: timeoutSeconds * 1000 };
  }

  /** From here on the store is up to date, until `#follow` ends. */
  #opened(): void {
    this.#following = true;
    this.#enter('live');
  }

  /** Follows the collection until the server ends the watch in good order; resolves with where it got to. */
  async #follow({ events, started, askedMs }: Watch, from: string): Promise<string> {
    let resourceVersion = from;
    let count = 0;
    try {
      for await (const event of events) {
        // An etcd that was restored from a backup counts from an earlier number again; a watch from a number that it has
        // not reached yet stays silent until it gets there. Bookmarks show it within a minute or so.
        if (wentBack(resourceVersion, event.resourceVersion)) {
          throw new Doubt(`resourceVersion went back from ${resourceVersion} to ${event.resourceVersion}`);
        }
        resourceVersion = event.resourceVersion;
        this.#seen = resourceVersion;
        count += 1;
        this.#apply(event, this.#options.store);
      }
    } finally {
      if (this.#following) this.#currentAt = this.#clock.monotonic();
      this.#following = false;
    }
    if (count === 0) this.#judgeSilentEnd(this.#clock.monotonic() - started, askedMs);
    return resourceVersion;
  }

  /** Throws unless a watch that ended without any event lasted as long as was asked for. */
  #judgeSilentEnd(lastedMs: number, askedMs: number): void {
    const lasted = `ended after ${Math.round(lastedMs)} ms without an event`;
    // Otherwise a server that closes each watch at once would be asked as fast as it answers.
    if (lastedMs < Math.min(this.#tuning.shortWatchMs, askedMs / 2)) {
      throw this.#watchError(lasted);
    }
    // A server that stops closes its watches in good order. Nothing has shown that the one behind the next watch has come
    // as far as we have, and if it has not, that watch will be silent.
    if (lastedMs < askedMs - EARLY_MS) throw new Doubt(lasted);
  }

  #apply(event: WatchEvent, target: Records<R>): void {
    if (event.type === 'BOOKMARK') return;
    this.#put(event.object, target, event.type === 'DELETED');
  }

  #put(object: JsonObject, target: Records<R>, isDeleted = false): void {
    const key = this.#keyOf(object);
    if (key === undefined) return;
    const record = isDeleted ? undefined : this.#project(object);
    if (record === undefined) target.delete(key);
    else target.set(key, record);
  }

  #keyOf(object: JsonObject): string | undefined {
    return this.#guarded(object, this.#options.key);
  }

  #project(object: JsonObject): R | undefined {
    return this.#guarded(object, this.#options.project);
  }

  #guarded<T>(object: JsonObject, read: (object: JsonObject) => T | undefined): T | undefined {
    try {
      return read(object);
    } catch (error) {
      this.#projectionErrors += 1;
      // It is our fault, and one that every object of a kind may share: said often enough to be found, not more.
      if (this.#projectionErrors <= LOGGED_PROJECTION_ERRORS) {
        const { namespace, name } = identityOf(object);
        this.#log.error({ err: error, namespace, name }, 'object left out: it could not be read');
      }
      return undefined;
    }
  }

  /** Waits before the next list, longer with each failure in a row. */
  async #backOff(error: unknown, signal: AbortSignal): Promise<void> {
    const { retryBaseMs, retryCapMs, adminRetryCapMs, quietMs } = this.#tuning;
    const phase = phaseFor(error);
    const now = this.#clock.monotonic();
    // A server that was away for long and now says "forbidden" while it still starts is at its first failure of that kind.
    if (phase !== this.#failingPhase || now - this.#lastFailureAt > quietMs) this.#attempt = 0;
    this.#failingPhase = phase;
    this.#lastFailureAt = now;
    const attempt = this.#attempt;
    this.#attempt += 1;
    if (isStale(error)) {
      // Nothing is broken: the position is no good, and a list gives a new one. Only the second in a row has to wait.
      this.#log.info({ reason: reasonOf(error) }, 'listing anew');
      if (attempt === 0) return;
    } else {
      if (!(error instanceof KubeError)) this.#log.error({ err: error }, 'reflector failed');
      this.#enter(phase, reasonOf(error));
    }
    const capMs = phase === 'offline' ? retryCapMs : adminRetryCapMs;
    const delay = retryDelay({
      attempt,
      retryAfterMs: error instanceof KubeError ? error.retryAfterMs : undefined,
      baseMs: retryBaseMs,
      capMs,
      // An API server that starts answers 503 with five seconds and is ready after one (seen): it is not asked more often
      // than one that is down, but not less often either. A 429 is taken at its word.
      ...(error instanceof KubeError && error.status === 503 ? { retryAfterCapMs: capMs } : {}),
      random: this.#random,
    });
    await this.#clock.sleep(delay, signal);
  }

  /** One log line a change of phase, not one a try. */
  #enter(phase: ReflectorPhase, reason?: string): void {
    const before = this.#state;
    if (before.phase === phase && before.reason === reason) return;
    const now = this.#clock.now();
    this.#state = {
      phase,
      since: before.phase === phase ? before.since : now,
      ...(reason === undefined ? {} : { reason }),
    };
    if (before.phase === phase) {
      this.#log.debug({ phase, reason }, 'reflector still fails');
    } else if (phase === 'syncing' || phase === 'live' || phase === 'stopped') {
      this.#log.info({ phase, before: before.phase, seconds: (now - before.since) / 1000 }, 'reflector changed phase');
    } else {
      this.#log.warn({ phase, before: before.phase, reason }, 'reflector changed phase');
    }
    for (const listener of [...this.#listeners]) {
      try {
        listener(this.#state);
      } catch (error) {
        this.#log.error({ err: error }, 'a listener of the reflector failed');
      }
    }
  }

  #watchError(detail: string): KubeError {
    const { resource, namespace } = this.#options;
    const name = qualifiedName(resource);
    const message = `watch ${name}: ${detail}`;
    return new KubeError({ resource: name, namespace, verb: 'watch', code: 'ServerError', message });
  }
}

/** A watch that was opened. */
interface Watch {
  readonly events: AsyncGenerator<WatchEvent, void, void>;
  /** The server has accepted it. */
  readonly isOpen: () => boolean;
  /** On the monotonic clock. */
  readonly started: number;
  /** After this long the server should end it. */
  readonly askedMs: number;
}

/** Where records go to. */
interface Records<R> {
  set(key: string, record: R): void;
  delete(key: string): void;
}

/** Of the interval. */
const EARLIEST_RELIST = 0.9;

/** After so many in a row it is not the network. */
const BROKEN_STREAMS = 2;

/** A watch that ends this much before its time ended early. */
const EARLY_MS = 2_000;

const LOGGED_PROJECTION_ERRORS = 20;

function identityOf(object: JsonObject): { readonly namespace?: string; readonly name: string } {
  const metadata = objectAt(object, 'metadata');
  const namespace = stringAt(metadata, 'namespace');
  return {
    ...(namespace === undefined ? {} : { namespace: printable(namespace, 63) }),
    name: printable(stringAt(metadata, 'name') ?? '', 253),
  };
}

function phaseFor(error: unknown): ReflectorPhase {
  if (!(error instanceof KubeError)) return 'offline';
  if (error.code === 'KindNotInstalled') return 'kindNotInstalled';
  return policyFor(error) === 'needsAdmin' ? 'forbidden' : 'offline';
}

/** Of the request as such, whatever state the server is in. */
function isRefusal(error: unknown): boolean {
  return error instanceof KubeError && (error.code === 'Invalid' || error.code === 'BadRequest');
}

function isForbidden(error: unknown): boolean {
  return error instanceof KubeError && error.code === 'Forbidden';
}

function isStale(error: unknown): boolean {
  return error instanceof Doubt || (error instanceof KubeError && error.code === 'Gone');
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown fault';
}

/** Asked through a function, since the compiler takes what a loop's condition saw for settled. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

function tuningOf(options: Partial<ReflectorTuning>): ReflectorTuning {
  const tuning: Record<keyof ReflectorTuning, number> = { ...DEFAULT_TUNING };
  for (const name of TUNING_NAMES) {
    const value = options[name] ?? DEFAULT_TUNING[name];
    if (!(value > 0 && Number.isFinite(value))) {
      throw new RangeError(`Reflector: ${name} must be a positive number, got ${String(value)}`);
    }
    tuning[name] = value;
  }
  if (tuning.watchMinSeconds > tuning.watchMaxSeconds) {
    throw new RangeError('Reflector: watchMinSeconds must not be above watchMaxSeconds');
  }
  return tuning;
}

const TUNING_NAMES = [
  'relistIntervalMs',
  'watchMinSeconds',
  'watchMaxSeconds',
  'watchIdleMs',
  'shortWatchMs',
  'retryBaseMs',
  'retryCapMs',
  'adminRetryCapMs',
  'quietMs',
  'pageCapBytes',
] as const;
