import { isJsonObject } from '../kube/json.ts';
import { apiVersion, type JsonObject, type Resource } from '../kube/resource.ts';
import { printable } from '../oadp/printable.ts';
import { objectAt, rfc3339Seconds, textAt, timeAt } from '../oadp/read.ts';
import { decisionReasons, failureReasons, refusalReasons, type Reason } from '../sync/reasons.ts';

export const configMapResource: Resource = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

/** Where the status is kept, in the OADP namespace. */
export const statusConfigMapName = 'nab-sync-status';

/** How often each reason was given. */
export type ReasonCounts = Readonly<Partial<Record<Reason, number>>>;

/** How the passes over all namespaces went, since the first one ever. Times in milliseconds since the epoch; absent = never. */
export interface SyncStatus {
  readonly lastAttempt?: number;
  readonly lastSuccess?: number;
  readonly lastFailure?: number;
  /** One line, printable. Stays when a later pass succeeds. */
  readonly lastFailureMessage?: string;
  readonly consecutiveFailures: number;
  /** All labelled backups, as the last pass that came through left them. */
  readonly reasons: ReasonCounts;
}

export const neverSynced: SyncStatus = { consecutiveFailures: 0, reasons: {} };

/** A pass over all namespaces that is over. */
export interface EndedPass {
  /** Milliseconds since the epoch, as is `end`. */
  readonly start: number;
  /** Absent when it never came to an end and the next one has begun. */
  readonly end?: number;
  /** What went wrong first; absent in a success. */
  readonly failure?: string;
  /** Absent when it did not come through. */
  readonly reasons?: ReasonCounts;
}

const longestMessage = 1000;

/** Attempt, success and failure each have a time of their own, which the others leave alone. */
export function afterPass(status: SyncStatus, { start, end, failure, reasons }: EndedPass): SyncStatus {
  const attempted = { ...status, lastAttempt: start, ...(reasons !== undefined && { reasons }) };
  if (end === undefined) return attempted;
  if (failure === undefined) return { ...attempted, lastSuccess: end, consecutiveFailures: 0 };
  return {
    ...attempted,
    lastFailure: end,
    lastFailureMessage: printable(failure, longestMessage),
    consecutiveFailures: status.consecutiveFailures + 1,
  };
}

/** What was kept, continued by what happened since without knowing of it. */
export function continued(kept: SyncStatus, since: SyncStatus): SyncStatus {
  return {
    ...kept,
    ...since,
    consecutiveFailures:
      since.lastSuccess === undefined
        ? kept.consecutiveFailures + since.consecutiveFailures
        : since.consecutiveFailures,
    reasons: Object.keys(since.reasons).length === 0 ? kept.reasons : since.reasons,
  };
}

/** The document that `status` prints, and the content of the ConfigMap in other words. Times are RFC 3339. */
export interface StatusDocument {
  readonly lastAttemptTime?: string;
  readonly lastSuccessfulSyncTime?: string;
  readonly lastFailureTime?: string;
  readonly lastFailureMessage?: string;
  readonly consecutiveFailures: number;
  readonly reasons: ReasonCounts;
}

export function statusDocument(status: SyncStatus): StatusDocument {
  const { lastAttempt, lastSuccess, lastFailure, lastFailureMessage, consecutiveFailures, reasons } = status;
  return {
    ...(lastAttempt !== undefined && { lastAttemptTime: rfc3339Seconds(lastAttempt) }),
    ...(lastSuccess !== undefined && { lastSuccessfulSyncTime: rfc3339Seconds(lastSuccess) }),
    ...(lastFailure !== undefined && { lastFailureTime: rfc3339Seconds(lastFailure) }),
    ...(lastFailureMessage !== undefined && { lastFailureMessage }),
    consecutiveFailures,
    reasons,
  };
}

/** The ConfigMap's `data`, in which every value is a text. */
export function statusData(status: SyncStatus): Readonly<Record<string, string>> {
  const { consecutiveFailures, reasons, ...texts } = statusDocument(status);
  const sorted = Object.entries(reasons).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    ...texts,
    consecutiveFailures: String(consecutiveFailures),
    reasons: JSON.stringify(Object.fromEntries(sorted)),
  };
}

/** A ConfigMap with this status. What others put on `present`, such as labels, stays. */
export function statusConfigMap(status: SyncStatus, namespace: string, present?: JsonObject): JsonObject {
  return {
    apiVersion: apiVersion(configMapResource),
    kind: configMapResource.kind,
    metadata: { name: statusConfigMapName, namespace, labels: { 'app.kubernetes.io/name': 'nab-sync' } },
    ...present,
    data: statusData(status),
  };
}

const knownReasons: readonly Reason[] = [...refusalReasons, ...decisionReasons, ...failureReasons];

/** Clocks of two machines differ; what lies further ahead than that was not written by us. */
const clockSkewMs = 60_000;

function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined;
}

function parsedJson(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * The status in a ConfigMap. Anybody with rights in the OADP namespace may have edited it, so what does not read as we
 * write it counts as never written; `unreadable` names those fields.
 *
 * @param now milliseconds since the epoch; no time may lie ahead of it
 */
export function readStatus(configMap: JsonObject, now: number): { status: SyncStatus; unreadable: readonly string[] } {
  const unreadable: string[] = [];
  function read<T>(field: string, value: T | undefined): T | undefined {
    if (value === undefined && objectAt(configMap, 'data')?.[field] !== undefined) unreadable.push(field);
    return value;
  }
  function time(field: string): number | undefined {
    const found = timeAt(configMap, 'data', field);
    return read(field, found === undefined || found > now + clockSkewMs ? undefined : found);
  }
  const lastAttempt = time('lastAttemptTime');
  const lastSuccess = time('lastSuccessfulSyncTime');
  const lastFailure = time('lastFailureTime');
  const message = textAt(configMap, 'data', 'lastFailureMessage');
  const failures = textAt(configMap, 'data', 'consecutiveFailures');
  const consecutiveFailures = read(
    'consecutiveFailures',
    failures === undefined || !/^\d+$/.test(failures) ? undefined : countOf(Number(failures)),
  );
  const parsed = parsedJson(textAt(configMap, 'data', 'reasons'));
  const counts = read('reasons', isJsonObject(parsed) ? parsed : undefined);
  const reasons = knownReasons.flatMap((reason) => {
    const count = countOf(counts?.[reason]);
    return count === undefined ? [] : [[reason, count] as const];
  });
  return {
    status: {
      ...(lastAttempt !== undefined && { lastAttempt }),
      ...(lastSuccess !== undefined && { lastSuccess }),
      ...(lastFailure !== undefined && { lastFailure }),
      ...(message !== undefined && { lastFailureMessage: printable(message, longestMessage) }),
      consecutiveFailures: consecutiveFailures ?? 0,
      reasons: Object.fromEntries(reasons),
    },
    unreadable,
  };
}
