import type { Outcome, PassCounts, PassReport } from './report.ts';

/** How many backups had which outcome. */
export class OutcomeCounts {
  readonly #counts: Record<Outcome, number> = {
    created: 0,
    repaired: 0,
    present: 0,
    skipped: 0,
    waiting: 0,
    conflict: 0,
    failed: 0,
  };
  #seen = 0;

  add(outcome: Outcome): void {
    this.#seen += 1;
    this.#counts[outcome] += 1;
  }

  get all(): PassCounts {
    return { seen: this.#seen, ...this.#counts };
  }

  /** How it went: only what failed speaks against it. */
  get outcome(): Exclude<PassReport['outcome'], 'Skipped'> {
    const { failed, created, repaired, present } = this.#counts;
    if (failed === 0) return 'Succeeded';
    return created + repaired + present > 0 ? 'Partial' : 'Failed';
  }
}
