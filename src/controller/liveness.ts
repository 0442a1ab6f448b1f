/** Work that waits for longer than this while nothing gets done means that the loop is stuck. */
const stuckAfterMs = 120_000;

/** A kind that is not followed is tried again every few seconds, and a try ends within the deadline of a list, streamed or not. */
const untriedAfterMs = 300_000;

export interface LivenessOptions {
  /** How long the work that has waited longest has done so; 0 where none waits. */
  readonly longestWaitMs: () => number;
  /** The kind that is not followed now, so that no work is to be expected; undefined where all are. */
  readonly unfollowed: () => string | undefined;
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
  /** By kind: when a list or watch of it last came to an end. */
  readonly #triedAt = new Map<string, number>();
  readonly #began: number;

  constructor(options: LivenessOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#workedAt = this.#now();
    this.#began = this.#workedAt;
  }

  /** Something was done, or work has only begun. */
  worked(): void {
    this.#workedAt = this.#now();
  }

  /** A list or watch of the kind is over, whatever came of it. */
  tried(kind: string): void {
    this.#triedAt.set(kind, this.#now());
  }

  /** A health check: the API server may be away, which no restart would mend, but not be left alone. */
  watchProblem(): string | undefined {
    const kind = this.#options.unfollowed();
    if (kind === undefined) return undefined;
    const untriedMs = this.#now() - (this.#triedAt.get(kind) ?? this.#began);
    if (untriedMs < untriedAfterMs) return undefined;
    return `${kind} is not followed, and was not tried for ${(untriedMs / 1000).toFixed(0)} s`;
  }

  /** A health check. */
  problem(): string | undefined {
    if (this.#options.unfollowed() !== undefined) return undefined;
    const stuckMs = Math.min(this.#options.longestWaitMs(), this.#now() - this.#workedAt);
    if (stuckMs < stuckAfterMs) return undefined;
    return `namespaces wait, and none was done for ${(stuckMs / 1000).toFixed(0)} s`;
  }
}
