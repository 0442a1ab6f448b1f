/** What went wrong with a request, by what can be done about it. Stable: metrics, reports and tests use these words. */
export type KubeErrorCode =
  /** No answer in time: our deadline, or the server's own (408, 504). A write may have been carried out. */
  | 'Timeout'
  /** No connection, or one that broke. A write may have been carried out. */
  | 'Unreachable'
  /** 401, also with freshly read credentials. */
  | 'Unauthorized'
  /** 403. On a read it says nothing about whether the object exists. */
  | 'Forbidden'
  /** 404: the kind is served, the object is not there. */
  | 'NotFound'
  /** 404: a write into a namespace that does not exist. */
  | 'NamespaceNotFound'
  /** 403 with the cause NamespaceTerminating: nothing can be made there any more. */
  | 'NamespaceTerminating'
  /** 404 for the whole collection: no such API, so the CustomResourceDefinition is missing. */
  | 'KindNotInstalled'
  | 'AlreadyExists'
  /** 409: a resourceVersion or uid precondition failed. On a create: quota bookkeeping collided, which passes. */
  | 'Conflict'
  /** 410: the resourceVersion or continue token is older than what the server remembers. */
  | 'Gone'
  /**
   * 413; or a write beyond what etcd takes, which the API server reports as a 500 without a reason; or an answer over our
   * own cap (then `status` is below 300).
   */
  | 'TooLarge'
  /** 422: refused by the schema (`causes` say which field) or by a policy (`deniedBy`). */
  | 'Invalid'
  /** Any other 4xx: refused as it stands, by the API or by an admission webhook. */
  | 'BadRequest'
  /** 429. */
  | 'Throttled'
  /** Any 5xx but 504. */
  | 'ServerError'
  /** An answer that is not what the Kubernetes API sends: a proxy's page, cut JSON, a list without items. */
  | 'Malformed'
  /** The caller's own signal. */
  | 'Aborted';

/** One entry of a Status object's `details.causes`, as far as the server filled it in. */
export interface ErrorCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/**
 * Who said no. `authorization` is RBAC: an admin has to grant something. `admission` is a quota, a policy or a webhook: what
 * it says about this object it may say differently later.
 */
export type Denier = 'authorization' | 'admission';

export interface KubeErrorFacts {
  readonly code: KubeErrorCode;
  /** The request as RBAC spells it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`. */
  readonly verb: string;
  /** `backups.velero.io`. */
  readonly resource: string;
  readonly namespace?: string | undefined;
  readonly objectName?: string | undefined;
  /** HTTP status; undefined when there was no answer. */
  readonly status?: number | undefined;
  /** `reason` of the server's Status object. */
  readonly reason?: string | undefined;
  readonly causes?: readonly ErrorCause[];
  /** Set for `Forbidden`, and for an `Invalid` that comes from a policy instead of the schema. */
  readonly deniedBy?: Denier | undefined;
  /** How long the server asks us to stay away, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** One line; holds neither headers nor credentials. */
  readonly message: string;
  readonly cause?: unknown;
}

/** The only error that requests reject with. Decide by `code` or `policyFor`, never by the text. */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  readonly code: KubeErrorCode;
  readonly verb: string;
  readonly resource: string;
  readonly namespace: string | undefined;
  /** Name of the object asked for (`name` is taken: it is the name of the error class). */
  readonly objectName: string | undefined;
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly causes: readonly ErrorCause[];
  readonly deniedBy: Denier | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(facts: KubeErrorFacts) {
    super(facts.message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = facts.code;
    this.verb = facts.verb;
    this.resource = facts.resource;
    this.namespace = facts.namespace;
    this.objectName = facts.objectName;
    this.status = facts.status;
    this.reason = facts.reason;
    this.causes = facts.causes ?? [];
    this.deniedBy = facts.deniedBy;
    this.retryAfterMs = facts.retryAfterMs;
  }
}

/**
 * What to do about an error.
 * - `retry`: again after a delay (see `retryDelay`); nobody has to do anything.
 * - `giveUpThisPass`: this item will not work as it stands; the next pass may look again.
 * - `stopNamespace`: what follows in this namespace would fail alike; leave it for this pass.
 * - `needsAdmin`: rights, credentials or a CRD are missing; say so, and look again now and then.
 * - `lostRace`: the world moved on; read it again and decide anew.
 */
export type ErrorPolicy = 'retry' | 'giveUpThisPass' | 'stopNamespace' | 'needsAdmin' | 'lostRace';

/** The one place that turns an error into what to do. Anything but a KubeError is a fault of ours: given up, not retried. */
export function policyFor(error: unknown): ErrorPolicy {
  if (!(error instanceof KubeError)) return 'giveUpThisPass';
  switch (error.code) {
    case 'Timeout':
    case 'Unreachable':
    case 'Throttled':
    case 'ServerError':
    case 'Malformed':
    case 'Gone':
      return 'retry';
    case 'Conflict':
      // A create carries no resourceVersion, so nothing of ours was overtaken: the quota's own update was.
      return error.verb === 'create' ? 'retry' : 'lostRace';
    case 'NotFound':
    case 'AlreadyExists':
      return 'lostRace';
    case 'NamespaceNotFound':
    case 'NamespaceTerminating':
      return 'stopNamespace';
    case 'Forbidden':
      // A quota or policy that refused one object would refuse the namespace's next one as well.
      return error.deniedBy === 'admission' ? 'stopNamespace' : 'needsAdmin';
    case 'Invalid':
      return error.deniedBy === 'admission' ? 'stopNamespace' : 'giveUpThisPass';
    case 'Unauthorized':
    case 'KindNotInstalled':
      return 'needsAdmin';
    case 'TooLarge':
    case 'BadRequest':
    case 'Aborted':
      return 'giveUpThisPass';
  }
}
