import type { PassReport } from '../sync/report.ts';
import { formatDuration } from '../settings/duration.ts';
import { cell } from './output.ts';
import { pairs, table, type TableLook } from './table.ts';
import { paint } from './terminal.ts';

export function onceTable(report: PassReport, look: TableLook = {}): string {
  const { outcome, startTime, completionTime, counts, reasons, failures, holder } = report;
  if (outcome === 'Skipped') {
    return pairs([
      ['Outcome', paint(outcome, look.terminal)],
      ['Reason', 'another nab-sync holds the Lease and is at it'],
      ['Holder', cell(holder ?? '')],
    ]);
  }
  const summary = table(
    ['OUTCOME', 'SEEN', 'CREATED', 'REPAIRED', 'PRESENT', 'SKIPPED', 'WAITING', 'CONFLICT', 'FAILED', 'TOOK'],
    [
      [
        outcome,
        String(counts.seen),
        String(counts.created),
        String(counts.repaired),
        String(counts.present),
        String(counts.skipped),
        String(counts.waiting),
        String(counts.conflict),
        String(counts.failed),
        formatDuration(Date.parse(completionTime) - Date.parse(startTime)),
      ],
    ],
    look,
  );
  const given = Object.entries(reasons).map(([reason, count]) => [reason, String(count)]);
  const why = given.length === 0 ? '' : `\n${table(['REASON', 'BACKUPS'], given)}`;
  if (failures.length === 0) return summary + why;
  const rows = failures.map(({ namespace, name, reason, message }) => [namespace, name, reason, message].map(cell));
  return `${summary}${why}\n${table(['NAMESPACE', 'NAME', 'FAILURE', 'MESSAGE'], rows, look)}`;
}
