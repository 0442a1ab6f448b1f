import { createSecureContext, type ConnectionOptions } from 'node:tls';
import { errors, Pool, ProxyAgent, type Dispatcher } from 'undici';
import type { Connection } from './connection.ts';
import type { Credentials, TlsMaterial } from './credentials.ts';
import { Deadline, untilAborted } from './deadline.ts';
import { KubeError, type KubeErrorCode } from './errors.ts';
import { exchange } from './exchange.ts';
import { isJsonObject, objectAt, printable, stringAt } from './json.ts';
import { errorCode } from './kubeconfig-file.ts';
import { qualifiedName, resourcePath, type JsonObject, type ObjectRef, type Resource } from './resource.ts';
import { requestError, statusError, type RequestFacts } from './status-error.ts';
import { readWatchEvents, type WatchEvent } from './watch-stream.ts';

export interface RequestOptions {
  /** Ends the request early; it then rejects with code `Aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** From the call to the last byte of the answer, waiting for a free connection included. */
  readonly timeoutMs?: number | undefined;
}

export interface ListOptions extends RequestOptions {
  /** Left out: all namespaces. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
  /** An answer above this rejects with `TooLarge` and a status below 300. */
  readonly maxBytes?: number | undefined;
}

export interface ListPage {
  readonly items: JsonObject[];
  readonly resourceVersion: string;
  /** There are more pages; absent on the last. */
  readonly continue?: string;
  /** Size of the answer. */
  readonly bytes: number;
}

export interface WatchOptions {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  /**
   * Left out: what is there comes first, an `ADDED` for each object, then a bookmark with `initialEventsEnd`. Servers that do
   * not know of it refuse (`Invalid`, `BadRequest`); what is between may do anything.
   */
  readonly resourceVersion?: string | undefined;
  /** After this long the server ends the watch; a little later we do. */
  readonly timeoutSeconds: number;
  /**
   * Silence that counts as a dead stream. An API server sends a bookmark about once a minute. While what is there is being
   * told, the client's `readTimeoutMs` counts instead, and `streamedListTimeoutMs` for all of it.
   */
  readonly idleTimeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called when the server has accepted the watch. */
  readonly onOpen?: (() => void) | undefined;
}

/**
 * One HTTP request that is over (of a watch: its headers are there). A watch that begins with what is there is told once more
 * when all of that was told, as the list that it is.
 */
export interface RequestInfo {
  readonly verb: string;
  /** `backups.velero.io`. */
  readonly resource: string;
  readonly code: 'OK' | KubeErrorCode;
  /** HTTP status, if there was a whole answer. */
  readonly status: number | undefined;
  readonly seconds: number;
  /** The server's clock as its answer has it, in HTTP's format and whole seconds. */
  readonly date?: string;
}

export interface KubeClientOptions {
  /** Most connections for requests at a time; watches have their own. */
  readonly connections?: number;
  /** Deadline of a list page and of a watch's headers, and the longest silence while a watch tells what is there. */
  readonly readTimeoutMs?: number;
  /** Deadline for all that is there when a watch begins with it. */
  readonly streamedListTimeoutMs?: number;
  /** Deadline of every request for one object, reads included. */
  readonly writeTimeoutMs?: number;
  /** Largest answer that is read. */
  readonly maxAnswerBytes?: number;
  /** Largest event of a watch. */
  readonly maxEventBytes?: number;
  /** A watch is ended by us this long after the server should have done so. */
  readonly watchGraceMs?: number;
  readonly userAgent?: string;
  /** For metrics. Must not throw; if it does, nobody hears of it. */
  readonly onRequest?: (info: RequestInfo) => void;
}

interface Settings {
  readonly connections: number;
  readonly readTimeoutMs: number;
  readonly streamedListTimeoutMs: number;
  readonly writeTimeoutMs: number;
  readonly maxAnswerBytes: number;
  readonly maxEventBytes: number;
  readonly watchGraceMs: number;
  readonly userAgent: string;
}

const MIB = 1024 * 1024;

const DEFAULTS: Settings = {
  connections: 32,
  readTimeoutMs: 30_000,
  streamedListTimeoutMs: 120_000,
  writeTimeoutMs: 5_000,
  maxAnswerBytes: 64 * MIB,
  maxEventBytes: 16 * MIB,
  watchGraceMs: 10_000,
  userAgent: 'nab-sync',
};

const WATCH_IDLE_MS = 150_000;

/** An error's body is a Status of a few hundred bytes; more of it is not worth reading. */
const MAX_ERROR_BYTES = MIB;

interface Call extends RequestFacts {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
  readonly contentType?: string;
  /** Of a create: the object's name, where it has one. */
  readonly names?: string | undefined;
  readonly maxBytes: number;
}

/** What ends a request, and how to tell the two apart. */
interface Limits {
  readonly deadline: Deadline;
  readonly expired: () => boolean;
  readonly caller: AbortSignal | undefined;
  /** The words for a time that is up. */
  readonly late: string;
}

interface Pools {
  readonly tls: TlsMaterial;
  readonly requests: Dispatcher;
  readonly watches: Dispatcher;
}

/** What came back: the body of a success as the caller wants it, of anything else as it is. */
type Reply<B> = Pick<Dispatcher.ResponseData, 'headers'> & { readonly status: number } & (
    { readonly ok: true; readonly body: B } | { readonly ok: false; readonly body: Buffer | undefined }
  );

/** Sends a request over one of the pools. */
type Send<B> = (pools: Pools, request: Dispatcher.DispatchOptions) => Promise<Reply<B>>;

/**
 * The few verbs of the Kubernetes API that this program uses, over pooled keep-alive connections. Every call has a
 * deadline, rejects with KubeError only, and is made once: nothing but a 401 is retried in here, and that once, with
 * credentials read afresh.
 */
export class KubeClient {
  readonly #connection: Connection;
  readonly #settings: Settings;
  readonly #onRequest: KubeClientOptions['onRequest'];
  readonly #origin: string;
  readonly #basePath: string;
  #pools: Pools | undefined;
  /** Pools of key material that has been renewed; they end with their last watch. */
  readonly #retired = new Set<Pools>();
  #closed = false;

  constructor(connection: Connection, options: KubeClientOptions = {}) {
    const { onRequest, ...settings } = options;
    this.#settings = checkedSettings({ ...DEFAULTS, ...settings });
    this.#connection = connection;
    this.#onRequest = onRequest;
    const url = new URL(connection.server);
    this.#origin = url.origin;
    this.#basePath = url.pathname.replace(/\/+$/, '');
  }

  async get(resource: Resource, ref: ObjectRef, options: RequestOptions = {}): Promise<JsonObject> {
    return this.#object(this.#call('get', 'GET', resource, ref), options);
  }

  /** `ref` names the namespace only; the object's name is in the body. */
  async create(
    resource: Resource,
    ref: ObjectRef,
    body: JsonObject,
    options: RequestOptions = {},
  ): Promise<JsonObject> {
    const call = {
      ...this.#call('create', 'POST', resource, { namespace: ref.namespace }),
      names: stringAt(objectAt(body, 'metadata'), 'name'),
    };
    return this.#object(withBody(call, body, 'application/json'), options);
  }

  /** Replaces the object, or its status with `subresource: 'status'`; the body's resourceVersion is the precondition. */
  async update(
    resource: Resource,
    ref: ObjectRef,
    body: JsonObject,
    options: RequestOptions = {},
  ): Promise<JsonObject> {
    const call = this.#call('update', 'PUT', resource, ref);
    return this.#object(withBody(call, body, 'application/json'), options);
  }

  /** JSON merge patch. A `metadata.resourceVersion` in the body is a precondition. */
  async patch(resource: Resource, ref: ObjectRef, body: JsonObject, options: RequestOptions = {}): Promise<JsonObject> {
    const call = this.#call('patch', 'PATCH', resource, ref);
    return this.#object(withBody(call, body, 'application/merge-patch+json'), options);
  }

  /**
   * Deletes one object, and only the one with this uid: another of the same name rejects with `Conflict`. Where finalizers
   * hold it, it is only marked.
   */
  async delete(resource: Resource, ref: ObjectRef, uid: string, options: RequestOptions = {}): Promise<void> {
    const preconditions = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } };
    const call = withBody(this.#call('delete', 'DELETE', resource, ref), preconditions, 'application/json');
    // The answer is a Status, or the object as it is or was: nothing to learn from.
    await this.#request(call, options, this.#settings.writeTimeoutMs);
  }

  /** One page of a collection. Without `limit` it is the whole collection, or `TooLarge`. */
  async listPage(resource: Resource, options: ListOptions = {}): Promise<ListPage> {
    const call: Call = {
      ...this.#call('list', 'GET', resource, { namespace: options.namespace }),
      query: {
        labelSelector: options.labelSelector,
        limit: options.limit?.toString(),
        continue: options.continue,
        resourceVersion: options.resourceVersion,
      },
      maxBytes: Math.min(options.maxBytes ?? this.#settings.maxAnswerBytes, this.#settings.maxAnswerBytes),
    };
    const { object, bytes } = await this.#request(call, options, this.#settings.readTimeoutMs);
    return listPage(call, object, bytes);
  }

  /**
   * The events after `resourceVersion`, or all that is there and what happens then. Ends when the server ends the watch in good
   * order; throws a KubeError otherwise, `Timeout` when the server did not end it in time or went silent. The connection is
   * closed when the iteration is.
   */
  async *watch(resource: Resource, options: WatchOptions): AsyncGenerator<WatchEvent, void, void> {
    const call: Call = {
      ...this.#call('watch', 'GET', resource, { namespace: options.namespace }),
      query: {
        watch: 'true',
        allowWatchBookmarks: 'true',
        labelSelector: options.labelSelector,
        // Without the second, a server that does not know the first would take it for a watch from anywhere.
        ...(options.resourceVersion === undefined
          ? { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
          : { resourceVersion: options.resourceVersion }),
        timeoutSeconds: options.timeoutSeconds.toString(),
      },
    };
    const isList = options.resourceVersion === undefined;
    const { idleTimeoutMs = WATCH_IDLE_MS } = options;
    const totalMs = options.timeoutSeconds * 1000 + this.#settings.watchGraceMs;
    using total = new Deadline(isList ? this.#settings.streamedListTimeoutMs : totalMs, options.signal);
    using idle = new Deadline(this.#settings.readTimeoutMs, total.signal);
    const limits: Limits = {
      deadline: idle,
      expired: () => total.expired || idle.expired,
      caller: options.signal,
      late: 'the server went silent or did not end the watch in time',
    };
    const started = performance.now();
    /** What is to be told of the list, from the headers to its end. */
    let list: RequestInfo['code'] | undefined;
    const tellList = (): void => {
      if (list === undefined) return;
      const seconds = (performance.now() - started) / 1000;
      this.#tell({ verb: 'list', resource: qualifiedName(call.resource), code: list, status: 200, seconds });
      list = undefined;
    };
    try {
      const body = await this.#authorized(call, limits, ({ watches }, request) =>
        openStream(watches, { ...request, signal: idle.signal }),
      );
      if (isList) list = 'Malformed';
      else idle.extend(idleTimeoutMs);
      options.onOpen?.();
      for await (const event of readWatchEvents(eachExtending(body, idle), call, this.#settings.maxEventBytes)) {
        if (list !== undefined && event.type === 'BOOKMARK' && event.initialEventsEnd === true) {
          list = 'OK';
          tellList();
          total.extend(totalMs);
          idle.extend(idleTimeoutMs);
        }
        yield event;
      }
    } catch (error) {
      const failure = this.#failure(call, error, limits);
      if (list !== undefined) list = failure.code;
      throw failure;
    } finally {
      tellList();
    }
  }

  /** Breaks what is still running (it rejects with `Aborted`) and closes all connections. */
  async close(): Promise<void> {
    this.#closed = true;
    const all = [...this.#retired, ...(this.#pools === undefined ? [] : [this.#pools])];
    this.#pools = undefined;
    await Promise.all(all.flatMap((pools) => [pools.requests.destroy(), pools.watches.destroy()]));
  }

  #call(verb: string, method: Call['method'], resource: Resource, ref: ObjectRef): Call {
    const call: Call = { verb, method, resource, ref, maxBytes: this.#settings.maxAnswerBytes };
    for (const part of [ref.namespace, ref.name]) {
      if (part !== undefined && !isPathSegment(part)) throw requestError(call, 'BadRequest', 'not a name at all');
    }
    return call;
  }

  async #object(call: Call, options: RequestOptions): Promise<JsonObject> {
    const { object } = await this.#request(call, options, this.#settings.writeTimeoutMs);
    if (!isAskedFor(object, call)) {
      throw requestError(call, 'Malformed', 'the answer is not the object that was asked for', { status: 200 });
    }
    return object;
  }

  async #request(
    call: Call,
    options: RequestOptions,
    defaultTimeoutMs: number,
  ): Promise<{ object: JsonObject; bytes: number }> {
    const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
    using deadline = new Deadline(timeoutMs, options.signal);
    const limits: Limits = {
      deadline,
      expired: () => deadline.expired,
      caller: options.signal,
      late: `no answer within ${timeoutMs / 1000} s`,
    };
    try {
      const answer = await this.#authorized(call, limits, ({ requests }, request) =>
        wholeAnswer(requests, request, deadline, call.maxBytes),
      );
      if (answer === undefined) {
        throw requestError(call, 'TooLarge', `an answer of more than ${call.maxBytes} bytes`, { status: 200 });
      }
      const object = parseJson(answer);
      if (!isJsonObject(object)) {
        throw requestError(call, 'Malformed', 'the answer is not a JSON object', { status: 200 });
      }
      return { object, bytes: answer.length };
    } catch (error) {
      throw this.#failure(call, error, limits);
    }
  }

  /** Sends the request with our credentials on it and resolves with the body of a success. */
  async #authorized<B>(call: Call, limits: Limits, send: Send<B>): Promise<B> {
    const known = this.#connection.credentials();
    const credentials = known instanceof Promise ? await this.#credentials(call, known, limits) : known;
    try {
      return await this.#attempt(call, credentials, limits, send);
    } catch (error) {
      if (!(error instanceof KubeError) || error.code !== 'Unauthorized') throw error;
      const fresh = await this.#credentials(call, this.#connection.reload(credentials), limits);
      return await this.#attempt(call, fresh, limits, send);
    }
  }

  async #credentials(call: Call, reading: Promise<Credentials>, { deadline }: Limits): Promise<Credentials> {
    try {
      return await untilAborted(reading, deadline.signal);
    } catch (error) {
      if (deadline.over) throw error;
      const detail = printable(error instanceof Error ? error.message : 'no credentials', 300);
      throw requestError(call, 'Unauthorized', `cannot get credentials: ${detail}`, { cause: error });
    }
  }

  async #attempt<B>(call: Call, credentials: Credentials, limits: Limits, send: Send<B>): Promise<B> {
    const started = performance.now();
    let status: number | undefined;
    let code: RequestInfo['code'] = 'Unreachable';
    let date: unknown;
    try {
      const reply = await send(this.#poolsFor(credentials.tls), {
        origin: this.#origin,
        path: this.#path(call),
        method: call.method,
        headers: {
          accept: 'application/json',
          'user-agent': this.#settings.userAgent,
          ...(call.contentType === undefined ? {} : { 'content-type': call.contentType }),
          ...credentials.headers,
        },
        ...(call.body === undefined ? {} : { body: call.body }),
      });
      status = reply.status;
      date = reply.headers['date'];
      if (reply.ok) {
        code = 'OK';
        return reply.body;
      }
      const retryAfter = reply.headers['retry-after'];
      throw statusError(call, {
        status,
        body: reply.body === undefined ? undefined : parseJson(reply.body),
        retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
      });
    } catch (error) {
      const failure = this.#failure(call, error, limits);
      code = failure.code;
      throw failure;
    } finally {
      this.#tell({
        verb: call.verb,
        resource: qualifiedName(call.resource),
        code,
        status,
        seconds: (performance.now() - started) / 1000,
        ...(typeof date === 'string' && { date }),
      });
    }
  }

  #tell(info: RequestInfo): void {
    try {
      this.#onRequest?.(info);
    } catch {
      // A metric that fails must not fail the request that it counts.
    }
  }

  #path(call: Call): string {
    const path = this.#basePath + resourcePath(call.resource, call.ref);
    if (call.query === undefined) return path;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query)) {
      if (value !== undefined) query.set(name, value);
    }
    return query.size === 0 ? path : `${path}?${query.toString()}`;
  }

  /** Connections are bound to their key material; when that has been renewed, new ones are made and the old run out. */
  #poolsFor(tls: TlsMaterial): Pools {
    const current = this.#pools;
    if (current?.tls === tls) return current;
    if (this.#closed) throw new Error('the client is closed');
    const { connections } = this.#settings;
    // One for all connections: each would read the CA anew, and keep it.
    const secureContext = this.#origin.startsWith('https:') ? createSecureContext(tls) : undefined;
    const material = { ...tls, secureContext };
    const next: Pools = {
      tls,
      requests: this.#dispatcher(material, connections),
      watches: this.#dispatcher(material, null),
    };
    this.#pools = next;
    if (current !== undefined) void this.#retire(current);
    return next;
  }

  /** Never rejects. Watches of the old pool end within their timeout; closing waits for them. */
  async #retire(pools: Pools): Promise<void> {
    this.#retired.add(pools);
    await Promise.allSettled([pools.requests.close(), pools.watches.close()]);
    this.#retired.delete(pools);
  }

  #dispatcher(tls: TlsMaterial & Pick<ConnectionOptions, 'secureContext'>, connections: number | null): Dispatcher {
    const { proxyUrl } = this.#connection;
    // Said in any case: left out, NODE_TLS_REJECT_UNAUTHORIZED in the environment could switch the check off (case C23).
    const rejectUnauthorized = tls.rejectUnauthorized ?? true;
    const connect = { ...tls, rejectUnauthorized, timeout: 10_000, keepAlive: true, keepAliveInitialDelay: 10_000 };
    const options: Pool.Options = {
      connections,
      pipelining: 1,
      // One broken HTTP/2 connection takes every request on it along, and one deadline cannot close it for all.
      allowH2: false,
      // Kept for less than the minute after which load balancers drop an idle connection.
      keepAliveTimeout: 30_000,
      keepAliveMaxTimeout: 30_000,
      // The server's warnings about an object are headers, and the object is a stranger's.
      maxHeaderSize: 64 * 1024,
      // Our own deadlines end requests; undici's would only add a second, coarser rule.
      headersTimeout: 0,
      bodyTimeout: 0,
    };
    if (proxyUrl === undefined) return new Pool(this.#origin, { ...options, connect });
    const proxyTls = { rejectUnauthorized: true, allowH2: false };
    return new ProxyAgent({ ...options, uri: proxyUrl, proxyTls, requestTls: connect });
  }

  #failure(call: Call, error: unknown, limits: Limits): KubeError {
    if (error instanceof KubeError) return error;
    if (limits.caller?.aborted === true || this.#closed) return requestError(call, 'Aborted', 'ended by the caller');
    if (limits.expired()) return requestError(call, 'Timeout', limits.late, { cause: error });
    if (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError) {
      return requestError(call, 'Malformed', 'not an HTTP answer', { cause: error });
    }
    const code = errorCode(error);
    const trust = isCertificateProblem(code) ? ` (checked against ${this.#connection.caSource})` : '';
    const detail = code ?? printable(error instanceof Error ? error.message : 'unknown', 100);
    return requestError(call, 'Unreachable', `${this.#connection.server}: ${detail}${trust}`, { cause: error });
  }
}

function checkedSettings(settings: Settings): Settings {
  for (const name of COUNTS) {
    const value = settings[name];
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new RangeError(`KubeClient: ${name} must be a positive integer, got ${String(value)}`);
    }
  }
  return settings;
}

const COUNTS = [
  'connections',
  'readTimeoutMs',
  'streamedListTimeoutMs',
  'writeTimeoutMs',
  'maxAnswerBytes',
  'maxEventBytes',
  'watchGraceMs',
] as const;

/**
 * What the API server itself takes for the name of anything. It decodes a path before it splits it, so escaping alone would
 * let a name like `x/status` reach something other than an object of that name.
 */
function isPathSegment(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/%]/.test(name);
}

function withBody(call: Call, body: JsonObject, contentType: string): Call {
  try {
    const text = JSON.stringify(body);
    return { ...call, body: text, bodyBytes: Buffer.byteLength(text), contentType };
  } catch (error) {
    // Nested deeper than the stack goes. The object is a stranger's, so this is his fault and not ours.
    throw requestError(call, 'Invalid', 'the object cannot be written as JSON', { cause: error });
  }
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** The whole body of a success, or undefined where it is longer than `maxBytes`. */
async function wholeAnswer(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  deadline: Deadline,
  maxBytes: number,
): Promise<Reply<Buffer | undefined>> {
  const answer = await exchange({
    dispatcher,
    request,
    deadline,
    maxBytes: (status) => (isSuccess(status) ? maxBytes : MAX_ERROR_BYTES),
  });
  return { ok: isSuccess(answer.status), ...answer };
}

/** A success whose body is still to come. */
async function openStream(
  dispatcher: Dispatcher,
  request: Dispatcher.RequestOptions,
): Promise<Reply<AsyncIterable<unknown>>> {
  const { statusCode: status, headers, body } = await dispatcher.request(request);
  if (isSuccess(status)) return { ok: true, status, headers, body };
  return { ok: false, status, headers, body: await readBody(body, MAX_ERROR_BYTES) };
}

/** The whole body, or undefined when it is over the cap; then the connection is gone as well. */
async function readBody(body: AsyncIterable<unknown>, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) continue;
    bytes += chunk.length;
    // Leaving the loop destroys the body, and with it the connection that would have to carry the rest.
    if (bytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

async function* eachExtending(body: AsyncIterable<unknown>, idle: Deadline): AsyncGenerator<Uint8Array, void, void> {
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) continue;
    idle.extend();
    yield chunk;
  }
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/**
 * A proxy's `{}` with a status of 200 is no object of ours. Taken for one it would stand in the caches until something
 * happens to the real one, which may never be made.
 */
function isAskedFor(object: JsonObject, { resource, ref, names }: Call): boolean {
  const name = ref.name ?? names;
  const metadata = objectAt(object, 'metadata');
  if (object['kind'] !== resource.kind) return false;
  // What has no name is not stored: a question that the API server answers, such as an access review.
  if (name === undefined) return true;
  return (
    stringAt(metadata, 'name') === name &&
    stringAt(metadata, 'namespace') === ref.namespace &&
    stringAt(metadata, 'resourceVersion') !== undefined
  );
}

function listPage(call: Call, list: JsonObject, bytes: number): ListPage {
  const metadata = objectAt(list, 'metadata');
  const resourceVersion = stringAt(metadata, 'resourceVersion');
  // Go writes an empty list as null.
  const items: unknown = list['items'] === null ? [] : list['items'];
  if (resourceVersion === undefined || !Array.isArray(items) || !items.every(isJsonObject)) {
    throw requestError(call, 'Malformed', 'the answer is not a list of objects', { status: 200 });
  }
  const next = stringAt(metadata, 'continue');
  return { items, resourceVersion, bytes, ...(next === undefined ? {} : { continue: next }) };
}

function isCertificateProblem(code: string | undefined): boolean {
  return code !== undefined && /^(ERR_TLS_|CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_)/.test(code);
}
