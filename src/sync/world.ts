import type { BackupRecord } from '../oadp/backup.ts';
import type { DeleteRequestRecord } from '../oadp/delete-request.ts';
import type { NamespaceRecord } from '../oadp/namespace.ts';
import type { NonAdminBackupRecord } from '../oadp/non-admin-backup.ts';
import type { LocationOwnerRecord, StorageLocationRecord } from '../oadp/storage-location.ts';

/** What the admin has laid down about the sync. */
export interface SyncPolicy {
  readonly oadpNamespace: string;
  /** Namespaces that never get a NAB; `*` stands for any run of characters. */
  readonly protectedNamespaces: readonly string[];
  /** Storage locations of the admin's own, beside the default ones, whose backups count. */
  readonly storageLocations: readonly string[];
}

/** The state of the cluster as the rules see it: look-ups only, over whatever holds the records. */
export interface ClusterView {
  storageLocation(name: string): StorageLocationRecord | undefined;
  locationOwner(namespace: string, name: string): LocationOwnerRecord | undefined;
  deleteRequests(backupName: string): Iterable<DeleteRequestRecord>;
  namespace(name: string): NamespaceRecord | undefined;
  nonAdminBackup(namespace: string, name: string): NonAdminBackupRecord | undefined;
  /** All genuine backups (rules 1 to 8 passed) that claim this namespace and name. */
  claimants(namespace: string, name: string): Iterable<BackupRecord>;
}

/** Everything that a decision depends on, at one moment: not to be kept for longer, since what was looked up is remembered. */
export interface World {
  readonly policy: SyncPolicy;
  readonly view: ClusterView;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The NAB that has the name which the backup claims, whosever it is. Only for a backup that passed rule 1. */
  claimedNab(backup: BackupRecord): NonAdminBackupRecord | undefined;
  /** Of the syncable backups (rules 1 to 11 passed) that claim this namespace and name, the one that completed last. */
  newestSyncable(namespace: string, name: string): BackupRecord | undefined;
}
