import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request as sendTo } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';

/** A request on its way to the API server. */
export interface PassingRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** How many of this method and path came before it. */
  readonly before: number;
}

/** An answer in place of the API server's. */
interface MadeUpAnswer {
  readonly status: number;
  readonly body: unknown;
}

/**
 * Called before a request goes on to the API server, and waited for: the moment to change the cluster behind the back of
 * whoever asks. May answer the request itself.
 */
export type Meddler = (request: PassingRequest) => Promise<MadeUpAnswer | undefined> | undefined;

export interface MeddlingProxy {
  /** Text of a kubeconfig that leads here, with the token of the one that was given. */
  readonly kubeconfig: string;
  close(): Promise<void>;
}

/**
 * A way to the real API server that can be interfered with: what is to happen in the gap between two requests of nab-sync
 * happens there for certain, and not by luck.
 *
 * @param kubeconfigFile its user has a bearer token
 * @param answerHeaders laid over those of the API server's answers
 */
export async function meddlingProxy(
  kubeconfigFile: string,
  meddler: Meddler,
  answerHeaders: Readonly<Record<string, string>> = {},
): Promise<MeddlingProxy> {
  const original = new KubeConfig();
  original.loadFromString(await readFile(kubeconfigFile, 'utf8'));
  const cluster = original.getCurrentCluster();
  const token = original.getCurrentUser()?.token;
  if (cluster === null || token === undefined) throw new Error(`${kubeconfigFile} names no server, or no token`);
  const agent = new Agent({ keepAlive: true, ca: Buffer.from(cluster.caData ?? '', 'base64') });
  const seen = new Map<string, number>();

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/', headers } = request;
    const [path = '', query] = url.split('?');
    const key = `${method} ${path}`;
    const before = seen.get(key) ?? 0;
    seen.set(key, before + 1);
    const body = await buffer(request);
    const madeUp = await meddler({ method, path, query: new URLSearchParams(query), before });
    if (madeUp !== undefined) {
      response.writeHead(madeUp.status, { 'content-type': 'application/json' }).end(JSON.stringify(madeUp.body));
      return;
    }
    const { host, connection, ...others } = headers;
    const onward = sendTo(new URL(url, cluster?.server), { method, agent, headers: others });
    response.once('close', () => onward.destroy());
    onward.end(body);
    const answers: unknown[] = await once(onward, 'response');
    const [answer] = answers;
    if (!isMessage(answer)) throw new Error('no answer');
    response.writeHead(answer.statusCode ?? 502, { ...answer.headers, ...answerHeaders });
    // A watch that is quiet has sent its head already.
    response.flushHeaders();
    await pipeline(answer, response);
  }

  const server = createServer((request, response) => {
    // Whoever asked went away, or the API server did: the connection is all that there is to end.
    pass(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const leadingHere = new KubeConfig();
  leadingHere.loadFromClusterAndUser(
    { name: 'meddled', server: `http://127.0.0.1:${port}`, skipTLSVerify: false },
    { name: 'meddled', token },
  );
  return {
    kubeconfig: leadingHere.exportConfig(),
    async close() {
      server.closeAllConnections();
      server.close();
      agent.destroy();
      await once(server, 'close');
    },
  };
}

function isMessage(value: unknown): value is IncomingMessage {
  return typeof value === 'object' && value !== null && 'statusCode' in value;
}
