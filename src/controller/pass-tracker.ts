import type { PassOutcome } from '../observability/metrics.ts';
import type { Failure } from '../sync/report.ts';
import { failureSummary } from '../sync/tally.ts';

/** A pass that was through. */
export interface TrackedPass {
  readonly outcome: PassOutcome;
  /** Milliseconds since the epoch. */
  readonly start: number;
  readonly seconds: number;
  /** One sentence; absent where nothing failed. */
  readonly failure?: string;
}

interface OpenPass {
  /** Namespaces that it has still to look at. */
  readonly left: Set<string>;
  readonly start: number;
  readonly began: number;
  failedNamespaces: number;
  goodNamespaces: number;
  failures: number;
  firstFailure: Failure | undefined;
}

/** Follows a pass over all namespaces, whose parts are done in any order among other work. */
export class PassTracker {
  readonly #onEnd: (pass: TrackedPass) => void;
  #open: OpenPass | undefined;

  constructor(onEnd: (pass: TrackedPass) => void) {
    this.#onEnd = onEnd;
  }

  /** Namespaces that the present pass has still to look at. */
  get remaining(): number {
    return this.#open?.left.size ?? 0;
  }

  /**
   * Begins a pass, in place of one that is not through yet.
   *
   * @param start milliseconds since the epoch
   */
  begin(namespaces: Iterable<string>, start: number): void {
    this.#open = {
      left: new Set(namespaces),
      start,
      began: performance.now(),
      failedNamespaces: 0,
      goodNamespaces: 0,
      failures: 0,
      firstFailure: undefined,
    };
    this.#endIfThrough(this.#open);
  }

  /** Ends the present pass without a word. Returns when it began, or undefined where there is none. */
  giveUp(): number | undefined {
    const start = this.#open?.start;
    this.#open = undefined;
    return start;
  }

  /** A namespace was looked at, by whatever cause. */
  done(namespace: string, failures: readonly Failure[]): void {
    const pass = this.#open;
    if (pass?.left.delete(namespace) !== true) return;
    if (failures.length > 0) pass.failedNamespaces += 1;
    else pass.goodNamespaces += 1;
    pass.failures += failures.length;
    pass.firstFailure ??= failures[0];
    this.#endIfThrough(pass);
  }

  #endIfThrough(pass: OpenPass): void {
    const { left, start, began, failedNamespaces, goodNamespaces, failures, firstFailure } = pass;
    if (left.size > 0) return;
    this.#open = undefined;
    this.#onEnd({
      outcome: failedNamespaces === 0 ? 'succeeded' : goodNamespaces === 0 ? 'failed' : 'partial',
      start,
      seconds: (performance.now() - began) / 1000,
      ...(firstFailure !== undefined && { failure: failureSummary(failures, firstFailure) }),
    });
  }
}
