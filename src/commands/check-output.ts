import type { CheckResult } from '../controller/check/verdict.ts';
import { cell, counted, countsText } from './output.ts';
import { table, type TableLook } from './table.ts';

/** JSON of `check`. */
export interface CheckDocument {
  readonly checks: readonly CheckResult[];
  /** How many results have which status; those of 0 too. */
  readonly counts: Readonly<Record<CheckResult['status'], number>>;
}

export function checkDocument(checks: readonly CheckResult[]): CheckDocument {
  const count = (wanted: CheckResult['status']): number => checks.filter(({ status }) => status === wanted).length;
  return { checks, counts: { OK: count('OK'), WARN: count('WARN'), FAIL: count('FAIL') } };
}

/** Each result, and below it what to do about it. */
export function checkTable({ checks, counts }: CheckDocument, look: TableLook): string {
  const rows = checks.flatMap(({ check, status, message, next }) => [
    [check, status, cell(message)],
    ...(next === undefined ? [] : [['', '', cell(`→ ${next}`)]]),
  ]);
  // Both matter to the last word, so neither is ever cut.
  const text = table(['CHECK', 'STATUS', 'MESSAGE'], rows, { ...look, wide: true });
  return look.terminal === undefined ? text : `${text}\n${counted(checks.length, 'result')}: ${countsText(counts)}\n`;
}
