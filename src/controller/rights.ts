import { eventResource } from '../kube/event-object.ts';
import { leaseResource } from '../kube/lease-record.ts';
import type { Resource } from '../kube/resource.ts';
import {
  backups,
  backupStorageLocations,
  dataProtectionApplications,
  deleteBackupRequests,
  namespaces,
  nonAdminBackups,
  nonAdminBackupStorageLocations,
  syncRequests,
} from '../oadp/kinds.ts';
import { leaseName } from './sync-setup.ts';
import { configMapResource, statusConfigMapName } from './sync-status.ts';

/** One thing that nab-sync does to the API, in the words of RBAC. */
export interface Right {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';
  readonly resource: Resource;
  readonly subresource?: 'status';
  /** The one object that it is for; left out for all. */
  readonly objectName?: string;
  /** `cluster`: in every namespace. `oadp`: in the OADP namespace only. */
  readonly scope: 'cluster' | 'oadp';
  /** What does not work without it. */
  readonly whatFor: string;
}

const keptStatus = { resource: configMapResource, objectName: statusConfigMapName, scope: 'oadp' } as const;

/**
 * Everything that nab-sync does to the API and has to be granted: the roles in manifests/base grant exactly this, which
 * a test compares. Nothing is deleted but answered requests, and of what tenants have nothing is updated but the status of
 * NABs and of those requests.
 */
export const rights: readonly Right[] = [
  ...reading(namespaces, 'cluster', 'which namespaces exist, and which are going away'),
  ...reading(nonAdminBackups, 'cluster', 'which NABs are there already'),
  ...reading(nonAdminBackupStorageLocations, 'cluster', 'who owns a storage location: the tenant boundary'),
  ...reading(backups, 'oadp', 'the backups that are to come back'),
  ...reading(backupStorageLocations, 'oadp', 'where the backups lie'),
  ...reading(deleteBackupRequests, 'oadp', 'which backups are about to go'),
  ...reading(dataProtectionApplications, 'oadp', 'the sync period that the admin has set'),
  { verb: 'get', resource: backups, scope: 'oadp', whatFor: 'the Backup as it is just before its NAB is created' },
  { verb: 'get', resource: nonAdminBackups, scope: 'cluster', whatFor: 'the NAB that is in the way or is repaired' },
  { verb: 'create', resource: nonAdminBackups, scope: 'cluster', whatFor: 'NABs that come back' },
  { verb: 'update', resource: nonAdminBackups, subresource: 'status', scope: 'cluster', whatFor: 'their status' },
  ...reading(syncRequests, 'cluster', 'who asks for a sync'),
  { verb: 'update', resource: syncRequests, subresource: 'status', scope: 'cluster', whatFor: 'answering requests' },
  { verb: 'delete', resource: syncRequests, scope: 'cluster', whatFor: 'cleaning up requests that were answered' },
  { verb: 'create', resource: eventResource, scope: 'cluster', whatFor: 'telling tenants what came back' },
  { verb: 'patch', resource: eventResource, scope: 'cluster', whatFor: 'counting what is told again' },
  { verb: 'create', resource: leaseResource, scope: 'oadp', whatFor: 'the Lease, where there is none yet' },
  { verb: 'get', resource: leaseResource, objectName: leaseName, scope: 'oadp', whatFor: 'who leads' },
  { verb: 'update', resource: leaseResource, objectName: leaseName, scope: 'oadp', whatFor: 'leading' },
  { verb: 'create', resource: configMapResource, scope: 'oadp', whatFor: 'the kept status, where there is none yet' },
  { verb: 'get', ...keptStatus, whatFor: 'how the passes went before a restart' },
  { verb: 'update', ...keptStatus, whatFor: 'keeping how the passes went' },
];

/** A list for the start, a watch for what follows. */
function reading(resource: Resource, scope: Right['scope'], whatFor: string): Right[] {
  return [
    { verb: 'list', resource, scope, whatFor },
    { verb: 'watch', resource, scope, whatFor: `${whatFor}, as soon as it changes` },
  ];
}
