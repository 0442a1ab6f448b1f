import sortBy from 'lodash/sortBy.js';
import { actions } from '../sync/reasons.ts';
import type { PlannedDecision } from '../sync/report.ts';
import { cell, counted, countsText } from './output.ts';
import { table, type TableLook } from './table.ts';

/** JSON of `plan`. Every action has its count, also when it is 0; `wait` is counted as `waiting`, as in `once`. */
export interface PlanDocument {
  readonly decisions: readonly PlannedDecision[];
  readonly counts: Readonly<Record<string, number>>;
}

/** Sorted by namespace, name and Backup, byte by byte: the same on every machine. */
export function planDocument(decisions: readonly PlannedDecision[]): PlanDocument {
  const counts = new Map(actions.map((action) => [action === 'wait' ? 'waiting' : action, 0]));
  for (const { action } of decisions) {
    const key = action === 'wait' ? 'waiting' : action;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return {
    decisions: sortBy(decisions, ['namespace', 'name', 'backup'])
      // In the documented order of fields, and no others.
      .map(({ backup, namespace, name, nacuuid, action, reason, message }) => ({
        backup,
        namespace,
        name,
        nacuuid,
        action,
        reason,
        message,
      })),
    counts: Object.fromEntries(counts),
  };
}

/** On a terminal with a line that sums it up; wide with the NACUUID, which a forged backup may have apart from its name. */
export function planTable({ decisions, counts }: PlanDocument, look: TableLook = {}): string {
  const wide = look.wide === true;
  const text = table(
    ['NAMESPACE', 'NAME', 'ACTION', 'REASON', 'BACKUP', ...(wide ? ['NACUUID'] : []), 'MESSAGE'],
    decisions.map(({ namespace, name, action, reason, backup, nacuuid, message }) =>
      [namespace, name, action, reason, backup, ...(wide ? [nacuuid] : []), message].map(cell),
    ),
    look,
  );
  if (look.terminal === undefined) return text;
  return `${text}\n${counted(decisions.length, 'backup')}: ${countsText(counts)}\n`;
}
