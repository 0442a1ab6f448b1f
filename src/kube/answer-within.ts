import type { Clock } from './clock.ts';

/** No answer came within the time allowed. Its `code` is the one that a KubeError would have. */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded';
  readonly code = 'Timeout';

  constructor(ms: number) {
    super(`no answer within ${ms} ms`);
  }
}

/**
 * Runs `task` for at most `ms`. At the deadline, and when `signal` aborts, the task's own signal aborts and the returned
 * promise rejects, with DeadlineExceeded or the signal's reason: also when the task does not heed its signal, for a
 * loop that keeps a lease may hang on nothing. What the task answers after that is dropped.
 */
export async function answerWithin<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal | undefined,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const inner = new AbortController();
  const waiting = new AbortController();
  const onAbort = (): void => {
    waiting.abort();
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  const overdue = async (): Promise<never> => {
    await clock.sleep(ms, waiting.signal);
    signal?.throwIfAborted();
    throw new DeadlineExceeded(ms);
  };
  try {
    return await Promise.race([task(inner.signal), overdue()]);
  } finally {
    signal?.removeEventListener('abort', onAbort);
    waiting.abort();
    inner.abort();
  }
}

/** The stable code of what a request rejected with: that of a KubeError or a DeadlineExceeded, else `Unknown`. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'Unknown';
}

/** What a request rejected with, in one line for people. A KubeError names verb and resource in it. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown fault';
}
