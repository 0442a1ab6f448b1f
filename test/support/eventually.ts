import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Tries an assertion until it holds and returns what it returned; an assertion that throws does not hold yet. After
 * `timeoutMs` it throws the last error, with the time waited put in front of its message.
 */
export async function eventually<T>(assertion: () => T | Promise<T>, timeoutMs = 10_000, intervalMs = 50): Promise<T> {
  const started = performance.now();
  for (;;) {
    try {
      return await assertion();
    } catch (error) {
      if (performance.now() - started < timeoutMs) {
        await sleep(intervalMs);
        continue;
      }
      if (error instanceof Error) error.message = `not within ${timeoutMs} ms: ${error.message}`;
      throw error;
    }
  }
}
