import type { JsonObject } from '../kube/resource.ts';
import { objectAt, textAt, timeAt, valueAt } from '../oadp/read.ts';

/** How the syncs went that the requests of one namespace asked for. Times in milliseconds since the epoch. */
export interface History {
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
  if (failure === undefined) {
    const { failingSince, ...kept } = before ?? {};
    return { ...kept, lastAttempt: at, lastSuccess: at, consecutiveFailures: 0 };
  }
  return {
    ...before,
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
  const failures = valueAt(history, 'consecutiveFailures');
  const lastSuccess = timeAt(history, 'lastSuccessTime');
  const lastFailure = timeAt(history, 'lastFailureTime');
  const lastFailureMessage = textAt(history, 'lastFailureMessage');
  const failingSince = timeAt(history, 'failingSince');
  return {
    lastAttempt,
    ...(lastSuccess !== undefined && { lastSuccess }),
    ...(lastFailure !== undefined && { lastFailure }),
    ...(lastFailureMessage !== undefined && { lastFailureMessage }),
    ...(failingSince !== undefined && { failingSince }),
    consecutiveFailures: typeof failures === 'number' ? failures : 0,
  };
}

export function historyStatus(history: History): JsonObject {
  const { lastAttempt, lastSuccess, lastFailure, lastFailureMessage, failingSince, consecutiveFailures } = history;
  return {
    lastAttemptTime: time(lastAttempt),
    ...(lastSuccess !== undefined && { lastSuccessTime: time(lastSuccess) }),
    ...(lastFailure !== undefined && { lastFailureTime: time(lastFailure) }),
    ...(lastFailureMessage !== undefined && { lastFailureMessage }),
    ...(failingSince !== undefined && { failingSince: time(failingSince) }),
    consecutiveFailures,
  };
}

function time(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
