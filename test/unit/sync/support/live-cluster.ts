import fc from 'fast-check';
import type { JsonObject } from '../../../../src/kube/resource.ts';
import { Store } from '../../../../src/kube/store.ts';
import { toBackupRecord, type BackupRecord } from '../../../../src/oadp/backup.ts';
import { toDeleteRequestRecord, type DeleteRequestRecord } from '../../../../src/oadp/delete-request.ts';
import { toNamespaceRecord, type NamespaceRecord } from '../../../../src/oadp/namespace.ts';
import { toNonAdminBackupRecord, type NonAdminBackupRecord } from '../../../../src/oadp/non-admin-backup.ts';
import { nameAt } from '../../../../src/oadp/read.ts';
import {
  toLocationOwnerRecord,
  toStorageLocationRecord,
  type LocationOwnerRecord,
  type StorageLocationRecord,
} from '../../../../src/oadp/storage-location.ts';
import { ClusterState, namespacedKey } from '../../../../src/sync/cluster-state.ts';
import { decide, worldAt } from '../../../../src/sync/decide.ts';
import type { Decision } from '../../../../src/sync/reasons.ts';
import { noon } from '../../../support/gen/api-objects.ts';
import { furniture, type Arbitraries } from './arbitrary-objects.ts';
import { usualPolicy } from './scene.ts';

export type Kind = keyof Arbitraries;

/** Something that happens: an object is there in a new form, or is gone. */
export interface Happening {
  readonly kind: Kind;
  readonly object: JsonObject;
  readonly gone: boolean;
}

/** Things that happen in a cluster that mostly is furnished; of ten, one takes its object away. */
export function happenings(of: Arbitraries, maxLength: number): fc.Arbitrary<Happening[]> {
  const kinds: readonly Kind[] = [
    'backup',
    'storageLocation',
    'locationOwner',
    'deleteRequest',
    'namespace',
    'nonAdminBackup',
  ];
  const happening = fc.oneof(
    ...kinds.map((kind) =>
      fc.record({
        kind: fc.constant(kind),
        object: of[kind],
        gone: fc.nat({ max: 9 }).map((dice) => dice === 9),
      }),
    ),
    // Backups matter most, and there are more of them.
    {
      arbitrary: fc.record({ kind: fc.constant<Kind>('backup'), object: of.backup, gone: fc.constant(false) }),
      weight: 4,
    },
  );
  const furnished = [
    ...furniture.storageLocation.map((object) => ({ kind: 'storageLocation' as const, object, gone: false })),
    ...furniture.locationOwner.map((object) => ({ kind: 'locationOwner' as const, object, gone: false })),
    ...furniture.namespace.map((object) => ({ kind: 'namespace' as const, object, gone: false })),
  ];
  return fc
    .tuple(fc.nat({ max: 9 }), fc.array(happening, { maxLength, size: 'max' }))
    .map(([dice, events]) => (dice === 9 ? events : [...furnished, ...events]));
}

/** The policy of these tests: one further location is the admin's, and a label keeps a namespace out. */
export const policy = { ...usualPolicy, storageLocations: ['extra'] };

function byName(object: JsonObject): string | undefined {
  return nameAt(object, 'metadata', 'name');
}

function byNamespaceAndName(object: JsonObject): string | undefined {
  const namespace = nameAt(object, 'metadata', 'namespace');
  const name = byName(object);
  return namespace === undefined || name === undefined ? undefined : namespacedKey(namespace, name);
}

/** The key under which an object is kept; what has none is not kept. */
const keyOf: Readonly<Record<Kind, (object: JsonObject) => string | undefined>> = {
  backup: byName,
  storageLocation: byName,
  locationOwner: byNamespaceAndName,
  deleteRequest: byName,
  namespace: byName,
  nonAdminBackup: byNamespaceAndName,
};

/** What a Backup in a namespace deserves, by Backup. */
export type Decisions = ReadonlyMap<string, Decision>;

/** State and stores, wired as the controller wires them, fed with objects instead of watch events. */
export class LiveCluster {
  readonly #stores = {
    backup: new Store<BackupRecord>(),
    storageLocation: new Store<StorageLocationRecord>(),
    locationOwner: new Store<LocationOwnerRecord>(),
    deleteRequest: new Store<DeleteRequestRecord>(),
    namespace: new Store<NamespaceRecord>(),
    nonAdminBackup: new Store<NonAdminBackupRecord>(),
  };
  /** The objects as they came, for checks that must not rely on the records. */
  readonly objects: Readonly<Record<Kind, Map<string, JsonObject>>> = {
    backup: new Map(),
    storageLocation: new Map(),
    locationOwner: new Map(),
    deleteRequest: new Map(),
    namespace: new Map(),
    nonAdminBackup: new Map(),
  };
  readonly state = new ClusterState(
    {
      backups: this.#stores.backup,
      storageLocations: this.#stores.storageLocation,
      locationOwners: this.#stores.locationOwner,
      deleteRequests: this.#stores.deleteRequest,
      namespaces: this.#stores.namespace,
      nonAdminBackups: this.#stores.nonAdminBackup,
    },
    policy,
  );
  /** Namespaces said to be affected since the last `takeAffected`. */
  #affected = new Set<string>();

  constructor() {
    const { state } = this;
    const mark = (affected: Iterable<string>): void => {
      for (const namespace of affected) this.#affected.add(namespace);
    };
    this.#stores.backup.onChange((...change) => {
      mark(state.backupChanged(...change));
    });
    this.#stores.storageLocation.onChange((...change) => {
      mark(state.storageLocationChanged(...change));
    });
    this.#stores.locationOwner.onChange((key) => {
      mark(state.locationOwnerChanged(key));
    });
    this.#stores.deleteRequest.onChange((...change) => {
      mark(state.deleteRequestChanged(...change));
    });
    this.#stores.namespace.onChange((key) => {
      mark(state.namespaceChanged(key));
    });
    this.#stores.nonAdminBackup.onChange((key) => {
      mark(state.nonAdminBackupChanged(key));
    });
  }

  get listenerErrors(): number {
    return Object.values(this.#stores).reduce((errors, store) => errors + store.listenerErrors, 0);
  }

  takeAffected(): Set<string> {
    const affected = this.#affected;
    this.#affected = new Set();
    return affected;
  }

  happen({ kind, object, gone }: Happening): void {
    const key = keyOf[kind](object);
    if (key === undefined) return;
    if (gone) this.objects[kind].delete(key);
    else this.objects[kind].set(key, object);
    this.#show(kind, key, gone ? undefined : object);
  }

  /** As a list of one kind that comes anew: what is not in it is gone, and all is in place before anybody hears of it. */
  relist(kind: Kind, objects: readonly JsonObject[]): void {
    const kept = new Map<string, JsonObject>();
    for (const object of objects) {
      const key = keyOf[kind](object);
      if (key !== undefined) kept.set(key, object);
    }
    this.objects[kind].clear();
    for (const [key, object] of kept) this.objects[kind].set(key, object);
    switch (kind) {
      case 'backup':
        this.#stores.backup.replace(projected(kept, toBackupRecord));
        break;
      case 'storageLocation':
        this.#stores.storageLocation.replace(projected(kept, toStorageLocationRecord));
        break;
      case 'locationOwner':
        this.#stores.locationOwner.replace(projected(kept, toLocationOwnerRecord));
        break;
      case 'deleteRequest':
        this.#stores.deleteRequest.replace(projected(kept, toDeleteRequestRecord));
        break;
      case 'namespace':
        this.#stores.namespace.replace(projected(kept, toNamespace));
        break;
      case 'nonAdminBackup':
        this.#stores.nonAdminBackup.replace(projected(kept, toNonAdminBackupRecord));
        break;
    }
  }

  /** What every genuine backup deserves, by the namespace that it claims. */
  decisions(now = noon): Map<string, Decisions> {
    const world = worldAt(policy, this.state, now);
    return new Map(
      [...this.state.claimedNamespaces()].map((namespace) => [
        namespace,
        new Map([...this.state.backupsOf(namespace)].map((backup) => [backup.name, decide(backup, world)])),
      ]),
    );
  }

  /** What every Backup deserves, refused ones too. */
  allDecisions(now = noon): Map<string, Decision> {
    const world = worldAt(policy, this.state, now);
    return new Map([...this.state.allBackups()].map((backup) => [backup.name, decide(backup, world)]));
  }

  #show(kind: Kind, key: string, object: JsonObject | undefined): void {
    switch (kind) {
      case 'backup':
        show(this.#stores.backup, key, object && toBackupRecord(object));
        break;
      case 'storageLocation':
        show(this.#stores.storageLocation, key, object && toStorageLocationRecord(object));
        break;
      case 'locationOwner':
        show(this.#stores.locationOwner, key, object && toLocationOwnerRecord(object));
        break;
      case 'deleteRequest':
        show(this.#stores.deleteRequest, key, object && toDeleteRequestRecord(object));
        break;
      case 'namespace':
        show(this.#stores.namespace, key, object && toNamespace(object));
        break;
      case 'nonAdminBackup':
        show(this.#stores.nonAdminBackup, key, object && toNonAdminBackupRecord(object));
        break;
    }
  }
}

function toNamespace(object: JsonObject): NamespaceRecord {
  return toNamespaceRecord(object, ({ selected }) => selected !== 'no');
}

function show<R>(store: Store<R>, key: string, record: R | undefined): void {
  if (record === undefined) store.delete(key);
  else store.set(key, record);
}

function projected<R>(
  objects: ReadonlyMap<string, JsonObject>,
  project: (object: JsonObject) => R | undefined,
): Map<string, R> {
  const records = new Map<string, R>();
  for (const [key, object] of objects) {
    const record = project(object);
    if (record !== undefined) records.set(key, record);
  }
  return records;
}
