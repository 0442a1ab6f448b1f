import { DurationError, formatDuration, parseDuration } from './duration.ts';

/** Node's timers hold 31 bits of milliseconds and fire at once for anything longer. */
const maxPeriodMs = 2 ** 31 - 1;

/** Below that, one pass would follow the other without pause; and a fraction of a millisecond would round to off. */
const minPeriodMs = 100;

/** When neither flag nor DPA says otherwise; the NAC's own default. */
export const defaultSyncPeriodMs = 120_000;

/** A duration fit to be a sync period, in milliseconds; 0 = no interval. Throws DurationError. */
export function parseSyncPeriod(text: string): number {
  const milliseconds = parseDuration(text);
  if (milliseconds !== 0 && (milliseconds < minPeriodMs || milliseconds > maxPeriodMs)) {
    throw new DurationError(
      `expected 0 or a duration from ${formatDuration(minPeriodMs)} to ${formatDuration(maxPeriodMs)}`,
    );
  }
  return milliseconds;
}
