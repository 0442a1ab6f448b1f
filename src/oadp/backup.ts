import type { JsonObject } from '../kube/resource.ts';
import {
  bearsNacLabels,
  nabOriginNacuuidLabel,
  nabOriginNameAnnotation,
  nabOriginNamespaceAnnotation,
} from './labels.ts';
import { listAt, nameAt, textAt, timeAt } from './read.ts';

/** The longest text of a claim that is kept: longer than any legal value, so that what was cut stays illegal. */
const longestClaim = 300;

/** What a Velero Backup says of its origin: raw, untrusted, each part absent or any text at all. */
export interface Claim {
  readonly nacuuid: string | undefined;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
}

/** What is kept of a Velero Backup: enough to decide, small enough for tens of thousands. Times in ms since the epoch. */
export interface BackupRecord {
  /** Name of the Backup object itself. */
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly claim: Claim;
  readonly storageLocation: string | undefined;
  /** How many namespaces it includes, and the first of them. */
  readonly includedNamespaces: { readonly count: number; readonly first: string | undefined };
  readonly phase: string | undefined;
  readonly deleting: boolean;
  /** When the object was created in this cluster: after a disaster, when Velero read it from the bucket. */
  readonly creationTime: number | undefined;
  readonly completionTime: number | undefined;
  readonly expiration: number | undefined;
}

function claimed(text: string | undefined): string | undefined {
  return text?.slice(0, longestClaim);
}

/** Of a Backup that is not the NAC's. A list never brings one, but one that is read by its name may have become so. */
const noClaim: Claim = { nacuuid: undefined, namespace: undefined, name: undefined };

function claimOf(backup: JsonObject): Claim {
  return {
    nacuuid: claimed(nameAt(backup, 'metadata', 'labels', nabOriginNacuuidLabel)),
    namespace: claimed(nameAt(backup, 'metadata', 'annotations', nabOriginNamespaceAnnotation)),
    name: claimed(nameAt(backup, 'metadata', 'annotations', nabOriginNameAnnotation)),
  };
}

/** A Backup as the API server sent it, reduced to its record. Never throws, whatever the object holds. */
export function toBackupRecord(backup: JsonObject): BackupRecord {
  const included = listAt(backup, 'spec', 'includedNamespaces');
  const first = included[0];
  return {
    name: textAt(backup, 'metadata', 'name') ?? '',
    uid: textAt(backup, 'metadata', 'uid') ?? '',
    resourceVersion: textAt(backup, 'metadata', 'resourceVersion') ?? '',
    claim: bearsNacLabels(backup) ? claimOf(backup) : noClaim,
    storageLocation: claimed(nameAt(backup, 'spec', 'storageLocation')),
    includedNamespaces: {
      count: included.length,
      first: typeof first === 'string' ? claimed(first) : undefined,
    },
    phase: claimed(nameAt(backup, 'status', 'phase')),
    deleting: textAt(backup, 'metadata', 'deletionTimestamp') !== undefined,
    creationTime: timeAt(backup, 'metadata', 'creationTimestamp'),
    completionTime: timeAt(backup, 'status', 'completionTimestamp'),
    expiration: timeAt(backup, 'status', 'expiration'),
  };
}
