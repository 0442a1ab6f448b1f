import { KubeError, type Denier, type ErrorCause, type KubeErrorCode } from './errors.ts';
import { isJsonObject, objectAt, printable, stringAt } from './json.ts';
import { qualifiedName, type JsonObject, type ObjectRef, type Resource } from './resource.ts';

/** What an error says about the request that it came from. */
export interface RequestFacts {
  readonly verb: string;
  readonly resource: Resource;
  readonly ref: ObjectRef;
  /** Size of what was sent. */
  readonly bodyBytes?: number | undefined;
}

/** An answer that is not a success, as it came. */
export interface ErrorAnswer {
  readonly status: number;
  /** Parsed body; undefined when it was not JSON. */
  readonly body?: unknown;
  /** The Retry-After header, as it came. */
  readonly retryAfter?: string | undefined;
}

/** Room for what comes after a name of 253 characters: the server begins its sentence with it, and ends with the reason. */
const MESSAGE_LIMIT = 700;

/** Turns an answer (or the Status in a watch's ERROR event) into the error that stands for it, by its structure alone. */
export function statusError(request: RequestFacts, answer: ErrorAnswer): KubeError {
  const status = isStatus(answer.body) ? answer.body : undefined;
  const details = status === undefined ? {} : objectAt(status, 'details');
  const causes = causesOf(details);
  const reason = status === undefined ? undefined : stringAt(status, 'reason');
  const code = codeFor(request, answer.status, status, reason, details, causes);
  const said = printable((status === undefined ? undefined : stringAt(status, 'message')) ?? '', MESSAGE_LIMIT);
  return requestError(request, code, said === '' ? `HTTP ${answer.status}` : said, {
    status: answer.status,
    reason,
    causes,
    deniedBy: denierFor(request, code, details, causes),
    retryAfterMs: retryAfterMs(answer.retryAfter, details),
  });
}

interface ErrorExtras {
  readonly status?: number | undefined;
  readonly reason?: string | undefined;
  readonly causes?: readonly ErrorCause[];
  readonly deniedBy?: Denier | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** An error about one request: `list backups.velero.io in namespace openshift-adp: forbidden: <detail>`. */
export function requestError(
  request: RequestFacts,
  code: KubeErrorCode,
  detail: string,
  extras: ErrorExtras = {},
): KubeError {
  const { verb, resource, ref } = request;
  const name = qualifiedName(resource);
  const subresource = ref.subresource === undefined ? '' : `/${ref.subresource}`;
  const object = ref.name === undefined ? '' : ` ${printable(ref.name, 253)}`;
  const place = ref.namespace === undefined ? '' : ` in namespace ${printable(ref.namespace, 63)}`;
  return new KubeError({
    ...extras,
    code,
    verb,
    resource: name,
    namespace: ref.namespace,
    objectName: ref.name,
    message: `${verb} ${name}${subresource}${object}${place}: ${WORDS[code]}: ${detail}`,
  });
}

const WORDS: Readonly<Record<KubeErrorCode, string>> = {
  Timeout: 'timed out',
  Unreachable: 'no connection',
  Unauthorized: 'credentials refused',
  Forbidden: 'forbidden',
  NotFound: 'not found',
  NamespaceNotFound: 'namespace not found',
  NamespaceTerminating: 'namespace is terminating',
  KindNotInstalled: 'kind not installed',
  AlreadyExists: 'already exists',
  Conflict: 'conflict',
  Gone: 'too old',
  TooLarge: 'too large',
  Invalid: 'invalid',
  BadRequest: 'refused',
  Throttled: 'throttled',
  ServerError: 'server error',
  Malformed: 'malformed answer',
  Aborted: 'aborted',
};

function isStatus(body: unknown): body is JsonObject {
  return isJsonObject(body) && body['kind'] === 'Status';
}

function causesOf(details: JsonObject): ErrorCause[] {
  const causes = details['causes'];
  if (!Array.isArray(causes)) return [];
  return causes.filter(isJsonObject).map((cause) => {
    const reason = stringAt(cause, 'reason');
    const message = stringAt(cause, 'message');
    const field = stringAt(cause, 'field');
    return {
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message: printable(message, MESSAGE_LIMIT) }),
      ...(field === undefined ? {} : { field: printable(field, MESSAGE_LIMIT) }),
    };
  });
}

function codeFor(
  request: RequestFacts,
  http: number,
  status: JsonObject | undefined,
  reason: string | undefined,
  details: JsonObject,
  causes: readonly ErrorCause[],
): KubeErrorCode {
  switch (http) {
    case 401:
      return 'Unauthorized';
    case 403:
      return causes.some((cause) => cause.reason === 'NamespaceTerminating') ? 'NamespaceTerminating' : 'Forbidden';
    case 404:
      return notFoundCode(request, status, details);
    case 408:
    case 504:
      return 'Timeout';
    case 409:
      return reason === 'AlreadyExists' ? 'AlreadyExists' : 'Conflict';
    case 410:
      return 'Gone';
    case 413:
      return 'TooLarge';
    case 422:
      return 'Invalid';
    case 429:
      return 'Throttled';
    default:
      if (isBeyondEtcd(request, http, status, reason)) return 'TooLarge';
      if (http >= 500) return 'ServerError';
      return http >= 400 ? 'BadRequest' : 'Malformed';
  }
}

/**
 * A 404 has three meanings. Of the object: its Status names it. Of the namespace that a create goes to: its Status
 * names kind `namespaces`. Of the API: for a path that nothing serves the API server answers plain text, and for a kind
 * that just went away a Status that names nothing.
 */
function notFoundCode(request: RequestFacts, status: JsonObject | undefined, details: JsonObject): KubeErrorCode {
  const kind = stringAt(details, 'kind');
  if (status === undefined || (kind === undefined && stringAt(details, 'name') === undefined))
    return 'KindNotInstalled';
  const own = request.resource.group === '' && request.resource.plural === 'namespaces';
  return kind === 'namespaces' && !own ? 'NamespaceNotFound' : 'NotFound';
}

/** Just under etcd's default request limit of 1.5 MiB, since the server adds fields of its own. */
const ETCD_LIMIT_BYTES = 1.4 * 1024 * 1024;

/** What is stored is the object with its spec, of which a status that was sent is only a part: as a rule, half. */
const ETCD_LIMIT_BYTES_OF_STATUS = ETCD_LIMIT_BYTES / 2;

/**
 * The API server takes bodies of up to 3 MiB and etcd, by default, requests of 1.5; in between comes a 500 whose Status has
 * no reason (seen on 1.37). Sent again it would fail for ever, so the size decides.
 */
function isBeyondEtcd(
  request: RequestFacts,
  http: number,
  status: JsonObject | undefined,
  reason: string | undefined,
): boolean {
  const limit = request.ref.subresource === 'status' ? ETCD_LIMIT_BYTES_OF_STATUS : ETCD_LIMIT_BYTES;
  return http === 500 && status !== undefined && reason === undefined && (request.bodyBytes ?? 0) > limit;
}

/**
 * Tells RBAC from quotas and policies by the shape of the Status (seen on 1.37). RBAC answers before the body is read: on a
 * create it knows the kind but no name. Policies list causes that name neither field nor reason. A webhook's Status names
 * nothing.
 */
function denierFor(
  request: RequestFacts,
  code: KubeErrorCode,
  details: JsonObject,
  causes: readonly ErrorCause[],
): Denier | undefined {
  const ofPolicy =
    causes.length > 0 && causes.every((cause) => cause.field === undefined && cause.reason === undefined);
  if (code === 'Invalid') return ofPolicy ? 'admission' : undefined;
  if (code !== 'Forbidden') return undefined;
  if (request.verb === 'get' || request.verb === 'list' || request.verb === 'watch') return 'authorization';
  const named = stringAt(details, 'name') !== undefined;
  if (ofPolicy || stringAt(details, 'kind') === undefined || (request.verb === 'create' && named)) return 'admission';
  return 'authorization';
}

/** From the header (seconds, or a date) or the Status; the longer one where both are given. */
function retryAfterMs(header: string | undefined, details: JsonObject): number | undefined {
  const asked: number[] = [];
  const inDetails = details['retryAfterSeconds'];
  if (typeof inDetails === 'number' && inDetails > 0) asked.push(inDetails * 1000);
  const inHeader = headerMs(header);
  if (inHeader !== undefined) asked.push(inHeader);
  return asked.length === 0 ? undefined : Math.max(...asked);
}

function headerMs(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
