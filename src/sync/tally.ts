import { printable } from '../oadp/printable.ts';
import type { ItemResult } from './namespace-pass.ts';
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
  readonly #counts: Record<Outcome, number> = {
    created: 0,
    repaired: 0,
    present: 0,
    skipped: 0,
    waiting: 0,
    conflict: 0,
    failed: 0,
  };
  readonly #reasons = new Map<Reason, number>();
  readonly #failures: Failure[] = [];
  #seen = 0;

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
      outcome: outcomeOf(this.#counts),
      startTime: new Date(startTime).toISOString(),
      completionTime: new Date(completionTime).toISOString(),
      counts: { seen: this.#seen, ...this.#counts },
      reasons: Object.fromEntries([...this.#reasons].sort(([a], [b]) => (a < b ? -1 : 1))),
      failures: this.#failures.sort(
        (a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.message, b.message),
      ),
    };
  }

  #add(outcome: Outcome, reason: Reason): void {
    this.#seen += 1;
    this.#counts[outcome] += 1;
    this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1);
  }
}

/** How a pass went: only what failed speaks against it. */
export function outcomeOf({
  failed,
  created,
  repaired,
  present,
}: Readonly<Record<Outcome, number>>): 'Succeeded' | 'Partial' | 'Failed' {
  if (failed === 0) return 'Succeeded';
  return created + repaired + present > 0 ? 'Partial' : 'Failed';
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
