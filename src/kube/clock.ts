import { setTimeout as delay } from 'node:timers/promises';

/** Time as the loops of this directory see it; tests hand in one that they move by hand. */
export interface Clock {
  /** Milliseconds since the epoch: for people to read. It can jump. */
  now(): number;
  /** Milliseconds since some fixed moment: for measuring. It never jumps. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds, or at once when the signal is aborted. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    try {
      await delay(ms, undefined, signal === undefined ? {} : { signal });
    } catch {
      // Only an abort rejects here, and whoever aborted looks at the signal next.
    }
  },
};
