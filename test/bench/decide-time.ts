import { toBackupRecord, type BackupRecord } from '../../src/oadp/backup.ts';
import { toNamespaceRecord, type NamespaceRecord } from '../../src/oadp/namespace.ts';
import {
  nonAdminBackupFor,
  syncedStatus,
  toNonAdminBackupRecord,
  type NonAdminBackupRecord,
} from '../../src/oadp/non-admin-backup.ts';
import { toStorageLocationRecord } from '../../src/oadp/storage-location.ts';
import { ClusterState, namespacedKey } from '../../src/sync/cluster-state.ts';
import { decide, originOf, worldAt } from '../../src/sync/decide.ts';
import { liveObjects } from '../support/gen/live-objects.ts';
import { oadpNamespace, places, storedBackup } from './stored-backup.ts';

/** Seconds for so many backups: to read them into records, to index them, and to decide about all of them. */
export interface DecideTime {
  readonly project: number;
  readonly index: number;
  readonly decide: number;
}

const policy = { oadpNamespace, protectedNamespaces: ['kube-*', 'openshift-*', 'openshift'], storageLocations: [] };

/** In this process, without any I/O; `missing`: no NAB is there, else all are. */
export function decideTime(count: number, missing: boolean): DecideTime {
  let project = 0;
  const records: BackupRecord[] = [];
  const namespaces = new Map<string, NamespaceRecord>();
  const nonAdminBackups = new Map<string, NonAdminBackupRecord>();
  for (const place of places('team', count, Math.ceil(count / 50))) {
    // One at a time, as they come from the API server: of an object nothing is kept but its record.
    const object = storedBackup(place);
    const projectBegan = performance.now();
    const record = toBackupRecord(object);
    project += performance.now() - projectBegan;
    records.push(record);
    const origin = originOf(record);
    namespaces.set(
      origin.namespace,
      toNamespaceRecord({ metadata: { name: origin.namespace } }, () => true),
    );
    if (missing) continue;
    const status = syncedStatus(object, origin, oadpNamespace, undefined, Date.now());
    const nab = toNonAdminBackupRecord({ ...nonAdminBackupFor(object, origin, undefined), status });
    nonAdminBackups.set(namespacedKey(origin.namespace, origin.name), nab);
  }
  const backups = new Map(records.map((record) => [record.name, record]));
  const location = toStorageLocationRecord(liveObjects(oadpNamespace).storageLocation());
  const state = new ClusterState(
    {
      backups,
      namespaces,
      nonAdminBackups,
      storageLocations: new Map([[location.name, location]]),
      locationOwners: new Map(),
      deleteRequests: new Map(),
    },
    policy,
  );
  const indexBegan = performance.now();
  for (const record of records) state.backupChanged(record.name, undefined, record);
  const index = performance.now() - indexBegan;

  const decideBegan = performance.now();
  let due = 0;
  for (const namespace of state.claimedNamespaces()) {
    const world = worldAt(policy, state, Date.now());
    for (const backup of state.backupsOf(namespace)) if (decide(backup, world).action === 'create') due += 1;
  }
  const decided = performance.now() - decideBegan;
  if (due !== (missing ? count : 0)) throw new Error(`${due} of ${count} were to be created`);
  return { project: project / 1000, index: index / 1000, decide: decided / 1000 };
}
