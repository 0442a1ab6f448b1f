import type { JsonObject } from '../kube/resource.ts';
import { objectAt, textAt, timeAt, valueAt } from '../oadp/read.ts';

/** How the syncs went that the requests of one namespace asked for. Times in milliseconds since the epoch. */
export interface History {
  /** How many there were. Tells the latest history, whatever clocks said when it was written. */
  readonly attempts: number;
  readonly lastAttempt: number;
  readonly lastSuccess?: number;
  readonly lastFailure?: number;
  readonly lastFailureMessage?: string;
  /** The first failure since the last success. */
  readonly failingSince?: number;
  readonly consecutiveFailures: number;
}

/**
 * The history after one more sync: a success leaves the last failure to be seen, and a failure the first of those in a row.
 *
 * @param before undefined where there was none
 * @param failure what failed; undefined for a success
 */
export function afterSync(before: History | undefined, at: number, failure: string | undefined): History {
  const attempts = (before?.attempts ?? 0) + 1;
  if (failure === undefined) {
    const { failingSince, ...kept } = before ?? {};
    return { ...kept, attempts, lastAttempt: at, lastSuccess: at, consecutiveFailures: 0 };
  }
  return {
    ...before,
    attempts,
    lastAttempt: at,
    lastFailure: at,
    lastFailureMessage: failure,
    failingSince: before?.failingSince ?? at,
    consecutiveFailures: (before?.consecutiveFailures ?? 0) + 1,
  };
}

/** The history in a request's status; undefined where there is none that can be read. */
export function readHistory(request: JsonObject): History | undefined {
  const history = objectAt(request, 'status', 'history');
  const lastAttempt = timeAt(history, 'lastAttemptTime');
  if (lastAttempt === undefined) return undefined;
  const lastSuccess = timeAt(history, 'lastSuccessTime');
  const lastFailure = timeAt(history, 'lastFailureTime');
  const lastFailureMessage = textAt(history, 'lastFailureMessage');
  const failingSince = timeAt(history, 'failingSince');
  return {
    attempts: countAt(history, 'attempts'),
    lastAttempt,
    ...(lastSuccess !== undefined && { lastSuccess }),
    ...(lastFailure !== undefined && { lastFailure }),
    ...(lastFailureMessage !== undefined && { lastFailureMessage }),
    ...(failingSince !== undefined && { failingSince }),
    consecutiveFailures: countAt(history, 'consecutiveFailures'),
  };
}

export function historyStatus(history: History): JsonObject {
  const { attempts, lastAttempt, lastSuccess, lastFailure, lastFailureMessage, failingSince, consecutiveFailures } =
    history;
  return {
    attempts,
    lastAttemptTime: time(lastAttempt),
    ...(lastSuccess !== undefined && { lastSuccessTime: time(lastSuccess) }),
    ...(lastFailure !== undefined && { lastFailureTime: time(lastFailure) }),
    ...(lastFailureMessage !== undefined && { lastFailureMessage }),
    ...(failingSince !== undefined && { failingSince: time(failingSince) }),
    consecutiveFailures,
  };
}

function countAt(history: unknown, name: string): number {
  const count = valueAt(history, name);
  return typeof count === 'number' ? count : 0;
}

function time(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
