import type { KubeError } from '../../kube/errors.ts';
import type { LeaseRecord } from '../../kube/lease-record.ts';
import type { NamespaceRecord } from '../../oadp/namespace.ts';
import type { LocationOwnerRecord, StorageLocationRecord } from '../../oadp/storage-location.ts';
import type { DpaRecord } from '../../settings/dpa.ts';
import type { Settings } from '../../settings/settings.ts';
import type { Right } from '../rights.ts';
import type { SyncStatus } from '../sync-status.ts';

/** What was found in the cluster, for the judgement. Undefined = could not be read, for a reason that is in `unread`. */
export interface Findings {
  readonly settings: Settings;
  /** Milliseconds since the epoch, as this machine has it. */
  readonly now: number;
  /** Whose rights these are; undefined where the server does not say. */
  readonly user: string | undefined;
  readonly denied: readonly Right[];
  /** By kind (`backups.velero.io`): why it could not be listed. */
  readonly unread: ReadonlyMap<string, KubeError>;
  /** By name. */
  readonly namespaces: ReadonlyMap<string, NamespaceRecord> | undefined;
  readonly dpas: readonly DpaRecord[] | undefined;
  readonly locations: readonly StorageLocationRecord[] | undefined;
  /** NABSLs by `namespace/name`. */
  readonly owners: ReadonlyMap<string, LocationOwnerRecord> | undefined;
  /** `none`: there is no Lease yet. */
  readonly lease: LeaseRecord | 'none' | undefined;
  /** `none`: nothing was synced yet. */
  readonly status: SyncStatus | 'none' | undefined;
  /** How far the server's clock is ahead of ours, in milliseconds. */
  readonly serverAheadMs: number | undefined;
}
