/** Work that waits for longer than this while nothing gets done means that the loop is stuck. */
const stuckAfterMs = 120_000;

export interface LivenessOptions {
  /** How long the work that has waited longest has done so; 0 where none waits. */
  readonly longestWaitMs: () => number;
  /** Why no work is to be expected now, whoever looks; undefined where there is no such reason. */
  readonly excuse: () => string | undefined;
  /** Milliseconds on a clock that never jumps. */
  readonly now?: () => number;
}

/**
 * Whether the loop turns. A loop that is frozen altogether answers no probe; this is for one in which requests are answered
 * and timers fire, but no work is done any more.
 */
export class Liveness {
  readonly #options: LivenessOptions;
  readonly #now: () => number;
  #workedAt: number;

  constructor(options: LivenessOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#workedAt = this.#now();
  }

  /** Something was done, or work has only begun. */
  worked(): void {
    this.#workedAt = this.#now();
  }

  /** A health check. */
  problem(): string | undefined {
    if (this.#options.excuse() !== undefined) return undefined;
    const stuckMs = Math.min(this.#options.longestWaitMs(), this.#now() - this.#workedAt);
    if (stuckMs < stuckAfterMs) return undefined;
    return `namespaces wait, and none was done for ${(stuckMs / 1000).toFixed(0)} s`;
  }
}
