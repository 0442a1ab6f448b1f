import { z } from 'zod';
import { oadpNamespace } from '../stage.ts';

/**
 * Which NonAdminBackups are to be there, worked out from the objects alone: the rules written down a second time, without a
 * look at src/sync, so that a fault in one of the two shows.
 */

const metadata = z.looseObject({
  name: z.string(),
  namespace: z.string().optional(),
  uid: z.string(),
  generation: z.number().optional(),
  deletionTimestamp: z.string().optional(),
  labels: z.record(z.string(), z.string()).default({}),
  annotations: z.record(z.string(), z.string()).default({}),
});

const unknownObject = z.record(z.string(), z.unknown()).default({});

export const namespaceShape = z.looseObject({
  metadata,
  status: z.looseObject({ phase: z.string().optional() }).default({}),
});

export const backupShape = z.looseObject({
  metadata,
  spec: z
    .looseObject({ includedNamespaces: z.array(z.string()).default([]), storageLocation: z.string().default('') })
    .prefault({}),
  status: z
    .looseObject({
      phase: z.string().default(''),
      completionTimestamp: z.string().optional(),
      expiration: z.string().optional(),
    })
    .prefault({}),
});

export const locationShape = z.looseObject({
  metadata,
  spec: z.looseObject({ default: z.boolean().default(false), accessMode: z.string().default('') }),
});

export const ownerShape = z.looseObject({
  metadata,
  status: z
    .looseObject({ veleroBackupStorageLocation: z.looseObject({ nacuuid: z.string().optional() }).default({}) })
    .prefault({}),
});

export const deleteRequestShape = z.looseObject({
  spec: z.looseObject({ backupName: z.string() }),
  status: z.looseObject({ phase: z.string().optional() }).default({}),
});

export const nabShape = z.looseObject({
  metadata,
  spec: z.looseObject({ backupSpec: unknownObject }),
  status: z
    .looseObject({
      phase: z.string().optional(),
      conditions: z.array(z.looseObject({ type: z.string(), status: z.string(), reason: z.string() })).default([]),
      veleroBackup: z
        .looseObject({
          nacuuid: z.string().optional(),
          name: z.string().optional(),
          namespace: z.string().optional(),
          spec: unknownObject,
          status: unknownObject,
        })
        .prefault({}),
    })
    .prefault({}),
});

type Backup = z.infer<typeof backupShape>;
export type Nab = z.infer<typeof nabShape>;

/** All that the rules look at, as an admin reads it. */
export interface Facts {
  readonly namespaces: readonly z.infer<typeof namespaceShape>[];
  readonly backups: readonly Backup[];
  readonly locations: readonly z.infer<typeof locationShape>[];
  readonly owners: readonly z.infer<typeof ownerShape>[];
  readonly deleteRequests: readonly z.infer<typeof deleteRequestShape>[];
  readonly nabs: readonly Nab[];
}

export const syncLabel = 'openshift.io/oadp-nab-synced-from-nacuuid';
const nabLabel = 'openshift.io/oadp-nab-origin-nacuuid';
const nabNameAnnotation = 'openshift.io/oadp-nab-origin-name';
const nabNamespaceAnnotation = 'openshift.io/oadp-nab-origin-namespace';
const nabslLabel = 'openshift.io/oadp-nabsl-origin-nacuuid';
const nabslNameAnnotation = 'openshift.io/oadp-nabsl-origin-name';
const nabslNamespaceAnnotation = 'openshift.io/oadp-nabsl-origin-namespace';

/** A backup that is to be had in its namespace. */
export interface Syncable {
  readonly backup: Backup;
  readonly nacuuid: string;
  readonly namespace: string;
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly completed: number;
  /** Name of the NABSL behind its location; undefined for a location of the admin's. */
  readonly nabsl: string | undefined;
}

/** The backups of which nothing speaks against having them in their namespace, but for what is there already. */
export function syncable(facts: Facts, now: number): Syncable[] {
  return facts.backups.flatMap((backup) => {
    const { labels, annotations, name: backupName, deletionTimestamp } = backup.metadata;
    const [nacuuid, name, namespace] = [
      labels[nabLabel],
      annotations[nabNameAnnotation],
      annotations[nabNamespaceAnnotation],
    ];
    if (nacuuid === undefined || name === undefined || namespace === undefined) return [];
    if (nacuuid !== backupName) return [];
    if (!/^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(name)) return [];
    if (namespace === oadpNamespace || /^(kube-|openshift(-|$))/.test(namespace)) return [];

    const location = facts.locations.find(({ metadata }) => metadata.name === backup.spec.storageLocation);
    if (location === undefined) return [];
    let nabsl: string | undefined;
    if (location.metadata.labels[nabslLabel] === undefined) {
      if (!location.spec.default) return [];
    } else {
      nabsl = location.metadata.annotations[nabslNameAnnotation];
      const home = location.metadata.annotations[nabslNamespaceAnnotation];
      const owner = facts.owners.find(({ metadata }) => metadata.name === nabsl && metadata.namespace === home);
      if (owner === undefined || owner.metadata.deletionTimestamp !== undefined) return [];
      const { nacuuid: own } = owner.status.veleroBackupStorageLocation;
      if (own !== undefined && own !== location.metadata.labels[nabslLabel]) return [];
      if (home !== namespace) return [];
    }
    const { includedNamespaces } = backup.spec;
    if (includedNamespaces.length !== 1 || includedNamespaces[0] !== namespace) return [];

    const { phase, completionTimestamp, expiration } = backup.status;
    if (deletionTimestamp !== undefined || phase === 'Deleting') return [];
    if (
      facts.deleteRequests.some(({ spec, status }) => spec.backupName === backupName && status.phase !== 'Processed')
    ) {
      return [];
    }
    if (!['Completed', 'PartiallyFailed', 'Failed'].includes(phase) || completionTimestamp === undefined) return [];
    if (expiration !== undefined && Date.parse(expiration) <= now && location.spec.accessMode !== 'ReadOnly') return [];

    const home = facts.namespaces.find(({ metadata }) => metadata.name === namespace);
    if (home === undefined || home.metadata.deletionTimestamp !== undefined) return [];
    return [{ backup, nacuuid, namespace, name, completed: Date.parse(completionTimestamp), nabsl }];
  });
}

/** Of several for one name, the one that is to be re-created: by when they completed, then by identity. */
export function newest(rivals: readonly Syncable[]): Syncable | undefined {
  return rivals.reduce<Syncable | undefined>((best, rival) => {
    if (best === undefined || rival.completed > best.completed) return rival;
    return rival.completed === best.completed && rival.nacuuid > best.nacuuid ? rival : best;
  }, undefined);
}

/** Whose a NAB is. */
export function identityOf({ metadata, status }: Nab): string | undefined {
  const { nacuuid } = status.veleroBackup;
  return nacuuid === undefined || nacuuid === '' ? metadata.labels[syncLabel] : nacuuid;
}
