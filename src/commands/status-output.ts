import { statusDocument, type SyncStatus } from '../controller/sync-status.ts';
import { formatAge } from './age.ts';
import { cell } from './output.ts';
import { pairs, table } from './table.ts';

/** @param now milliseconds since the epoch */
export function statusTable(status: SyncStatus, now: number): string {
  const document = statusDocument(status);
  const when = (text: string | undefined): string =>
    text === undefined ? 'never' : `${text} (${formatAge(now - Date.parse(text))} ago)`;
  const { lastFailureMessage, consecutiveFailures, reasons } = document;
  const head = pairs([
    ['Last attempt', when(document.lastAttemptTime)],
    ['Last successful sync', when(document.lastSuccessfulSyncTime)],
    ['Last failure', when(document.lastFailureTime)],
    ...(lastFailureMessage === undefined ? [] : [['Last failure message', cell(lastFailureMessage)] as const]),
    ['Consecutive failures', String(consecutiveFailures)],
  ]);
  const rows = Object.entries(reasons)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([reason, count]) => [reason, String(count)]);
  return rows.length === 0 ? head : `${head}\n${table(['REASON', 'BACKUPS'], rows)}`;
}
