import { once } from 'node:events';
import { Agent, createServer as createHttpsServer, request as httpsRequest } from 'node:https';
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isJsonObject, objectAt } from '../../src/kube/json.ts';
import { matches, strikesOpenWatch } from './fault.ts';
import type { Fault, FaultRule } from './fault.ts';
import { requestFacts } from './request-facts.ts';
import type { RequestFacts } from './request-facts.ts';
import { WatchRelay } from './watch-relay.ts';
import type { Outlet } from './watch-relay.ts';

export interface FaultProxyOptions {
  /** `https://127.0.0.1:PORT` of the API server. */
  readonly upstream: string;
  /** PEM texts: what the proxy shows to its clients, and trusts in the API server. */
  readonly certificate: string;
  readonly key: string;
  /** Uniform in [0, 1): decides about faults that have a probability. */
  readonly random: () => number;
  /**
   * Largest page of a list, so that small collections have several; lists are not streamed then, as by an older server. Default
   * what the client asks for.
   */
  readonly pageLimit?: number;
}

/** A request that came in. */
export interface SeenRequest extends RequestFacts {
  /** Milliseconds of `performance.now()`. */
  readonly at: number;
  /** What was done to it, where a fault struck at its beginning. */
  fault: Fault['kind'] | undefined;
  /** What the API server answered; undefined if it was not asked, or has not answered. */
  answered: number | undefined;
}

/** A fault that is in force. */
export interface InjectedFault {
  /** How often it has struck. */
  readonly hits: number;
  /** It strikes no more. What it has struck stays struck, but for requests that it holds: they go on. */
  remove(): void;
}

interface Rule extends FaultRule {
  hits: number;
  readonly released: PromiseWithResolvers<undefined>;
}

/**
 * Stands between nab-sync and the API server, ends TLS on both sides, and does to single requests and open watches what
 * docs/adr/0003-fault-proxy.md lists. What no fault strikes goes through unchanged, broken connections included: an API
 * server that is killed is seen as one.
 */
export class FaultProxy {
  readonly requests: SeenRequest[] = [];
  readonly #options: FaultProxyOptions;
  readonly #agent: Agent;
  readonly #tcp: Server;
  readonly #https: Server;
  readonly #sockets = new Map<string, Socket>();
  readonly #exchanges = new Set<Exchange>();
  readonly #rules = new Set<Rule>();
  readonly #refusedTokens = new Set<string>();
  #flow: PromiseWithResolvers<undefined> | undefined;
  #port = 0;

  private constructor(options: FaultProxyOptions) {
    this.#options = options;
    const { certificate, key } = options;
    this.#agent = new Agent({ keepAlive: true, ca: certificate });
    this.#https = createHttpsServer({ cert: certificate, key, keepAliveTimeout: 60_000 }, (request, response) => {
      // Whatever goes wrong with the client's connection shows in its socket, and with the server's as a reset.
      void this.#handle(request, response);
    });
    this.#https.on('tlsClientError', () => undefined);
    this.#tcp = createTcpServer((socket) => {
      void this.#admit(socket);
    });
  }

  static async start(options: FaultProxyOptions): Promise<FaultProxy> {
    const proxy = new FaultProxy(options);
    proxy.#tcp.listen(0, '127.0.0.1');
    await once(proxy.#tcp, 'listening');
    const address = proxy.#tcp.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy does not listen on a TCP port');
    proxy.#port = address.port;
    return proxy;
  }

  get server(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  /** Number of client connections that are open now. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Puts a fault in force. Open watches that it matches are struck at once, requests as they come. */
  inject(given: FaultRule): InjectedFault {
    const rule: Rule = { ...given, hits: 0, released: Promise.withResolvers<undefined>() };
    for (const exchange of this.#exchanges) {
      if (exchange.relay === undefined || !strikesOpenWatch(rule, exchange.facts) || !this.#hits(rule)) continue;
      exchange.strike(rule.fault);
    }
    this.#rules.add(rule);
    return {
      get hits() {
        return rule.hits;
      },
      remove: () => {
        this.#rules.delete(rule);
        rule.released.resolve(undefined);
      },
    };
  }

  /** Requests with this bearer token get 401 from now on. */
  refuse(token: string): void {
    this.#refusedTokens.add(token);
  }

  accept(token: string): void {
    this.#refusedTokens.delete(token);
  }

  /** Nothing passes any more, in either direction, and nothing breaks: packets are lost on the way. */
  stall(): void {
    this.#flow ??= Promise.withResolvers<undefined>();
  }

  /** What has been stalled arrives. */
  unstall(): void {
    this.#flow?.resolve(undefined);
    this.#flow = undefined;
  }

  /** Resets every connection, as a load balancer does that restarts. */
  resetAll(): void {
    for (const socket of this.#sockets.values()) socket.resetAndDestroy();
  }

  /**
   * Removes all faults. What trickles comes at once; streams that were made to hang are reset, and lists, which the client
   * would give half a minute. Other requests that hang are left to the client's own deadline.
   */
  heal(): void {
    for (const rule of this.#rules) rule.released.resolve(undefined);
    this.#rules.clear();
    this.#refusedTokens.clear();
    this.unstall();
    for (const exchange of this.#exchanges) exchange.heal();
  }

  async close(): Promise<void> {
    this.heal();
    const closed = once(this.#tcp, 'close');
    this.#tcp.close();
    for (const socket of this.#sockets.values()) socket.destroy();
    this.#agent.destroy();
    this.#https.close();
    await closed;
  }

  async #admit(socket: Socket): Promise<void> {
    const id = String(socket.remotePort);
    this.#sockets.set(id, socket);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#sockets.delete(id));
    await this.#flow?.promise;
    if (!socket.destroyed) this.#https.emit('connection', socket);
  }

  #hits(rule: Rule): boolean {
    if (rule.hits >= (rule.times ?? Infinity)) return false;
    if (rule.probability !== undefined && this.#options.random() >= rule.probability) return false;
    rule.hits += 1;
    return true;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    const facts = requestFacts(method, url);
    const seen: SeenRequest = { ...facts, at: performance.now(), fault: undefined, answered: undefined };
    this.requests.push(seen);
    const socket = this.#sockets.get(String(request.socket.remotePort));
    const exchange = new Exchange(facts, response, socket, () => this.#flow?.promise);
    this.#exchanges.add(exchange);
    response.once('close', () => {
      this.#exchanges.delete(exchange);
      exchange.abandon();
    });
    const body = await bodyOf(request);
    await this.#flow?.promise;
    if (body === undefined) return;

    if (this.#refusedTokens.has(bearerToken(request.headers))) {
      seen.fault = 'status';
      exchange.answerStatus({ kind: 'status', status: 401, body: 'status' });
      return;
    }
    if (facts.streamedList && this.#options.pageLimit !== undefined) {
      exchange.answerStatus({ kind: 'status', status: 400, body: 'status' });
      return;
    }
    const rule = [...this.#rules].find((candidate) => matches(candidate, facts) && this.#hits(candidate));
    seen.fault = rule?.fault.kind;
    if (rule?.fault.kind === 'hold') await rule.released.promise;
    // Whoever has gone meanwhile has not asked for anything.
    if (exchange.gone) return;
    if (rule !== undefined && exchange.meetAtTheGate(rule.fault)) return;
    await this.#forward(
      { method, path: this.#limited(url, facts), headers: request.headers, body },
      exchange,
      seen,
      rule?.fault,
    );
  }

  #limited(url: string, { verb }: RequestFacts): string {
    const { pageLimit } = this.#options;
    if (pageLimit === undefined || verb !== 'list') return url;
    const { pathname, searchParams } = new URL(url, this.server);
    const asked = Number(searchParams.get('limit') ?? Infinity);
    searchParams.set('limit', String(Math.min(asked, pageLimit)));
    return `${pathname}?${searchParams.toString()}`;
  }

  async #forward(
    { method, path, headers, body }: { method: string; path: string; headers: IncomingHttpHeaders; body: Buffer },
    exchange: Exchange,
    seen: SeenRequest,
    fault: Fault | undefined,
  ): Promise<void> {
    const upstream = httpsRequest(new URL(path, this.#options.upstream), {
      method,
      headers: { ...withoutHopByHop(headers), host: new URL(this.#options.upstream).host },
      agent: this.#agent,
    });
    exchange.upstream = upstream;
    upstream.end(body);
    try {
      const [answer] = (await once(upstream, 'response')) as [IncomingMessage];
      seen.answered = answer.statusCode;
      await exchange.relayAnswer(answer, fault);
    } catch {
      // No connection to the API server, or one that broke: the client sees the same.
      exchange.reset();
    }
  }
}

/** One request and its answer. */
class Exchange implements Outlet {
  readonly facts: RequestFacts;
  /** Set while it is a watch that the server has accepted. */
  relay: WatchRelay | undefined;
  upstream: ClientRequest | undefined;
  readonly #response: ServerResponse;
  readonly #socket: Socket | undefined;
  readonly #flow: () => Promise<unknown> | undefined;
  /** What is still to go out; each piece waits for the one before it. */
  #chain: Promise<void> = Promise.resolve();
  #slow: { readonly bytes: number; readonly everyMs: number } | undefined;
  #hangs = false;
  readonly #healed = Promise.withResolvers<undefined>();

  constructor(
    facts: RequestFacts,
    response: ServerResponse,
    socket: Socket | undefined,
    flow: () => Promise<unknown> | undefined,
  ) {
    this.facts = facts;
    this.#response = response;
    this.#socket = socket;
    this.#flow = flow;
    response.on('error', () => undefined);
  }

  /** Nobody waits for the answer any more. */
  get gone(): boolean {
    return this.#response.destroyed;
  }

  /** Faults that keep the request from the server. False: it is to be forwarded. */
  meetAtTheGate(fault: Fault): boolean {
    if (fault.kind === 'reset' && fault.when === 'before') this.reset();
    else if (fault.kind === 'halfOpen') this.#hangs = true;
    else if (fault.kind === 'status') this.answerStatus(fault);
    else if (fault.kind === 'nonsense') this.#answer(200, fault.body, {});
    else return false;
    return true;
  }

  /** Does to an open watch what the fault says. */
  strike(fault: Fault): void {
    switch (fault.kind) {
      case 'reset':
      case 'lostAnswer':
        this.reset();
        return;
      case 'halfOpen':
        this.#hangs = true;
        return;
      case 'slowBody':
        this.#slow = fault;
        return;
      default:
        this.relay?.strike(fault);
    }
  }

  heal(): void {
    this.#slow = undefined;
    this.#healed.resolve(undefined);
    this.relay?.heal();
    if (this.#hangs && (this.facts.verb === 'watch' || this.facts.verb === 'list')) this.reset();
  }

  /** The client is gone, or has everything. */
  abandon(): void {
    this.#healed.resolve(undefined);
    this.upstream?.destroy();
  }

  /** Breaks the connection, unless the answer is through: then it may already carry another request. */
  reset(): void {
    if (this.#response.closed) return;
    this.#socket?.resetAndDestroy();
    this.#response.destroy();
  }

  write(bytes: Buffer): void {
    this.#then(async () => {
      if (this.#hangs) return;
      let rest = bytes;
      while (this.#slow !== undefined && rest.length > 0 && !this.#response.destroyed) {
        this.#response.write(rest.subarray(0, this.#slow.bytes));
        rest = rest.subarray(this.#slow.bytes);
        await Promise.race([sleep(this.#slow.everyMs), this.#healed.promise]);
      }
      if (rest.length > 0) this.#response.write(rest);
    });
  }

  end(): void {
    this.#then(() => {
      if (!this.#hangs) this.#response.end();
    });
  }

  answerStatus({ status, retryAfter, body }: Extract<Fault, { kind: 'status' }>): void {
    const headers = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
    const texts = {
      status: JSON.stringify({
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'fault',
        reason: reasons[status] ?? 'Unknown',
        code: status,
      }),
      page: '<html><body>upstream error</body></html>',
      none: '',
    };
    this.#answer(status, texts[body], headers);
  }

  /** Hands on the server's answer, or what a fault makes of it. */
  async relayAnswer(answer: IncomingMessage, fault: Fault | undefined): Promise<void> {
    if (fault?.kind === 'slowHeaders') await Promise.race([sleep(fault.ms), this.#healed.promise]);
    if (fault?.kind === 'slowBody') this.#slow = fault;
    await this.#flow();
    const status = answer.statusCode ?? 500;
    if (this.facts.verb === 'watch' && status === 200) {
      await this.#relayWatch(answer, fault);
      return;
    }
    const body = await bodyOf(answer);
    if (body === undefined) throw new Error('the answer broke off');
    if (fault?.kind === 'lostAnswer') {
      this.reset();
      return;
    }
    const told = fault?.kind === 'emptyList' ? withoutItems(body) : body;
    this.#response.writeHead(status, { ...withoutHopByHop(answer.headers), 'content-length': told.length });
    if (fault?.kind === 'reset') {
      this.#response.write(told.subarray(0, Math.floor(told.length / 2)), () => {
        this.reset();
      });
      return;
    }
    this.write(told);
    this.end();
  }

  async #relayWatch(answer: IncomingMessage, fault: Fault | undefined): Promise<void> {
    this.#response.writeHead(200, withoutHopByHop(answer.headers));
    this.#response.flushHeaders();
    const relay = new WatchRelay(this);
    this.relay = relay;
    if (fault !== undefined) this.strike(fault);
    answer.on('data', (chunk: Buffer) => {
      relay.data(chunk);
    });
    await once(answer, 'end');
    relay.sourceEnded();
  }

  #answer(status: number, body: string, headers: Readonly<Record<string, string>>): void {
    this.#response.writeHead(status, { 'content-type': 'application/json', ...headers });
    this.write(Buffer.from(body));
    this.end();
  }

  #then(step: () => void | Promise<void>): void {
    this.#chain = this.#chain.then(async () => {
      await this.#flow();
      if (!this.#response.destroyed) await step();
    });
  }
}

const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  408: 'Timeout',
  409: 'Conflict',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** The whole body; undefined when it broke off. */
async function bodyOf(message: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of message) {
      if (chunk instanceof Buffer) chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}

function withoutHopByHop(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const { connection: _connection, 'transfer-encoding': _encoding, 'keep-alive': _keepAlive, ...others } = headers;
  return others;
}

function bearerToken({ authorization = '' }: IncomingHttpHeaders): string {
  return authorization.replace(/^Bearer /, '');
}

function withoutItems(body: Buffer): Buffer {
  const list: unknown = JSON.parse(body.toString('utf8'));
  if (!isJsonObject(list)) return body;
  const { continue: _continue, remainingItemCount: _count, ...metadata } = objectAt(list, 'metadata');
  return Buffer.from(JSON.stringify({ ...list, metadata, items: [] }));
}
