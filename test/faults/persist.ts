import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../support/api-client.ts';

const patienceMs = 120_000;
const pauseMs = 100;

/** Answers of a server that is starting or in trouble. A 404 without a reason comes from one that does not know the kind yet. */
function isPassing(error: ApiError): boolean {
  return error.status >= 500 || error.status === 408 || (error.status === 404 && error.reason === '');
}

/**
 * Does something to the cluster however long its servers are away; it must do no harm if it is done twice. An answer to the
 * request itself, such as NotFound, is thrown on as an ApiError.
 */
export async function persist<T>(operation: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    try {
      return await operation();
    } catch (error) {
      if (error instanceof ApiError && !isPassing(error)) throw error;
      if (performance.now() > deadline) throw error;
      await sleep(pauseMs);
    }
  }
}

/** As `persist`, with these statuses taken for "nothing to do": undefined. */
export async function persistUnless<T>(
  statuses: readonly number[],
  operation: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await persist(operation);
  } catch (error) {
    if (error instanceof ApiError && statuses.includes(error.status)) return undefined;
    throw error;
  }
}
