import type { JsonObject } from '../kube/resource.ts';
import {
  bearsNacLabels,
  nabslOriginNacuuidLabel,
  nabslOriginNameAnnotation,
  nabslOriginNamespaceAnnotation,
  nacLabels,
} from './labels.ts';
import { nameAt, textAt, timeAt, valueAt } from './read.ts';

/** The NABSL that a BackupStorageLocation names as its owner. */
interface OwnerRef {
  readonly namespace: string;
  readonly name: string;
  readonly nacuuid: string;
}

/** What is kept of a Velero BackupStorageLocation (BSL). Times in ms since the epoch. */
export interface StorageLocationRecord {
  readonly name: string;
  readonly isDefault: boolean;
  /** Velero never collects expired backups on a read-only location. */
  readonly readOnly: boolean;
  readonly available: boolean;
  readonly lastSyncedTime: number | undefined;
  /** `spec.backupSyncPeriod`, a Go duration, as it stands there. */
  readonly syncPeriod: string | undefined;
  /**
   * Whose bucket it is: a tenant's NABSL, or `admin` where it carries no mark of one. `unclear` where the marks of a
   * NABSL are there in part: such a bucket may be a tenant's, so it counts for nobody.
   */
  readonly owner: OwnerRef | 'admin' | 'unclear';
}

const managedBy = 'app.kubernetes.io/managed-by';

/**
 * Whether anything on a location says that the NAC made it for a tenant, were it a mark that has lost its value. The
 * label `openshift.io/oadp` says nothing, since the admin's locations have it too.
 */
function bearsMarks(location: JsonObject): boolean {
  return (
    textAt(location, 'metadata', 'labels', managedBy) === nacLabels[managedBy] ||
    valueAt(location, 'metadata', 'labels', nabslOriginNacuuidLabel) !== undefined ||
    valueAt(location, 'metadata', 'annotations', nabslOriginNamespaceAnnotation) !== undefined ||
    valueAt(location, 'metadata', 'annotations', nabslOriginNameAnnotation) !== undefined
  );
}

function ownerOf(location: JsonObject): StorageLocationRecord['owner'] {
  if (!bearsMarks(location)) return 'admin';
  const nacuuid = nameAt(location, 'metadata', 'labels', nabslOriginNacuuidLabel);
  const namespace = nameAt(location, 'metadata', 'annotations', nabslOriginNamespaceAnnotation);
  const name = nameAt(location, 'metadata', 'annotations', nabslOriginNameAnnotation);
  if (!bearsNacLabels(location) || nacuuid === undefined || namespace === undefined || name === undefined)
    return 'unclear';
  return { namespace, name, nacuuid };
}

export function toStorageLocationRecord(location: JsonObject): StorageLocationRecord {
  return {
    name: textAt(location, 'metadata', 'name') ?? '',
    isDefault: valueAt(location, 'spec', 'default') === true,
    readOnly: textAt(location, 'spec', 'accessMode') === 'ReadOnly',
    available: textAt(location, 'status', 'phase') === 'Available',
    lastSyncedTime: timeAt(location, 'status', 'lastSyncedTime'),
    syncPeriod: nameAt(location, 'spec', 'backupSyncPeriod'),
    owner: ownerOf(location),
  };
}

/** Whether it is the admin's and its backups count: the default, or one that the admin named. */
export function isAdmins({ owner, isDefault, name }: StorageLocationRecord, named: readonly string[]): boolean {
  return owner === 'admin' && (isDefault || named.includes(name));
}

/** What is kept of a NonAdminBackupStorageLocation (NABSL), a tenant's own storage location. */
export interface LocationOwnerRecord {
  readonly deleting: boolean;
  /** NACUUID of the BSL that belongs to it; absent until the NAC has made one. */
  readonly nacuuid: string | undefined;
}

export function toLocationOwnerRecord(owner: JsonObject): LocationOwnerRecord {
  return {
    deleting: textAt(owner, 'metadata', 'deletionTimestamp') !== undefined,
    nacuuid: nameAt(owner, 'status', 'veleroBackupStorageLocation', 'nacuuid'),
  };
}
