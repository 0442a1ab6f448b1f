import omit from 'lodash/omit.js';
import { isJsonObject, objectAt, stringAt } from '../../../../src/kube/json.ts';
import type { JsonObject } from '../../../../src/kube/resource.ts';

/** Set by the server alone, and different each time. */
const serverSet = ['uid', 'resourceVersion', 'generation', 'creationTimestamp', 'managedFields'];

/** A NAB as its writers made it: without what the server adds, and without the times of its conditions. */
export function bareNab(nab: JsonObject): JsonObject {
  const bare = { ...nab, metadata: omit(objectAt(nab, 'metadata'), serverSet) };
  const status = objectAt(nab, 'status');
  const conditions = status['conditions'];
  if (!Array.isArray(conditions)) return bare;
  const timeless = conditions.map((each: unknown) => (isJsonObject(each) ? omit(each, 'lastTransitionTime') : each));
  return { ...bare, status: { ...status, conditions: timeless } };
}

/**
 * The NAB that a Backup deserves, written down from the design and not taken from the code under test.
 *
 * @param nabslName the NABSL that owns the Backup's storage location, if one does
 */
export function expectedNab(backup: JsonObject, nabslName?: string): JsonObject {
  const metadata = objectAt(backup, 'metadata');
  const annotations = objectAt(metadata, 'annotations');
  const nacuuid = objectAt(metadata, 'labels')['openshift.io/oadp-nab-origin-nacuuid'];
  const completed = String(objectAt(backup, 'status')['completionTimestamp']);
  const spec = objectAt(backup, 'spec');
  return {
    apiVersion: 'oadp.openshift.io/v1alpha1',
    kind: 'NonAdminBackup',
    metadata: {
      name: annotations['openshift.io/oadp-nab-origin-name'],
      namespace: annotations['openshift.io/oadp-nab-origin-namespace'],
      labels: { 'openshift.io/oadp-nab-synced-from-nacuuid': nacuuid },
    },
    spec: {
      backupSpec: {
        ...omit(spec, 'storageLocation'),
        ...(nabslName === undefined ? {} : { storageLocation: nabslName }),
      },
    },
    status: {
      phase: 'Created',
      conditions: [
        { type: 'Accepted', status: 'True', reason: 'BackupAccepted', message: 'backup accepted' },
        { type: 'Queued', status: 'True', reason: 'BackupScheduled', message: 'Created Velero Backup object' },
        {
          type: 'Synced',
          status: 'True',
          reason: 'RecreatedFromVeleroBackup',
          message: `Re-created by nab-sync from the Velero Backup ${String(nacuuid)}, which completed at ${completed}.`,
        },
      ],
      queueInfo: { estimatedQueuePosition: 0 },
      veleroBackup: {
        nacuuid,
        name: nacuuid,
        namespace: metadata['namespace'],
        spec,
        status: objectAt(backup, 'status'),
      },
    },
  };
}

/** Order of objects by namespace and name, byte by byte. */
export function byName(a: JsonObject, b: JsonObject): number {
  const [keyOfA, keyOfB] = [a, b].map((object) => {
    const metadata = objectAt(object, 'metadata');
    return `${stringAt(metadata, 'namespace') ?? ''}/${stringAt(metadata, 'name') ?? ''}`;
  });
  if (keyOfA === undefined || keyOfB === undefined || keyOfA === keyOfB) return 0;
  return keyOfA < keyOfB ? -1 : 1;
}
