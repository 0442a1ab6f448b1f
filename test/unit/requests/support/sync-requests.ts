import type { JsonObject } from '../../../../src/kube/resource.ts';
import { toSyncRequestRecord, type SyncRequestRecord } from '../../../../src/requests/sync-request.ts';

/** Midnight at which all of these tests take place. */
export const midnight = Date.UTC(2026, 0, 1);

export interface RequestShape {
  readonly namespace?: string;
  readonly name?: string;
  readonly uid?: string;
  readonly spec?: JsonObject;
  readonly status?: JsonObject;
  /** Seconds from midnight. */
  readonly createdAt?: number;
}

/** A request as the server has it. */
export function requestObject(shape: RequestShape = {}): JsonObject {
  const { namespace = 'team-a', name = 'request', createdAt = 0 } = shape;
  return {
    apiVersion: 'sync.oadp.openshift.io/v1alpha1',
    kind: 'NonAdminBackupSyncRequest',
    metadata: {
      namespace,
      name,
      uid: shape.uid ?? `uid-of-${namespace}-${name}`,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: new Date(midnight + createdAt * 1000).toISOString(),
    },
    spec: shape.spec ?? {},
    status: shape.status ?? { phase: 'Pending' },
  };
}

export function requestRecord(shape: RequestShape = {}): SyncRequestRecord {
  const record = toSyncRequestRecord(requestObject(shape));
  if (record === undefined) throw new Error('not a request');
  return record;
}

/** An answered one. @param completedAt seconds from midnight */
export function answered(
  name: string,
  phase: 'Succeeded' | 'Partial' | 'Failed',
  completedAt: number,
): SyncRequestRecord {
  const completionTime = new Date(midnight + completedAt * 1000).toISOString();
  return requestRecord({ name, status: { phase, completionTime } });
}
