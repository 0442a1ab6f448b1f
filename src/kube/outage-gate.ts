import { systemClock, type Clock } from './clock.ts';
import { KubeError } from './errors.ts';
import { retryDelay } from './retry-delay.ts';

export interface OutageGateOptions {
  readonly clock?: Clock;
  /** Uniform in [0, 1). */
  readonly random?: () => number;
  /** Called when the server answers again after it was away for a while. */
  readonly onReturn?: () => void;
}

/** What is known while the server is taken to be away. */
interface Outage {
  /** On the monotonic clock. */
  readonly since: number;
  /** Requests that were let through to see whether it is back. */
  probes: number;
  /** Not before this moment, on the monotonic clock, is the next one let through. */
  probeAt: number;
  probing: boolean;
  /** Resolves when there is something new: the outage is over, or somebody else may probe. */
  news: PromiseWithResolvers<undefined>;
}

/** So many requests in a row, of whomever, that got no connection: before that it may be one object's own fault. */
const tolerated = 5;
const probeBaseMs = 250;
/** Small, since it is also how late we notice that the server is back. */
const probeCapMs = 2_000;
/** Whoever waits looks again after this long at the latest; there is always news before that. */
const longestWaitMs = 60_000;
/** A shorter outage has delayed nothing by much. */
const longMs = 3_000;

/**
 * Holds requests back while the API server cannot be reached: one at a time goes through now and then, and when one is
 * answered all go on. Otherwise work on a thousand namespaces would ask a dead server as fast as it refuses connections.
 *
 * Only connections that fail count, and answers that no API server gave: an error that the API server sends may be the
 * fault of one tenant's webhook, and must not hold up another's.
 */
export class OutageGate {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #onReturn: (() => void) | undefined;
  #failures = 0;
  #outage: Outage | undefined;

  constructor(options: OutageGateOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#onReturn = options.onReturn;
  }

  /** Whether requests are held back. */
  get away(): boolean {
    return this.#outage !== undefined;
  }

  /**
   * Makes a request when it may be made, and settles as it does. After `signal` is aborted nothing is held back: then it
   * is for `request` to see that it is not wanted any more.
   */
  async pass<T>(signal: AbortSignal, request: () => Promise<T>): Promise<T> {
    const probed = this.#outage === undefined ? undefined : await this.#turn(this.#outage, signal);
    try {
      const answer = await request();
      this.reached();
      return answer;
    } catch (error) {
      if (meansAway(error)) this.#failed();
      else if (isAnswer(error)) this.reached();
      throw error;
    } finally {
      if (probed !== undefined) this.#probeEnded(probed);
    }
  }

  /** Somebody, through the gate or not, has had an answer from the API server. */
  reached(): void {
    this.#failures = 0;
    const outage = this.#outage;
    if (outage === undefined) return;
    this.#outage = undefined;
    outage.news.resolve(undefined);
    if (this.#clock.monotonic() - outage.since >= longMs) this.#onReturn?.();
  }

  /** Resolves to the outage that the caller is to probe; to undefined when it is over, or the signal is aborted. */
  async #turn(first: Outage, signal: AbortSignal): Promise<Outage | undefined> {
    for (let outage: Outage | undefined = first; outage !== undefined && !isAborted(signal); outage = this.#outage) {
      if (outage.probing) {
        await this.#wait(outage, longestWaitMs, signal);
        continue;
      }
      outage.probing = true;
      await this.#wait(outage, outage.probeAt - this.#clock.monotonic(), signal);
      if (this.#outage === outage && !isAborted(signal)) return outage;
      this.#probeEnded(outage);
    }
    return undefined;
  }

  /** Resolves after so long, at the next news, or when the signal is aborted. */
  async #wait(outage: Outage, ms: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const end = (): void => {
      over.abort();
    };
    signal.addEventListener('abort', end, { once: true });
    try {
      await Promise.race([outage.news.promise, this.#clock.sleep(ms, over.signal)]);
    } finally {
      signal.removeEventListener('abort', end);
      end();
    }
  }

  #probeEnded(outage: Outage): void {
    outage.probing = false;
    outage.news.resolve(undefined);
    outage.news = Promise.withResolvers<undefined>();
  }

  #failed(): void {
    this.#failures += 1;
    if (this.#failures < tolerated) return;
    const now = this.#clock.monotonic();
    this.#outage ??= { since: now, probes: 0, probeAt: 0, probing: false, news: Promise.withResolvers<undefined>() };
    const attempt = this.#outage.probes;
    this.#outage.probes += 1;
    const options = { attempt, baseMs: probeBaseMs, capMs: probeCapMs, random: this.#random };
    this.#outage.probeAt = now + retryDelay(options);
  }
}

/** No connection, one that broke, or what a load balancer says that has no API server behind it. */
function meansAway(error: unknown): boolean {
  if (!(error instanceof KubeError)) return false;
  const { code, status, reason } = error;
  return code === 'Unreachable' || ((status === 502 || status === 503) && reason === undefined);
}

/** The API server itself has said something, whatever it was. A request without an answer in time says nothing either way. */
function isAnswer(error: unknown): boolean {
  return error instanceof KubeError && error.status !== undefined && error.code !== 'Malformed';
}

/** Asked through a function, since the compiler takes what was seen before an await for settled. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
