import { isFinal, newestFirst, type SyncRequestRecord } from './sync-request.ts';

export interface Retention {
  /** How many successes, and how many others, of a namespace are kept. At least 1. */
  readonly kept: number;
  /** How long answered requests are kept, in milliseconds; 0 = for as long as they are among the newest. */
  readonly ttlMs: number;
}

/** Whoever waits for an answer has that long to read it. */
const readingMs = 60_000;

/**
 * The answered requests of one namespace that nobody needs any more: beyond the newest successes and the newest others, or
 * older than the TTL. Never one that is not answered or that was answered just now; never the newest success; and never the
 * newest answer, which carries on the history of all that went before.
 *
 * @param now milliseconds since the epoch
 */
export function expendable(
  requests: Iterable<SyncRequestRecord>,
  { kept, ttlMs }: Retention,
  now: number,
): SyncRequestRecord[] {
  const answered = [...requests].filter(isFinal).sort(newestFirst);
  const successes = answered.filter(({ phase }) => phase === 'Succeeded');
  const others = answered.filter(({ phase }) => phase !== 'Succeeded');
  const [newest] = answered;
  const [newestSuccess] = successes;
  const surplus = new Set([...successes.slice(kept), ...others.slice(kept)]);
  return answered.filter((request) => {
    if (request === newest || request === newestSuccess) return false;
    // Both ways: a time from a clock that was ahead must not keep it for ever.
    const age = Math.abs(now - (request.completionTime ?? 0));
    if (age < readingMs) return false;
    return surplus.has(request) || (ttlMs > 0 && age > ttlMs);
  });
}
