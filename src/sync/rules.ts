import type { BackupRecord } from '../oadp/backup.ts';
import { isDnsLabel, isDnsSubdomain, isLabelValue } from '../oadp/names.ts';
import { printable, quoted } from '../oadp/printable.ts';
import { rfc3339Seconds } from '../oadp/read.ts';
import type { StorageLocationRecord } from '../oadp/storage-location.ts';
import { actionOf, type Decision, type DecisionReason } from './reasons.ts';
import type { World } from './world.ts';

/**
 * The rules that decide what a Velero Backup deserves. Pure; their order is the specification: the first rule that has
 * something to say decides.
 *
 * Rules 1 to 8 ask whether the claim is genuine. All that they look at in the Backup is a tenant's to forge, since a
 * tenant can edit the metadata in his own bucket; what can be trusted is the storage location, which Velero sets itself
 * from the bucket that it read, and the admin's objects. Rules 9 to 11 ask whether the backup is ready, rules 12 to 18
 * what is to be done in the namespace.
 */
export interface Rule {
  /** What the rule makes sure of, as a sentence. */
  readonly asks: string;
  /** The decision, or undefined where the rule lets the backup pass. */
  readonly check: (backup: BackupRecord, world: World) => Decision | undefined;
  /** What it looks at, for `explain`; raw values, made printable by the caller. */
  readonly looksAt: (backup: BackupRecord, world: World) => Readonly<Record<string, unknown>>;
}

/** How long a new Backup may wait for Velero to finish reading its bucket. */
export const locationSyncPatience = 120_000;

/**
 * How old the stamp of a location must be to count. It arrives on another watch than the Backups that were read before
 * it, and may overtake them; and it is in whole seconds, so half of this may be over when it is made.
 */
export const stampMargin = 2000;

/** Phases of a Backup that is finished and stored. FailedValidation is finished too, but never reached the bucket. */
const finishedPhases: ReadonlySet<string | undefined> = new Set(['Completed', 'PartiallyFailed', 'Failed']);

function decided(reason: DecisionReason, message: string): Decision {
  return { action: actionOf[reason], reason, message };
}

function time(milliseconds: number | undefined): string {
  return milliseconds === undefined ? 'none' : rfc3339Seconds(milliseconds);
}

function locationOf(backup: BackupRecord, world: World): StorageLocationRecord | undefined {
  return backup.storageLocation === undefined ? undefined : world.view.storageLocation(backup.storageLocation);
}

/** The parts of a claim as text. Only for rules behind the first, which has refused claims that lack a part. */
function claimOf(backup: BackupRecord): { nacuuid: string; namespace: string; name: string } {
  const { nacuuid = '', namespace = '', name = '' } = backup.claim;
  return { nacuuid, namespace, name };
}

/** Whether a namespace matches a pattern in which `*` stands for any run of characters. */
export function matchesPattern(pattern: string, namespace: string): boolean {
  const firstStar = pattern.indexOf('*');
  if (firstStar === -1) return namespace === pattern;
  const head = pattern.slice(0, firstStar);
  if (!namespace.startsWith(head)) return false;
  const tails = pattern.slice(firstStar + 1).split('*');
  const last = tails.pop() ?? '';
  if (!namespace.endsWith(last)) return false;
  // Each middle part takes its first place behind the one before it; no regular expression, so no backtracking.
  let from = head.length;
  for (const part of tails) {
    const found = namespace.indexOf(part, from);
    if (found === -1) return false;
    from = found + part.length;
  }
  return from <= namespace.length - last.length;
}

const validOrigin: Rule = {
  asks: 'The Backup says which NonAdminBackup it was made from, in legal names',
  check: ({ claim }) => {
    const problems = [
      claim.nacuuid === undefined
        ? 'it has no NACUUID label'
        : isLabelValue(claim.nacuuid)
          ? undefined
          : `its NACUUID ${quoted(claim.nacuuid)} is not a label value`,
      claim.namespace === undefined
        ? 'it has no origin namespace annotation'
        : isDnsLabel(claim.namespace)
          ? undefined
          : `its origin namespace ${quoted(claim.namespace)} is not a DNS label`,
      claim.name === undefined
        ? 'it has no origin name annotation'
        : isDnsSubdomain(claim.name)
          ? undefined
          : `its origin name ${quoted(claim.name)} is not a DNS subdomain`,
    ].filter((problem) => problem !== undefined);
    if (problems.length === 0) return undefined;
    return decided('InvalidOrigin', `The Backup does not say legally where it came from: ${problems.join('; ')}.`);
  },
  looksAt: ({ claim }) => ({ nacuuid: claim.nacuuid, namespace: claim.namespace, name: claim.name }),
};

const ownIdentity: Rule = {
  asks: 'The Backup is named like its NACUUID, as the non-admin controller always names them',
  check: (backup) =>
    backup.claim.nacuuid === backup.name
      ? undefined
      : decided(
          'IdentityMismatch',
          'The Backup is not named like its NACUUID: the NACUUID is a copy of another backup’s.',
        ),
  looksAt: (backup) => ({ backup: backup.name, nacuuid: backup.claim.nacuuid }),
};

const unprotectedNamespace: Rule = {
  asks: 'The namespace is not the OADP namespace and not a protected one',
  check: (backup, { policy }) => {
    const { namespace } = claimOf(backup);
    if (namespace === policy.oadpNamespace) {
      return decided('ProtectedNamespace', `Namespace ${quoted(namespace)} is the OADP namespace itself.`);
    }
    const pattern = policy.protectedNamespaces.find((candidate) => matchesPattern(candidate, namespace));
    if (pattern === undefined) return undefined;
    return decided(
      'ProtectedNamespace',
      `Namespace ${quoted(namespace)} is protected by the pattern ${quoted(pattern)}.`,
    );
  },
  looksAt: (backup, { policy }) => ({
    namespace: backup.claim.namespace,
    oadpNamespace: policy.oadpNamespace,
    protected: policy.protectedNamespaces.join(', '),
  }),
};

const knownStorageLocation: Rule = {
  asks: 'Its storage location exists',
  check: (backup, world) =>
    locationOf(backup, world) !== undefined
      ? undefined
      : decided(
          'UnknownStorageLocation',
          backup.storageLocation === undefined
            ? 'The Backup names no storage location.'
            : `There is no BackupStorageLocation ${quoted(backup.storageLocation)} in the OADP namespace.`,
        ),
  looksAt: (backup, world) => ({
    storageLocation: backup.storageLocation,
    exists: locationOf(backup, world) !== undefined,
  }),
};

const watchedStorageLocation: Rule = {
  asks: 'Its storage location is a default one, one that the admin named, or a tenant’s own',
  check: (backup, world) => {
    const location = locationOf(backup, world);
    if (location === undefined || typeof location.owner === 'object') return undefined;
    if (location.owner === 'unclear') {
      return decided(
        'UnwatchedStorageLocation',
        `BackupStorageLocation ${quoted(location.name)} carries only some of the marks of a tenant’s location: whose it is cannot be told.`,
      );
    }
    if (location.isDefault || world.policy.storageLocations.includes(location.name)) return undefined;
    return decided(
      'UnwatchedStorageLocation',
      `BackupStorageLocation ${quoted(location.name)} is not a default one, not named by --storage-location and not owned by a tenant.`,
    );
  },
  looksAt: (backup, world) => {
    const location = locationOf(backup, world);
    return {
      default: location?.isDefault,
      owner:
        typeof location?.owner === 'object' ? `${location.owner.namespace}/${location.owner.name}` : location?.owner,
      named: world.policy.storageLocations.join(', '),
    };
  },
};

const storageLocationOwnerExists: Rule = {
  asks: 'The NonAdminBackupStorageLocation that owns the storage location exists and is the one it was made for',
  check: (backup, world) => {
    const owner = locationOf(backup, world)?.owner;
    if (typeof owner !== 'object') return undefined;
    const record = world.view.locationOwner(owner.namespace, owner.name);
    const problem =
      record === undefined
        ? 'does not exist'
        : record.deleting
          ? 'is being deleted'
          : record.nacuuid !== undefined && record.nacuuid !== owner.nacuuid
            ? 'is a new one of an old name'
            : undefined;
    if (problem === undefined) return undefined;
    return decided(
      'StorageLocationOwnerGone',
      `The owner of BackupStorageLocation ${quoted(backup.storageLocation)}, NonAdminBackupStorageLocation ${quoted(owner.name)} in namespace ${quoted(owner.namespace)}, ${problem}.`,
    );
  },
  looksAt: (backup, world) => {
    const owner = locationOf(backup, world)?.owner;
    if (typeof owner !== 'object') return { owner: 'none: the location is the admin’s' };
    const record = world.view.locationOwner(owner.namespace, owner.name);
    return {
      owner: `${owner.namespace}/${owner.name}`,
      exists: record !== undefined,
      deleting: record?.deleting,
      sameNacuuid: record === undefined ? undefined : record.nacuuid === undefined || record.nacuuid === owner.nacuuid,
    };
  },
};

/** The tenant boundary: what lies in a tenant's bucket can come back in that tenant's namespace only. */
const storageLocationOwnerMatches: Rule = {
  asks: 'A tenant’s storage location only brings backups back into the tenant’s own namespace',
  check: (backup, world) => {
    const owner = locationOf(backup, world)?.owner;
    if (typeof owner !== 'object' || owner.namespace === backup.claim.namespace) return undefined;
    return decided(
      'StorageLocationOwnerMismatch',
      `The Backup lies in the storage location of namespace ${quoted(owner.namespace)}, but claims to come from namespace ${quoted(backup.claim.namespace)}.`,
    );
  },
  looksAt: (backup, world) => {
    const owner = locationOf(backup, world)?.owner;
    return {
      ownerNamespace: typeof owner === 'object' ? owner.namespace : 'none: the location is the admin’s',
      namespace: backup.claim.namespace,
    };
  },
};

const ownContentOnly: Rule = {
  asks: 'The Backup includes its origin namespace and nothing else',
  check: ({ includedNamespaces, claim }) => {
    if (includedNamespaces.count === 1 && includedNamespaces.first === claim.namespace) return undefined;
    const included =
      includedNamespaces.count === 0
        ? 'no namespace by name'
        : includedNamespaces.count === 1
          ? `namespace ${quoted(includedNamespaces.first)}`
          : `${String(includedNamespaces.count)} namespaces`;
    return decided(
      'ForeignContent',
      `The Backup includes ${included} instead of namespace ${quoted(claim.namespace)} alone.`,
    );
  },
  looksAt: ({ includedNamespaces, claim }) => ({
    includedNamespaces: includedNamespaces.count,
    first: includedNamespaces.first,
    namespace: claim.namespace,
  }),
};

const notBeingDeleted: Rule = {
  asks: 'The Backup is not being deleted',
  check: (backup, { view }) => {
    const requests = [...view.deleteRequests(backup.name)];
    const unfinished = requests.some((request) => !request.processed);
    if (!backup.deleting && backup.phase !== 'Deleting' && !unfinished) return undefined;
    const errors = requests.flatMap((request) => request.errors).slice(0, 3);
    const cause = unfinished ? 'a DeleteBackupRequest for it is not finished' : 'Velero is deleting it';
    const told = errors.length === 0 ? '' : `; Velero reported: ${errors.join('; ')}`;
    return decided('BeingDeleted', `The Backup is being deleted: ${cause}${told}.`);
  },
  looksAt: (backup, { view }) => ({
    deletionTimestamp: backup.deleting,
    phase: backup.phase,
    unfinishedRequests: [...view.deleteRequests(backup.name)].filter((request) => !request.processed).length,
  }),
};

const finished: Rule = {
  asks: 'The Backup is finished and stored',
  check: (backup) =>
    finishedPhases.has(backup.phase) && backup.completionTime !== undefined
      ? undefined
      : decided(
          'NotFinished',
          `The Backup is not finished: its phase is ${quoted(backup.phase)}, ${backup.completionTime === undefined ? 'without' : 'with'} a completion time.`,
        ),
  looksAt: (backup) => ({ phase: backup.phase, completed: time(backup.completionTime) }),
};

const notExpired: Rule = {
  asks: 'The Backup has not expired, or lies where Velero never collects expired ones',
  check: (backup, world) => {
    if (backup.expiration === undefined || backup.expiration > world.now) return undefined;
    if (locationOf(backup, world)?.readOnly === true) return undefined;
    return decided('Expired', `The Backup expired at ${time(backup.expiration)}; Velero is about to remove it.`);
  },
  looksAt: (backup, world) => ({
    expiration: time(backup.expiration),
    now: time(world.now),
    readOnlyLocation: locationOf(backup, world)?.readOnly,
  }),
};

const usableNamespace: Rule = {
  asks: 'The namespace exists, is not going away, and is selected',
  check: (backup, world) => {
    const { namespace } = claimOf(backup);
    const record = world.view.namespace(namespace);
    if (record === undefined) {
      return decided(
        'NamespaceMissing',
        `Namespace ${quoted(namespace)} does not exist; it gets its backups when it does.`,
      );
    }
    if (record.terminating) return decided('NamespaceTerminating', `Namespace ${quoted(namespace)} is being deleted.`);
    if (!record.selected) {
      return decided('NamespaceNotSelected', `Namespace ${quoted(namespace)} does not match the namespace selector.`);
    }
    return undefined;
  },
  looksAt: (backup, world) => {
    const record = world.view.namespace(claimOf(backup).namespace);
    return { exists: record !== undefined, terminating: record?.terminating, selected: record?.selected };
  },
};

/** Stands before `notPresent`, since a NAB in need of repair is present as well. */
const wellWritten: Rule = {
  asks: 'A NonAdminBackup that was re-created for it has a status, and not one from a time when the Backup was away',
  check: (backup, world) => {
    const nab = world.claimedNab(backup);
    if (nab === undefined || nab.nacuuid !== backup.claim.nacuuid || !nab.synced) return undefined;
    // A NAB that its owner is getting rid of is left to the non-admin controller.
    if (nab.deleting || nab.deleteBackup) return undefined;
    if (nab.statusEmpty) {
      return decided('StatusMissing', 'The NonAdminBackup was re-created but has no status yet.');
    }
    if (nab.backupNotFound) {
      return decided(
        'StatusStale',
        'The NonAdminBackup still says that its Velero Backup was not found, but the Backup is there.',
      );
    }
    return undefined;
  },
  looksAt: (backup, world) => {
    const nab = world.claimedNab(backup);
    return {
      synced: nab?.synced,
      statusEmpty: nab?.statusEmpty,
      backupNotFound: nab?.backupNotFound,
      deleting: nab?.deleting,
      deleteBackup: nab?.deleteBackup,
    };
  },
};

const notPresent: Rule = {
  asks: 'Its NonAdminBackup is not there yet',
  check: (backup, world) =>
    world.claimedNab(backup)?.nacuuid === backup.claim.nacuuid
      ? decided('Present', 'Its NonAdminBackup is there.')
      : undefined,
  looksAt: (backup, world) => {
    const nab = world.claimedNab(backup);
    return {
      exists: nab !== undefined,
      sameNacuuid: nab === undefined ? undefined : nab.nacuuid === backup.claim.nacuuid,
    };
  },
};

/**
 * Until when the decision about a backup waits for Velero: it reads a bucket in random order and sweeps mismatches at
 * the end, so a newer backup of the same name may still be on its way. Undefined: no waiting.
 */
export function settlesAt(backup: BackupRecord, world: World): number | undefined {
  const location = locationOf(backup, world);
  if (location?.available !== true || backup.creationTime === undefined) return undefined;
  const patienceEnds = backup.creationTime + locationSyncPatience;
  if (world.now >= patienceEnds) return undefined;
  if (location.lastSyncedTime === undefined || location.lastSyncedTime < backup.creationTime) return patienceEnds;
  // A stamp of a farther future comes from a clock that is ahead, and says nothing about when it was made.
  const isNew = Math.abs(world.now - location.lastSyncedTime) < stampMargin;
  return isNew ? Math.min(patienceEnds, location.lastSyncedTime + stampMargin) : undefined;
}

const settledLocation: Rule = {
  asks: 'Velero is through with reading the bucket that the Backup was read from',
  check: (backup, world) => {
    const until = settlesAt(backup, world);
    if (until === undefined) return undefined;
    return decided(
      'LocationSyncing',
      `Velero is still reading storage location ${quoted(backup.storageLocation)}; decided when it is through, at ${time(until)} at the latest.`,
    );
  },
  looksAt: (backup, world) => {
    const location = locationOf(backup, world);
    return {
      available: location?.available,
      lastSynced: time(location?.lastSyncedTime),
      backupCreated: time(backup.creationTime),
    };
  },
};

const notSuperseded: Rule = {
  asks: 'No other backup of the same namespace and name completed later',
  check: (backup, world) => {
    const { namespace, name } = claimOf(backup);
    const newest = world.newestSyncable(namespace, name);
    if (newest === undefined || newest.name === backup.name) return undefined;
    return decided(
      'Superseded',
      `Backup ${quoted(newest.name)} of the same namespace and name completed later, at ${time(newest.completionTime)}.`,
    );
  },
  looksAt: (backup, world) => {
    const { namespace, name } = claimOf(backup);
    const newest = world.newestSyncable(namespace, name);
    return {
      completed: time(backup.completionTime),
      newest: newest?.name,
      newestCompleted: time(newest?.completionTime),
    };
  },
};

const nameFree: Rule = {
  asks: 'No other NonAdminBackup has the name',
  check: (backup, world) => {
    const nab = world.claimedNab(backup);
    if (nab === undefined) return undefined;
    const { namespace, name } = claimOf(backup);
    const whose = nab.nacuuid === undefined ? 'has no backup yet' : 'belongs to another backup';
    return decided(
      'NameTaken',
      `NonAdminBackup ${quoted(name)} in namespace ${quoted(namespace)} ${whose}; it is left alone.`,
    );
  },
  looksAt: (backup, world) => ({ taken: world.claimedNab(backup) !== undefined }),
};

const missing: Rule = {
  asks: 'There is nothing left that speaks against creating it',
  check: () => decided('Missing', 'Its NonAdminBackup is missing and is created.'),
  looksAt: () => ({}),
};

/** Rules 1 to 8: is the claim genuine? */
export const claimRules: readonly Rule[] = [
  validOrigin,
  ownIdentity,
  unprotectedNamespace,
  knownStorageLocation,
  watchedStorageLocation,
  storageLocationOwnerExists,
  storageLocationOwnerMatches,
  ownContentOnly,
];

/** Rules 9 to 11: is the backup ready? */
export const readinessRules: readonly Rule[] = [notBeingDeleted, finished, notExpired];

/** Rules 12 to 18: what is to be done in the namespace? The last one always decides. */
export const targetRules: readonly Rule[] = [
  usableNamespace,
  wellWritten,
  notPresent,
  settledLocation,
  notSuperseded,
  nameFree,
  missing,
];

/** Text for `explain`: a value that a rule looked at. */
export function shown(value: unknown): string {
  if (value === undefined) return '-';
  return typeof value === 'boolean' || typeof value === 'number' ? String(value) : printable(value);
}
