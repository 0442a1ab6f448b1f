import type { JsonObject } from '../../../src/kube/resource.ts';

/**
 * Objects as the API server would send them, for tests: each builder makes one that is in order, and takes what is to
 * differ. Given parts (`labels`, `spec`, `status`, ...) are laid over the usual ones; `undefined` takes a field away, as a
 * forger or an old version would.
 */

/** Where Velero and OADP live in tests. */
export const oadpNamespace = 'openshift-adp';

/** The moment at which tests look at the world. */
export const noon = Date.UTC(2026, 0, 15, 12);

/** RFC 3339 of a moment so many milliseconds away from `noon`. */
export function at(offsetMs: number): string {
  return new Date(noon + offsetMs).toISOString().replace('.000Z', 'Z');
}

export const second = 1000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

type Fields = Readonly<Record<string, unknown>>;

function over(usual: Fields, given: Fields | undefined): JsonObject {
  return { ...usual, ...given };
}

const ofTheNac = { 'openshift.io/oadp': 'True', 'app.kubernetes.io/managed-by': 'oadp-nac-controller' };

export interface VeleroBackupShape {
  /** Name and NACUUID. */
  readonly nacuuid?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly metadata?: Fields;
  readonly labels?: Fields;
  readonly annotations?: Fields;
  readonly spec?: Fields;
  readonly status?: Fields;
}

/** A completed Velero Backup of namespace `team-a`, read from the bucket an hour ago, as the NAC would have made it. */
export function veleroBackup(shape: VeleroBackupShape = {}): JsonObject {
  const { nacuuid = 'team-a-daily-1', namespace = 'team-a', name = 'daily' } = shape;
  return {
    apiVersion: 'velero.io/v1',
    kind: 'Backup',
    metadata: over(
      {
        name: nacuuid,
        namespace: oadpNamespace,
        uid: `uid-of-${nacuuid}`,
        resourceVersion: '100',
        creationTimestamp: at(-hour),
        labels: over(
          { ...ofTheNac, 'openshift.io/oadp-nab-origin-nacuuid': nacuuid, 'velero.io/storage-location': 'default' },
          shape.labels,
        ),
        annotations: over(
          { 'openshift.io/oadp-nab-origin-name': name, 'openshift.io/oadp-nab-origin-namespace': namespace },
          shape.annotations,
        ),
      },
      shape.metadata,
    ),
    spec: over({ includedNamespaces: [namespace], storageLocation: 'default', ttl: '720h0m0s' }, shape.spec),
    status: over(
      {
        phase: 'Completed',
        startTimestamp: at(-day - minute),
        completionTimestamp: at(-day),
        expiration: at(29 * day),
      },
      shape.status,
    ),
  };
}

export interface ObjectShape {
  readonly namespace?: string;
  readonly name?: string;
  readonly metadata?: Fields;
  readonly labels?: Fields;
  readonly annotations?: Fields;
  readonly spec?: Fields;
  readonly status?: Fields;
}

/** The admin's default BackupStorageLocation, which Velero read a minute ago. */
export function storageLocation(shape: ObjectShape = {}): JsonObject {
  const { name = 'default' } = shape;
  return {
    apiVersion: 'velero.io/v1',
    kind: 'BackupStorageLocation',
    metadata: over(
      { name, namespace: oadpNamespace, labels: over({}, shape.labels), annotations: over({}, shape.annotations) },
      shape.metadata,
    ),
    spec: over({ default: true, accessMode: 'ReadWrite', provider: 'aws' }, shape.spec),
    status: over({ phase: 'Available', lastSyncedTime: at(-minute) }, shape.status),
  };
}

/** The BackupStorageLocation that the NAC made for NABSL `team-a/bucket`. */
export function ownedStorageLocation(shape: ObjectShape & { readonly ownerNacuuid?: string } = {}): JsonObject {
  const { namespace = 'team-a', name = 'team-a-bucket-1', ownerNacuuid = name } = shape;
  return storageLocation({
    ...shape,
    name,
    labels: over({ ...ofTheNac, 'openshift.io/oadp-nabsl-origin-nacuuid': ownerNacuuid }, shape.labels),
    annotations: over(
      { 'openshift.io/oadp-nabsl-origin-name': 'bucket', 'openshift.io/oadp-nabsl-origin-namespace': namespace },
      shape.annotations,
    ),
    spec: over({ default: false }, shape.spec),
  });
}

/** A tenant's NonAdminBackupStorageLocation: the owner of what `ownedStorageLocation` makes. */
export function nonAdminStorageLocation(shape: ObjectShape & { readonly nacuuid?: string } = {}): JsonObject {
  const { namespace = 'team-a', name = 'bucket', nacuuid = 'team-a-bucket-1' } = shape;
  return {
    apiVersion: 'oadp.openshift.io/v1alpha1',
    kind: 'NonAdminBackupStorageLocation',
    metadata: over({ name, namespace }, shape.metadata),
    spec: over({}, shape.spec),
    status: over(
      { phase: 'Created', veleroBackupStorageLocation: { nacuuid, name: nacuuid, namespace: oadpNamespace } },
      shape.status,
    ),
  };
}

export function namespaceObject(shape: ObjectShape = {}): JsonObject {
  const { name = 'team-a' } = shape;
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: over(
      { name, uid: `uid-of-${name}`, resourceVersion: '7', labels: over({}, shape.labels) },
      shape.metadata,
    ),
    status: over({ phase: 'Active' }, shape.status),
  };
}

export interface NonAdminBackupShape extends ObjectShape {
  /** Of the Velero Backup in its status. */
  readonly nacuuid?: string | undefined;
  /** Value of the sync label; left out for a NAB that its user made. */
  readonly syncedFrom?: string;
}

/** A NonAdminBackup `team-a/daily` as the NAC leaves it. */
export function nonAdminBackup(shape: NonAdminBackupShape = {}): JsonObject {
  const { namespace = 'team-a', name = 'daily', syncedFrom } = shape;
  const nacuuid = 'nacuuid' in shape ? shape.nacuuid : 'team-a-daily-1';
  const reference = { nacuuid, name: nacuuid, namespace: oadpNamespace };
  return {
    apiVersion: 'oadp.openshift.io/v1alpha1',
    kind: 'NonAdminBackup',
    metadata: over(
      {
        name,
        namespace,
        uid: `uid-of-${name}`,
        resourceVersion: '50',
        labels: over(
          syncedFrom === undefined ? {} : { 'openshift.io/oadp-nab-synced-from-nacuuid': syncedFrom },
          shape.labels,
        ),
      },
      shape.metadata,
    ),
    spec: over({ backupSpec: {} }, shape.spec),
    status: over(
      {
        phase: 'Created',
        conditions: [{ type: 'Accepted', status: 'True', reason: 'BackupAccepted', message: 'backup accepted' }],
        ...(nacuuid === undefined ? {} : { veleroBackup: reference }),
      },
      shape.status,
    ),
  };
}

/** What our create leaves before anybody has written its status. */
export function bareNonAdminBackup(shape: NonAdminBackupShape = {}): JsonObject {
  const { status, ...bare } = nonAdminBackup({ syncedFrom: 'team-a-daily-1', ...shape });
  return shape.status === undefined ? bare : { ...bare, status: shape.status };
}

/** The condition that the NAC sets for good when it looks for a Backup that is away. */
export const backupNotFound = {
  type: 'Accepted',
  status: 'False',
  reason: 'VeleroBackupNotFound',
  message: 'related Velero Backup to be synced from not found',
  lastTransitionTime: at(-hour),
};

/** A DeleteBackupRequest for the usual Backup that Velero has not taken up yet. */
export function deleteRequest(shape: ObjectShape & { readonly backupName?: string } = {}): JsonObject {
  const { name = 'request-1', backupName = 'team-a-daily-1' } = shape;
  return {
    apiVersion: 'velero.io/v1',
    kind: 'DeleteBackupRequest',
    metadata: over({ name, namespace: oadpNamespace }, shape.metadata),
    spec: over({ backupName }, shape.spec),
    status: over({}, shape.status),
  };
}
