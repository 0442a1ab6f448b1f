import type { PassOutcome } from '../observability/metrics.ts';

/** Follows a pass over all namespaces, whose parts are done in any order among other work. */
export class PassTracker {
  readonly #onEnd: (outcome: PassOutcome, seconds: number) => void;
  #open: Set<string> | undefined;
  #began = 0;
  #failed = 0;
  #succeeded = 0;

  constructor(onEnd: (outcome: PassOutcome, seconds: number) => void) {
    this.#onEnd = onEnd;
  }

  /** Namespaces that the present pass has still to look at. */
  get remaining(): number {
    return this.#open?.size ?? 0;
  }

  /** Begins a pass. One that is not through yet goes on under the new one's name. */
  begin(namespaces: Iterable<string>): void {
    this.#open = new Set(namespaces);
    this.#began = performance.now();
    this.#failed = 0;
    this.#succeeded = 0;
    this.#endIfThrough();
  }

  /** A namespace was looked at, by whatever cause. */
  done(namespace: string, failed: boolean): void {
    if (this.#open?.delete(namespace) !== true) return;
    if (failed) this.#failed += 1;
    else this.#succeeded += 1;
    this.#endIfThrough();
  }

  #endIfThrough(): void {
    if (this.#open?.size !== 0) return;
    this.#open = undefined;
    const outcome = this.#failed === 0 ? 'succeeded' : this.#succeeded === 0 ? 'failed' : 'partial';
    this.#onEnd(outcome, (performance.now() - this.#began) / 1000);
  }
}
