export interface RetryDelayOptions {
  /** 0 for the first retry. */
  readonly attempt: number;
  /** What the server asked for with Retry-After, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** Delay of the first retry without jitter. */
  readonly baseMs: number;
  /** Most that growth can reach. */
  readonly capMs: number;
  /** Most that a server can make us wait; a Retry-After of a day would be an outage of its own. */
  readonly retryAfterCapMs?: number;
  /** A number in [0, 1). */
  readonly random: () => number;
}

const DEFAULT_RETRY_AFTER_CAP_MS = 60_000;

/**
 * Milliseconds to wait before the next try: doubling up to the cap, half of it jitter, so that many clients of one
 * server that came back do not arrive together. A Retry-After is a lower bound, spread upwards by up to a quarter.
 */
export function retryDelay(options: RetryDelayOptions): number {
  const { attempt, baseMs, capMs, random, retryAfterMs } = options;
  // 2^30 milliseconds are twelve days; beyond it the power would only overflow.
  const grown = Math.min(capMs, baseMs * 2 ** Math.min(Math.max(attempt, 0), 30));
  const own = grown / 2 + (grown / 2) * random();
  if (retryAfterMs === undefined) return Math.round(own);
  const asked = Math.min(Math.max(retryAfterMs, 0), options.retryAfterCapMs ?? DEFAULT_RETRY_AFTER_CAP_MS);
  return Math.round(Math.max(own, asked * (1 + random() / 4)));
}
