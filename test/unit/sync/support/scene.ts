import type { JsonObject } from '../../../../src/kube/resource.ts';
import { toBackupRecord, type BackupRecord } from '../../../../src/oadp/backup.ts';
import { toDeleteRequestRecord, type DeleteRequestRecord } from '../../../../src/oadp/delete-request.ts';
import { toNamespaceRecord, type LabelPredicate, type NamespaceRecord } from '../../../../src/oadp/namespace.ts';
import { toNonAdminBackupRecord, type NonAdminBackupRecord } from '../../../../src/oadp/non-admin-backup.ts';
import { nameAt } from '../../../../src/oadp/read.ts';
import {
  toLocationOwnerRecord,
  toStorageLocationRecord,
  type LocationOwnerRecord,
  type StorageLocationRecord,
} from '../../../../src/oadp/storage-location.ts';
import { ClusterState, namespacedKey } from '../../../../src/sync/cluster-state.ts';
import { decide, trailOf, worldAt } from '../../../../src/sync/decide.ts';
import type { Decision } from '../../../../src/sync/reasons.ts';
import type { TrailStep } from '../../../../src/sync/report.ts';
import type { SyncPolicy, World } from '../../../../src/sync/world.ts';
import {
  namespaceObject,
  noon,
  oadpNamespace,
  storageLocation,
  veleroBackup,
} from '../../../support/gen/api-objects.ts';

export const usualPolicy: SyncPolicy = {
  oadpNamespace,
  protectedNamespaces: ['kube-*', 'openshift-*', 'openshift'],
  storageLocations: [],
};

/** Objects of a cluster. What is left out is as in a cluster where one NAB is missing and is to come back. */
export interface SceneObjects {
  readonly backups?: readonly JsonObject[];
  readonly storageLocations?: readonly JsonObject[];
  readonly locationOwners?: readonly JsonObject[];
  readonly deleteRequests?: readonly JsonObject[];
  readonly namespaces?: readonly JsonObject[];
  readonly nonAdminBackups?: readonly JsonObject[];
  readonly policy?: Partial<SyncPolicy>;
  readonly selector?: LabelPredicate;
  readonly now?: number;
}

/** The records and the state over them, filled the way the controller fills them: object by object. */
export interface Scene {
  readonly state: ClusterState;
  readonly policy: SyncPolicy;
  /** As it is now. */
  readonly world: () => World;
  readonly nonAdminBackups: Map<string, NonAdminBackupRecord>;
  /** Puts in place of the object of the same name, and says for which namespaces the decisions may have changed. */
  readonly put: {
    readonly backup: (object: JsonObject) => Set<string>;
    readonly namespace: (object: JsonObject) => Set<string>;
    readonly nonAdminBackup: (object: JsonObject) => Set<string>;
  };
  readonly decision: (backup?: string) => Decision;
  readonly trail: (backup?: string) => TrailStep[];
}

function nameOf(object: JsonObject): string {
  return nameAt(object, 'metadata', 'name') ?? '';
}

function keyOf(object: JsonObject): string {
  return namespacedKey(nameAt(object, 'metadata', 'namespace') ?? '', nameOf(object));
}

export function scene(objects: SceneObjects = {}): Scene {
  const {
    backups = [veleroBackup()],
    storageLocations = [storageLocation()],
    locationOwners = [],
    deleteRequests = [],
    namespaces = [namespaceObject()],
    nonAdminBackups = [],
    selector = () => true,
    now = noon,
  } = objects;
  const policy = { ...usualPolicy, ...objects.policy };
  const records = {
    backups: new Map<string, BackupRecord>(),
    storageLocations: new Map<string, StorageLocationRecord>(),
    locationOwners: new Map<string, LocationOwnerRecord>(),
    deleteRequests: new Map<string, DeleteRequestRecord>(),
    namespaces: new Map<string, NamespaceRecord>(),
    nonAdminBackups: new Map<string, NonAdminBackupRecord>(),
  };
  const state = new ClusterState(records, policy);
  const put = {
    backup: (object: JsonObject) => {
      const name = nameOf(object);
      const before = records.backups.get(name);
      const after = toBackupRecord(object);
      records.backups.set(name, after);
      return state.backupChanged(name, before, after);
    },
    namespace: (object: JsonObject) => {
      records.namespaces.set(nameOf(object), toNamespaceRecord(object, selector));
      return state.namespaceChanged(nameOf(object));
    },
    nonAdminBackup: (object: JsonObject) => {
      records.nonAdminBackups.set(keyOf(object), toNonAdminBackupRecord(object));
      return state.nonAdminBackupChanged(keyOf(object));
    },
  };
  for (const object of storageLocations) {
    const after = toStorageLocationRecord(object);
    records.storageLocations.set(nameOf(object), after);
    state.storageLocationChanged(nameOf(object), undefined, after);
  }
  for (const object of locationOwners) {
    records.locationOwners.set(keyOf(object), toLocationOwnerRecord(object));
    state.locationOwnerChanged(keyOf(object));
  }
  for (const object of deleteRequests) {
    const after = toDeleteRequestRecord(object);
    if (after === undefined) continue;
    records.deleteRequests.set(nameOf(object), after);
    state.deleteRequestChanged(nameOf(object), undefined, after);
  }
  for (const object of namespaces) put.namespace(object);
  for (const object of nonAdminBackups) put.nonAdminBackup(object);
  for (const object of backups) put.backup(object);

  const world = (): World => worldAt(policy, state, now);
  const [first] = backups;
  const usual = first === undefined ? '' : nameOf(first);
  const recordOf = (name: string): BackupRecord => {
    const record = state.backup(name);
    if (record === undefined) throw new Error(`the scene has no Backup ${name}`);
    return record;
  };
  return {
    state,
    policy,
    world,
    nonAdminBackups: records.nonAdminBackups,
    put,
    decision: (name = usual) => decide(recordOf(name), world()),
    trail: (name = usual) => trailOf(recordOf(name), world()),
  };
}
