import type { RequestInfo } from './client.ts';

/** Requests that say how the API server is doing; lists take as long as they are long, events and Leases wait for nobody. */
const telling: ReadonlySet<string> = new Set(['get', 'create', 'update']);

/** How low it can get. */
const floor = 2;

/** So many answers are looked at together. Their median counts: a webhook that is slow for one tenant is not the server. */
const windowSize = 24;

/**
 * Each answer moves what is usual up or down by a factor: a running median, in which what lasts prevails in the end. The first
 * answers move it far, by 1 + 1/n, since the very first may be a chance one.
 */
const learning = 0.01;

/** Answers that take up to so many times as long as usual are no reason to ask for less. */
const tolerance = 2;

/** How long an answer of one kind of request usually takes. */
interface Usual {
  readonly seconds: number;
  /** So many have told. */
  readonly answers: number;
}

/** The most that one window takes off. */
const steepest = 0.5;

/**
 * How many requests may be in flight at once, as the API server bears it: the ceiling at first; fewer when it takes longer
 * than usual, in proportion; half when it says 429; more again, one by one, while it answers as fast as usual. After the Gradient2 limit of Netflix'
 * concurrency-limits, with what is usual kept for each kind of request, since a status takes several times as long as a get.
 */
export class ConcurrencyLimit {
  /** The most that it can get. */
  readonly ceiling: number;
  readonly #usual = new Map<string, Usual>();
  #limit: number;
  #ratios: number[] = [];
  /** Requests that were in flight when one was throttled will be as well; that is one refusal. */
  #throttledUntilWindow = false;

  /** @param ceiling the most that it can get, from 1 */
  constructor(ceiling: number) {
    if (!(Number.isInteger(ceiling) && ceiling > 0)) throw new RangeError(`ceiling must be a positive integer`);
    this.ceiling = ceiling;
    this.#limit = ceiling;
  }

  /** A whole number from 1 to the ceiling. */
  get current(): number {
    return Math.floor(this.#limit);
  }

  /** Takes in a request that is over. */
  observe({ verb, resource, code, seconds }: Pick<RequestInfo, 'verb' | 'resource' | 'code' | 'seconds'>): void {
    if (!telling.has(verb)) return;
    if (code === 'Throttled') this.#throttled();
    if (code !== 'OK') return;
    const kind = `${verb} ${resource}`;
    const usual = this.#usual.get(kind) ?? { seconds, answers: 0 };
    this.#usual.set(kind, learned(usual, seconds));
    this.#ratios.push(usual.seconds > 0 ? seconds / usual.seconds : 1);
    if (this.#ratios.length >= windowSize) this.#windowEnded();
  }

  #windowEnded(): void {
    const sorted = this.#ratios.toSorted((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)] ?? 1;
    this.#ratios = [];
    this.#throttledUntilWindow = false;
    if (median <= tolerance) this.#set(this.#limit + 1);
    else this.#set(this.#limit * Math.max(steepest, tolerance / median));
  }

  #throttled(): void {
    if (this.#throttledUntilWindow) return;
    this.#throttledUntilWindow = true;
    this.#ratios = [];
    this.#set(this.#limit * steepest);
  }

  #set(limit: number): void {
    this.#limit = Math.min(this.ceiling, Math.max(Math.min(floor, this.ceiling), limit));
  }
}

function learned({ seconds: usual, answers }: Usual, seconds: number): Usual {
  const step = 1 + Math.max(learning, 1 / (answers + 1));
  const moved = seconds > usual ? Math.min(seconds, usual * step) : Math.max(seconds, usual / step);
  return { seconds: moved, answers: answers + 1 };
}
