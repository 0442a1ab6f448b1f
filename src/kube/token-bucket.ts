import type { Clock } from './clock.ts';

/** Lets `burst` through at once and `perSecond` in the long run. */
export class TokenBucket {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #perSecond: number;
  readonly #burst: number;
  /** Negative: so many have been promised the tokens of the time to come. */
  #tokens: number;
  #filledAt: number;

  /** Throws RangeError when a bound is not a positive number. */
  constructor(clock: Pick<Clock, 'monotonic'>, options: { readonly perSecond: number; readonly burst: number }) {
    const { perSecond, burst } = options;
    if (!(perSecond > 0)) throw new RangeError(`perSecond must be positive, got ${perSecond}`);
    if (!(burst >= 1)) throw new RangeError(`burst must be at least 1, got ${burst}`);
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#filledAt = clock.monotonic();
  }

  /** Takes a token and returns for how many milliseconds the taker has to wait before he may use it. */
  take(): number {
    const now = this.#clock.monotonic();
    const filled = this.#tokens + ((now - this.#filledAt) / 1_000) * this.#perSecond;
    this.#tokens = Math.min(this.#burst, filled) - 1;
    this.#filledAt = now;
    return Math.max(0, (-this.#tokens / this.#perSecond) * 1_000);
  }
}
