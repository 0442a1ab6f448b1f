import isEqual from 'lodash/isEqual.js';
import type { BackupRecord } from '../oadp/backup.ts';
import type { DeleteRequestRecord } from '../oadp/delete-request.ts';
import type { NamespaceRecord } from '../oadp/namespace.ts';
import type { NonAdminBackupRecord } from '../oadp/non-admin-backup.ts';
import type { LocationOwnerRecord, StorageLocationRecord } from '../oadp/storage-location.ts';
import { refusalOf, worldAt } from './decide.ts';
import type { Decision } from './reasons.ts';
import { locationSyncPatience } from './rules.ts';
import type { ClusterView, SyncPolicy } from './world.ts';

/** A collection of records by key; the reflectors' stores are such collections, and so is a Map. */
interface Records<R> {
  get(key: string): R | undefined;
  values(): Iterable<R>;
}

/** Where the records are. Keys are names, or `namespace/name` for kinds that live in many namespaces. */
export interface ClusterRecords {
  readonly backups: Records<BackupRecord>;
  readonly storageLocations: Records<StorageLocationRecord>;
  readonly locationOwners: Records<LocationOwnerRecord>;
  readonly deleteRequests: Records<DeleteRequestRecord>;
  readonly namespaces: Records<NamespaceRecord>;
  readonly nonAdminBackups: Records<NonAdminBackupRecord>;
}

/** `namespace/name`; no legal name holds a slash. */
export function namespacedKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

const noMembers: ReadonlySet<string> = new Set();

/** A map of sets that forgets its empty sets. */
class Groups {
  readonly #groups = new Map<string, Set<string>>();

  of(key: string): ReadonlySet<string> {
    return this.#groups.get(key) ?? noMembers;
  }

  keys(): Iterable<string> {
    return this.#groups.keys();
  }

  add(key: string, member: string): void {
    const group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, new Set([member]));
    else group.add(member);
  }

  remove(key: string, member: string): void {
    const group = this.#groups.get(key);
    group?.delete(member);
    if (group?.size === 0) this.#groups.delete(key);
  }
}

/**
 * The records of the cluster, with the indexes that the decisions need.
 *
 * Whether a claim is genuine (rules 1 to 8) is settled here, when a backup is indexed or its storage location changes.
 * Only genuine claims are filed under the namespace that they claim. A refused backup never becomes work there, so a
 * tenant's ten thousand forgeries cost the others nothing.
 *
 * The `…Changed` methods are told of each change after the record is in its collection, and return the namespaces for
 * which the decisions may have changed.
 */
export class ClusterState implements ClusterView {
  readonly #records: ClusterRecords;
  readonly #policy: SyncPolicy;
  /** Genuine backups by the namespace that they claim, and by `namespace/name`. */
  readonly #byNamespace = new Groups();
  readonly #byOrigin = new Groups();
  /** All backups, refused ones too, by storage location. */
  readonly #byLocation = new Groups();
  readonly #requestsByBackup = new Groups();
  /** Where each genuine backup is filed. */
  readonly #filed = new Map<string, { readonly namespace: string; readonly origin: string }>();
  readonly #refused = new Map<string, Decision>();

  constructor(records: ClusterRecords, policy: SyncPolicy) {
    this.#records = records;
    this.#policy = policy;
  }

  storageLocation(name: string): StorageLocationRecord | undefined {
    return this.#records.storageLocations.get(name);
  }

  locationOwner(namespace: string, name: string): LocationOwnerRecord | undefined {
    return this.#records.locationOwners.get(namespacedKey(namespace, name));
  }

  *deleteRequests(backupName: string): Iterable<DeleteRequestRecord> {
    for (const key of this.#requestsByBackup.of(backupName)) {
      const request = this.#records.deleteRequests.get(key);
      if (request !== undefined) yield request;
    }
  }

  namespace(name: string): NamespaceRecord | undefined {
    return this.#records.namespaces.get(name);
  }

  nonAdminBackup(namespace: string, name: string): NonAdminBackupRecord | undefined {
    return this.#records.nonAdminBackups.get(namespacedKey(namespace, name));
  }

  claimants(namespace: string, name: string): Iterable<BackupRecord> {
    return this.#backupsNamed(this.#byOrigin.of(namespacedKey(namespace, name)));
  }

  /** The genuine backups of a namespace. */
  backupsOf(namespace: string): Iterable<BackupRecord> {
    return this.#backupsNamed(this.#byNamespace.of(namespace));
  }

  backup(name: string): BackupRecord | undefined {
    return this.#records.backups.get(name);
  }

  allBackups(): Iterable<BackupRecord> {
    return this.#records.backups.values();
  }

  /** The backups refused by rules 1 to 8, with the refusal. */
  refused(): ReadonlyMap<string, Decision> {
    return this.#refused;
  }

  /** The namespaces that genuine backups claim, existing or not. */
  claimedNamespaces(): Iterable<string> {
    return this.#byNamespace.keys();
  }

  backupChanged(name: string, before: BackupRecord | undefined, after: BackupRecord | undefined): Set<string> {
    if (before?.storageLocation !== undefined) this.#byLocation.remove(before.storageLocation, name);
    if (after?.storageLocation !== undefined) this.#byLocation.add(after.storageLocation, name);
    return this.#settle(name, after);
  }

  storageLocationChanged(
    name: string,
    before: StorageLocationRecord | undefined,
    after: StorageLocationRecord | undefined,
  ): Set<string> {
    // Velero stamps every location every minute. When nothing but that stamp changed, no claim is affected, and of the
    // decisions only those that wait for it.
    const onlyStamped =
      before !== undefined &&
      after !== undefined &&
      isEqual({ ...before, lastSyncedTime: after.lastSyncedTime }, after);
    if (!onlyStamped) return this.#settleAll(this.#byLocation.of(name));
    // The stamp may also go back, when a location of an old name was made anew.
    const seen = Math.min(...[before, after].map(({ lastSyncedTime }) => lastSyncedTime ?? Number.NEGATIVE_INFINITY));
    const waiting = new Set<string>();
    for (const backup of this.#backupsNamed(this.#byLocation.of(name))) {
      const filed = this.#filed.get(backup.name);
      if (filed !== undefined && (backup.creationTime ?? 0) > seen - locationSyncPatience) waiting.add(filed.namespace);
    }
    return waiting;
  }

  /** `key` is the NABSL's `namespace/name`. */
  locationOwnerChanged(key: string): Set<string> {
    const affected = new Set<string>();
    for (const { name, owner } of this.#records.storageLocations.values()) {
      if (typeof owner !== 'object' || namespacedKey(owner.namespace, owner.name) !== key) continue;
      for (const namespace of this.#settleAll(this.#byLocation.of(name))) affected.add(namespace);
    }
    return affected;
  }

  deleteRequestChanged(
    key: string,
    before: DeleteRequestRecord | undefined,
    after: DeleteRequestRecord | undefined,
  ): Set<string> {
    if (before !== undefined) this.#requestsByBackup.remove(before.backupName, key);
    if (after !== undefined) this.#requestsByBackup.add(after.backupName, key);
    const filed = [before, after].map((request) => this.#filed.get(request?.backupName ?? '')?.namespace);
    return new Set(filed.filter((namespace) => namespace !== undefined));
  }

  namespaceChanged(name: string): Set<string> {
    return new Set(this.#byNamespace.of(name).size > 0 ? [name] : []);
  }

  /** `key` is the NAB's `namespace/name`. A NAB that no backup claims is none of our business. */
  nonAdminBackupChanged(key: string): Set<string> {
    const [claimant] = this.#byOrigin.of(key);
    const namespace = claimant === undefined ? undefined : this.#filed.get(claimant)?.namespace;
    return new Set(namespace === undefined ? [] : [namespace]);
  }

  *#backupsNamed(names: Iterable<string>): Iterable<BackupRecord> {
    for (const name of names) {
      const backup = this.#records.backups.get(name);
      if (backup !== undefined) yield backup;
    }
  }

  #settleAll(names: Iterable<string>): Set<string> {
    const affected = new Set<string>();
    for (const name of names) {
      for (const namespace of this.#settle(name, this.#records.backups.get(name))) affected.add(namespace);
    }
    return affected;
  }

  /** Files a backup anew; returns the namespaces where it was filed and where it is filed now. */
  #settle(name: string, backup: BackupRecord | undefined): Set<string> {
    const affected = new Set<string>();
    const before = this.#filed.get(name);
    if (before !== undefined) {
      affected.add(before.namespace);
      this.#byNamespace.remove(before.namespace, name);
      this.#byOrigin.remove(before.origin, name);
      this.#filed.delete(name);
    }
    this.#refused.delete(name);
    if (backup === undefined) return affected;
    // Rules 1 to 8 look at the backup and its storage location, never at the time.
    const refusal = refusalOf(backup, worldAt(this.#policy, this, 0));
    const { namespace, name: claimedName } = backup.claim;
    if (refusal !== undefined) {
      this.#refused.set(name, refusal);
    } else if (namespace !== undefined && claimedName !== undefined) {
      const filed = { namespace, origin: namespacedKey(namespace, claimedName) };
      this.#filed.set(name, filed);
      this.#byNamespace.add(filed.namespace, name);
      this.#byOrigin.add(filed.origin, name);
      affected.add(namespace);
    }
    return affected;
  }
}
