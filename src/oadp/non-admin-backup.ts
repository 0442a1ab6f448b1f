import type { JsonObject } from '../kube/resource.ts';
import { apiVersion } from '../kube/resource.ts';
import type { Claim } from './backup.ts';
import { nonAdminBackups } from './kinds.ts';
import { nabSyncLabel } from './labels.ts';
import { listAt, nameAt, objectAt, rfc3339Seconds, textAt, timeAt, valueAt } from './read.ts';

/** A claim whose parts are all there and legal: where a NAB may be created, and whose it is. */
export type Origin = { readonly [part in keyof Claim]: string };

/** What is kept of a NonAdminBackup (NAB). */
export interface NonAdminBackupRecord {
  readonly uid: string;
  /** Its identity: status.veleroBackup.nacuuid, and where that is empty our sync label. */
  readonly nacuuid: string | undefined;
  /** Carries the sync label, so the NAC treats it as re-created. */
  readonly synced: boolean;
  /** Nothing has been written to its status yet. */
  readonly statusEmpty: boolean;
  /** The NAC looked for its Backup while that was away, and never looks again. */
  readonly backupNotFound: boolean;
  readonly deleting: boolean;
  /** spec.deleteBackup: its owner wants the backup gone for good. */
  readonly deleteBackup: boolean;
}

export function toNonAdminBackupRecord(nab: JsonObject): NonAdminBackupRecord {
  const statusNacuuid = nameAt(nab, 'status', 'veleroBackup', 'nacuuid');
  const syncLabel = nameAt(nab, 'metadata', 'labels', nabSyncLabel);
  const conditions = listAt(nab, 'status', 'conditions');
  return {
    uid: textAt(nab, 'metadata', 'uid') ?? '',
    nacuuid: statusNacuuid ?? syncLabel,
    synced: syncLabel !== undefined,
    // The NAC writes its reference to the Backup before anything else. A status that it has begun is its to finish.
    statusEmpty: statusNacuuid === undefined && nameAt(nab, 'status', 'phase') === undefined && conditions.length === 0,
    backupNotFound: conditions.some(
      (condition) =>
        textAt(condition, 'type') === 'Accepted' &&
        textAt(condition, 'status') === 'False' &&
        textAt(condition, 'reason') === 'VeleroBackupNotFound',
    ),
    deleting: textAt(nab, 'metadata', 'deletionTimestamp') !== undefined,
    deleteBackup: valueAt(nab, 'spec', 'deleteBackup') === true,
  };
}

/**
 * The NAB to create for a Backup.
 *
 * Its metadata is made from scratch: labels, owner references or finalizers copied from a Backup would be acted on by
 * other controllers (field cases A18, B3). The sync label is part of the create, since it is what keeps the NAC from
 * validating the spec and making a second Backup. The spec is the Backup's, fields unknown to us included, but for the
 * storage location: there a NAB names its NABSL, and nothing for a location of the admin's.
 *
 * @param nabslName name of the NABSL that owns the Backup's storage location, if one does
 */
export function nonAdminBackupFor(backup: JsonObject, origin: Origin, nabslName: string | undefined): JsonObject {
  const { storageLocation, ...spec } = objectAt(backup, 'spec') ?? {};
  return {
    apiVersion: apiVersion(nonAdminBackups),
    kind: nonAdminBackups.kind,
    metadata: { name: origin.name, namespace: origin.namespace, labels: { [nabSyncLabel]: origin.nacuuid } },
    spec: { backupSpec: nabslName === undefined ? spec : { ...spec, storageLocation: nabslName } },
  };
}

/** The condition of our own on a NAB: says that it was re-created, and from what. */
export const syncedCondition = { type: 'Synced', reason: 'RecreatedFromVeleroBackup' } as const;

interface Condition {
  readonly type: string;
  readonly status: 'True';
  readonly reason: string;
  readonly message: string;
}

/** Sets conditions as apimachinery's SetStatusCondition does: others stay, and a time changes only with its status. */
function withConditions(present: readonly unknown[], wanted: readonly Condition[], now: string): readonly unknown[] {
  const types = new Set<string>(wanted.map((condition) => condition.type));
  const others = present.filter((condition) => !types.has(textAt(condition, 'type') ?? ''));
  return [
    ...others,
    ...wanted.map((condition) => {
      const before = present.find((candidate) => textAt(candidate, 'type') === condition.type);
      const since = textAt(before, 'status') === condition.status ? textAt(before, 'lastTransitionTime') : undefined;
      return { ...condition, lastTransitionTime: since ?? now };
    }),
  ];
}

/**
 * The status that a synced NAB ends with, as the NAC itself would leave it, plus our `Synced` condition. Writing it
 * complete at once leaves the NAC nothing to decide. Counters are the NAC's: none are set, those present stay.
 *
 * @param present status that the NAB has now, if any
 * @param now milliseconds since the epoch, for conditions that change
 */
export function syncedStatus(
  backup: JsonObject,
  origin: Origin,
  oadpNamespace: string,
  present: Readonly<Record<string, unknown>> | undefined,
  now: number,
): JsonObject {
  const name = textAt(backup, 'metadata', 'name') ?? '';
  const completionTime = timeAt(backup, 'status', 'completionTimestamp');
  const completed = completionTime === undefined ? 'an unknown time' : rfc3339Seconds(completionTime);
  return {
    ...present,
    phase: 'Created',
    conditions: withConditions(
      listAt(present, 'conditions'),
      [
        { type: 'Accepted', status: 'True', reason: 'BackupAccepted', message: 'backup accepted' },
        { type: 'Queued', status: 'True', reason: 'BackupScheduled', message: 'Created Velero Backup object' },
        {
          ...syncedCondition,
          status: 'True',
          message: `Re-created by nab-sync from the Velero Backup ${name}, which completed at ${completed}.`,
        },
      ],
      rfc3339Seconds(now),
    ),
    queueInfo: { estimatedQueuePosition: 0 },
    veleroBackup: {
      nacuuid: origin.nacuuid,
      name,
      namespace: oadpNamespace,
      spec: objectAt(backup, 'spec') ?? {},
      status: objectAt(backup, 'status') ?? {},
    },
  };
}
