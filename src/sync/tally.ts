import sortBy from 'lodash/sortBy.js';
import { printable } from '../oadp/printable.ts';
import type { ItemResult } from './namespace-pass.ts';
import { OutcomeCounts } from './outcome-counts.ts';
import type { Decision, Reason } from './reasons.ts';
import type { Failure, Outcome, PassReport } from './report.ts';

/** A backup that could not be brought back, as it is told. */
export function toFailure({ backup, reason, message }: ItemResult): Failure {
  const { namespace, name } = backup.claim;
  return { namespace: printable(namespace), name: printable(name, 253), reason, message };
}

/** One sentence about `count` failures, of which one is shown. */
export function failureSummary(count: number, { namespace, name, reason, message }: Failure): string {
  const one = `${namespace}/${name}: ${reason}: ${message}`;
  return count === 1
    ? `1 backup could not be brought back: ${one}`
    : `${String(count)} backups could not be brought back, among them ${one}`;
}

/** Adds up what became of the backups in a pass. */
export class Tally {
  readonly #counts = new OutcomeCounts();
  readonly #reasons = new Map<Reason, number>();
  readonly #failures: Failure[] = [];

  /** A backup that was refused for good (rules 1 to 8): it is no namespace's. */
  addRefused({ reason }: Decision): void {
    this.#add('skipped', reason);
  }

  add(item: ItemResult): void {
    const { outcome, reason } = item;
    this.#add(outcome, reason);
    if (outcome === 'failed') this.#failures.push(toFailure(item));
  }

  /**
   * @param startTime milliseconds since the epoch, as is `completionTime`
   */
  report(startTime: number, completionTime: number): PassReport {
    return {
      outcome: this.#counts.outcome,
      startTime: new Date(startTime).toISOString(),
      completionTime: new Date(completionTime).toISOString(),
      counts: this.#counts.all,
      reasons: Object.fromEntries([...this.#reasons].sort(([a], [b]) => (a < b ? -1 : 1))),
      failures: sortBy(this.#failures, ['namespace', 'name', 'message']),
    };
  }

  #add(outcome: Outcome, reason: Reason): void {
    this.#counts.add(outcome);
    this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1);
  }
}
