import type { Resource } from '../kube/resource.ts';

/** The kinds that nab-sync reads and writes; those of others as Velero 1.18 and OADP 1.5 serve them. */

export const namespaces: Resource = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  namespaced: false,
};

/** Has no status subresource: Velero writes spec and status in one. */
export const backups: Resource = {
  group: 'velero.io',
  version: 'v1',
  plural: 'backups',
  kind: 'Backup',
  namespaced: true,
};

export const backupStorageLocations: Resource = {
  group: 'velero.io',
  version: 'v1',
  plural: 'backupstoragelocations',
  kind: 'BackupStorageLocation',
  namespaced: true,
};

export const deleteBackupRequests: Resource = {
  group: 'velero.io',
  version: 'v1',
  plural: 'deletebackuprequests',
  kind: 'DeleteBackupRequest',
  namespaced: true,
};

export const nonAdminBackups: Resource = {
  group: 'oadp.openshift.io',
  version: 'v1alpha1',
  plural: 'nonadminbackups',
  kind: 'NonAdminBackup',
  namespaced: true,
};

export const nonAdminBackupStorageLocations: Resource = {
  group: 'oadp.openshift.io',
  version: 'v1alpha1',
  plural: 'nonadminbackupstoragelocations',
  kind: 'NonAdminBackupStorageLocation',
  namespaced: true,
};

export const dataProtectionApplications: Resource = {
  group: 'oadp.openshift.io',
  version: 'v1alpha1',
  plural: 'dataprotectionapplications',
  kind: 'DataProtectionApplication',
  namespaced: true,
};

/** Our own kind (manifests/crd): asks for a sync and holds the answer. May not be installed. */
export const syncRequests: Resource = {
  group: 'sync.oadp.openshift.io',
  version: 'v1alpha1',
  plural: 'nonadminbackupsyncrequests',
  kind: 'NonAdminBackupSyncRequest',
  namespaced: true,
};
