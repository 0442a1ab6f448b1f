/**
 * The closed list of reasons: why a backup's NAB was or was not (re-)created.
 *
 * A reason is a metric label, an event reason and a value in JSON output, so a code, once published, keeps its meaning.
 * docs/reasons.md explains each to an admin; a test compares that page with this file.
 */

/** Why a claim is refused for good: the backup cannot prove that it belongs where it says it does (rules 1 to 8). */
export const refusalReasons = [
  'InvalidOrigin',
  'IdentityMismatch',
  'ProtectedNamespace',
  'UnknownStorageLocation',
  'UnwatchedStorageLocation',
  'StorageLocationOwnerGone',
  'StorageLocationOwnerMismatch',
  'ForeignContent',
] as const;

/** Why a genuine backup has nothing to be created for it now, or what is to be done about it (rules 9 to 18). */
export const decisionReasons = [
  'BeingDeleted',
  'NotFinished',
  'Expired',
  'NamespaceMissing',
  'NamespaceTerminating',
  'NamespaceNotSelected',
  'Present',
  'StatusMissing',
  'StatusStale',
  'LocationSyncing',
  'Superseded',
  'NameTaken',
  'Missing',
] as const;

/** What an attempt to write ran into. Not a decision: the backup is due, and is tried again unless noted otherwise. */
export const failureReasons = [
  /** A ResourceQuota is used up; the namespace's pass ends. */
  'QuotaDenied',
  /** A policy or webhook refused the write. */
  'AdmissionDenied',
  /** The API server calls the object invalid (422); not tried again for this version of the backup. */
  'Invalid',
  /** The object exceeds the API server's size limit (413); not tried again for this version of the backup. */
  'TooLarge',
  /** RBAC does not allow the verb; an admin must act. */
  'Forbidden',
  /** The API server does not accept the credentials. */
  'Unauthorized',
  /** The API does not serve the kind: its CRD is not installed. */
  'KindNotInstalled',
  /** The API server asked for fewer requests (429). */
  'Throttled',
  /** No answer before the request's deadline. */
  'Timeout',
  /** No connection, or it broke before the answer. */
  'Unreachable',
  /** An error of the API server (5xx), or an answer that is not Kubernetes'. */
  'ServerError',
  /** The write was given up because the process stops or lost its leadership. */
  'Aborted',
  /** A fault of nab-sync itself; the log has the stack. */
  'InternalError',
] as const;

type RefusalReason = (typeof refusalReasons)[number];
export type DecisionReason = RefusalReason | (typeof decisionReasons)[number];
export type FailureReason = (typeof failureReasons)[number];
export type Reason = DecisionReason | FailureReason;

/**
 * What a decision asks for. `none`: the NAB is there and well. `skip`: nothing to do until something changes.
 * `wait`: decides by itself within two minutes. `conflict`: the name is in use by another backup's NAB.
 */
export const actions = ['create', 'repair', 'none', 'skip', 'wait', 'conflict'] as const;
export type Action = (typeof actions)[number];

/** Each reason for a decision belongs to one action. */
export const actionOf: Readonly<Record<DecisionReason, Action>> = {
  InvalidOrigin: 'skip',
  IdentityMismatch: 'skip',
  ProtectedNamespace: 'skip',
  UnknownStorageLocation: 'skip',
  UnwatchedStorageLocation: 'skip',
  StorageLocationOwnerGone: 'skip',
  StorageLocationOwnerMismatch: 'skip',
  ForeignContent: 'skip',
  BeingDeleted: 'skip',
  NotFinished: 'skip',
  Expired: 'skip',
  NamespaceMissing: 'skip',
  NamespaceTerminating: 'skip',
  NamespaceNotSelected: 'skip',
  Present: 'none',
  StatusMissing: 'repair',
  StatusStale: 'repair',
  LocationSyncing: 'wait',
  Superseded: 'skip',
  NameTaken: 'conflict',
  Missing: 'create',
};

const refusals: ReadonlySet<Reason> = new Set(refusalReasons);

export function isRefusalReason(reason: Reason): boolean {
  return refusals.has(reason);
}

export function isDecisionReason(reason: Reason): reason is DecisionReason {
  return Object.hasOwn(actionOf, reason);
}

/** What one backup deserves, and why. `message` is one sentence for people, safe to print. */
export interface Decision {
  readonly action: Action;
  readonly reason: DecisionReason;
  readonly message: string;
}
