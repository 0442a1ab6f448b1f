import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { ConfigurationError } from '../kube/configuration-error.ts';
import { formatAddress, type Address } from '../settings/address.ts';
import type { HealthChecks } from './health.ts';
import { useTlsDirectory, type TlsDirectory } from './tls-files.ts';

/** An answer to GET. */
export interface Page {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Pages by path; a page that throws answers 500 and is logged. */
export type Pages = Readonly<Record<string, () => Page | Promise<Page>>>;

export interface ServerOptions {
  readonly address: Address;
  /** The setting that the address came from, as an error names it: `--metrics-address`. */
  readonly setting: string;
  readonly pages: Pages;
  /** HTTPS, with the certificate that lies there; left out for HTTP. */
  readonly tls?: TlsDirectory | undefined;
  readonly log: Logger;
}

export interface RunningServer {
  /** With the port that was taken where 0 was asked for. */
  readonly address: Address;
  /** Ends connections that are open, too. */
  close(): Promise<void>;
}

const text = 'text/plain; charset=utf-8';

/** The API server's own format: every check on a line, then the verdict. */
export function healthPage(name: string, checks: HealthChecks): () => Page {
  return () => {
    const { healthy, lines } = checks.report();
    const verdict = `${name} check ${healthy ? 'passed' : 'failed'}`;
    return { status: healthy ? 200 : 503, contentType: text, body: [...lines, verdict, ''].join('\n') };
  };
}

function send(request: IncomingMessage, response: ServerResponse, page: Page): void {
  response.writeHead(page.status, {
    'content-type': page.contentType,
    'content-length': Buffer.byteLength(page.body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(request.method === 'HEAD' ? undefined : page.body);
}

async function answer(pages: Pages, request: IncomingMessage, response: ServerResponse, log: Logger): Promise<void> {
  const path = request.url?.split('?', 1)[0] ?? '';
  const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    // Whatever body comes along is not read, so the connection is of no further use.
    response.setHeader('connection', 'close');
    send(request, response, { status: 405, contentType: text, body: 'only GET and HEAD\n' });
    return;
  }
  if (page === undefined) {
    const known = Object.keys(pages).join(' ');
    send(request, response, { status: 404, contentType: text, body: `not found; there is ${known}\n` });
    return;
  }
  try {
    send(request, response, await page());
  } catch (error) {
    log.error({ err: error, path }, 'page failed');
    send(request, response, { status: 500, contentType: text, body: 'internal error; see the log\n' });
  }
}

/** What an admin can do when the address cannot be had; undefined for an error of another kind. */
function advice(code: string | undefined): string | undefined {
  switch (code) {
    case 'EADDRINUSE':
      return 'the address is in use; choose another one, or port 0 for a free one';
    case 'EACCES':
      return 'not allowed to; choose a port above 1023';
    case 'EADDRNOTAVAIL':
      return 'this machine has no such address';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'no such host';
    case 'EAFNOSUPPORT':
      return 'this machine has no such kind of address';
    default:
      return undefined;
  }
}

function listen(server: Server | TlsServer, { address, setting }: ServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const problem = advice(error.code);
      reject(
        problem === undefined
          ? error
          : new ConfigurationError(`cannot listen on ${formatAddress(address)} (${setting}): ${problem}`),
      );
    });
    server.listen({ port: address.port, host: address.host }, resolve);
  });
}

const limits = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  // How often connections are looked at for the two timeouts above.
  connectionsCheckingInterval: 2_000,
  maxHeaderSize: 8 * 1024,
};

/**
 * Serves a few small pages, for probes and scrapers inside the cluster. Everything is bounded: header size, the time a
 * client may take for a request, connections at once. Rejects with ConfigurationError when the address cannot be had,
 * or the certificate not be used.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { address, setting, pages, tls, log } = options;
  const answerRequest = (request: IncomingMessage, response: ServerResponse): void => {
    void answer(pages, request, response, log);
  };
  const { server, stopTls } =
    tls === undefined
      ? { server: createServer(limits, answerRequest), stopTls: undefined }
      : await tlsServer(tls, answerRequest, log);
  server.maxConnections = 64;
  try {
    await listen(server, options);
  } catch (error) {
    stopTls?.();
    throw error;
  }
  server.on('error', (error) => {
    log.error({ err: error, setting }, 'server failed');
  });
  const bound = server.address() as AddressInfo;
  const actual: Address = { host: address.host, port: bound.port };
  log.info({ address: formatAddress(actual), pages: Object.keys(pages), tls: tls !== undefined }, 'listening');
  return {
    address: actual,
    close: () =>
      new Promise((resolve) => {
        stopTls?.();
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

async function tlsServer(
  tls: TlsDirectory,
  answerRequest: (request: IncomingMessage, response: ServerResponse) => void,
  log: Logger,
): Promise<{ server: TlsServer; stopTls: () => void }> {
  const server = createTlsServer(limits, answerRequest);
  return { server, stopTls: await useTlsDirectory(server, tls, log) };
}
