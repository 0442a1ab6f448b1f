import { apiVersion, type JsonObject } from '../kube/resource.ts';
import { syncRequests } from '../oadp/kinds.ts';
import { rfc3339Seconds } from '../oadp/read.ts';
import type { Answer } from './answer.ts';
import { historyStatus, type History } from './history.ts';
import type { Phase, SyncRequestRecord } from './sync-request.ts';

/** Why a request is not carried out at all: `Complete`'s reason, and a sentence for whoever made it. */
export interface Refusal {
  readonly reason:
    'NamespaceSelectorNotAllowed' | 'InvalidNamespaceSelector' | 'NamespacesNotListed' | 'ProtectedNamespace';
  readonly message: string;
}

/** The body that writes a status, with the version that was seen as its precondition. */
export function withStatus(
  { namespace, name, uid, resourceVersion }: SyncRequestRecord,
  status: JsonObject,
): JsonObject {
  return {
    apiVersion: apiVersion(syncRequests),
    kind: syncRequests.kind,
    metadata: { namespace, name, uid, resourceVersion },
    status,
  };
}

/**
 * @param oadpNamespace of the nab-sync that takes it up, here and below: there may be several on a cluster, each with
 *   backups of its own
 * @param now milliseconds since the epoch, as are all times here
 */
export function runningStatus(request: SyncRequestRecord, oadpNamespace: string, now: number): JsonObject {
  const message = 'The sync is under way.';
  return {
    ...head(request, 'Running', oadpNamespace),
    startTime: time(request.startTime ?? now),
    conditions: [
      condition(request, 'Complete', 'False', 'Running', message, now),
      condition(request, 'Succeeded', 'Unknown', 'Running', message, now),
    ],
  };
}

export interface Answered {
  readonly answer: Answer;
  readonly history: History;
  readonly oadpNamespace: string;
  readonly startTime: number;
  readonly completionTime: number;
  /** Work on the request had begun before, under another leader. */
  readonly resumed: boolean;
}

export function answeredStatus(
  request: SyncRequestRecord,
  { answer, history, oadpNamespace, startTime, completionTime, resumed }: Answered,
): JsonObject {
  const { phase } = answer;
  const remark = resumed
    ? ' The sync was interrupted and begun anew: what had been re-created before that counts as present.'
    : '';
  return {
    ...finalStatus(request, phase, oadpNamespace, phase, `${answer.summary}${remark}`, startTime, completionTime),
    ...answer.status(),
    history: historyStatus(history),
  };
}

/** No sync was made, so the history stays as it is. */
export function refusedStatus(
  request: SyncRequestRecord,
  { reason, message }: Refusal,
  history: History | undefined,
  oadpNamespace: string,
  now: number,
): JsonObject {
  return {
    ...finalStatus(request, 'Failed', oadpNamespace, reason, message, now, now),
    ...(history !== undefined && { history: historyStatus(history) }),
  };
}

function finalStatus(
  request: SyncRequestRecord,
  phase: Phase,
  oadpNamespace: string,
  reason: string,
  message: string,
  startTime: number,
  completionTime: number,
): JsonObject {
  const succeeded = phase === 'Succeeded' ? 'True' : 'False';
  return {
    ...head(request, phase, oadpNamespace),
    startTime: time(request.startTime ?? startTime),
    completionTime: time(completionTime),
    conditions: [
      condition(request, 'Complete', 'True', reason, message, completionTime),
      condition(request, 'Succeeded', succeeded, reason, message, completionTime),
    ],
  };
}

function head({ generation }: SyncRequestRecord, phase: Phase, oadpNamespace: string): JsonObject {
  return { phase, observedGeneration: generation, oadpNamespace };
}

function condition(
  { generation }: SyncRequestRecord,
  type: 'Complete' | 'Succeeded',
  status: 'True' | 'False' | 'Unknown',
  reason: string,
  message: string,
  now: number,
): JsonObject {
  return { type, status, observedGeneration: generation, lastTransitionTime: rfc3339Seconds(now), reason, message };
}

/** With its milliseconds: a namespace may get several answers within a second, and their order counts. */
function time(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
