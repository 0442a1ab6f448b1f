import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import type { RequestOptions as HttpsOptions } from 'node:https';
import { Pool } from 'undici';
import { z } from 'zod';
import { isJsonObject } from '../../src/kube/json.ts';
import type { JsonObject } from '../../src/kube/resource.ts';

export interface PooledApiOptions {
  /** Text of a kubeconfig. */
  readonly kubeconfig: string;
  readonly connections: number;
  readonly http2?: boolean;
  /** Requests on one connection at a time; for HTTP/2. */
  readonly streams?: number;
}

/**
 * The shortest way to the API server from Node: undici's pool with the credentials put on by hand, no deadlines, no retries,
 * no metrics. What nab-sync is measured against, and what fills the world.
 */
export class PooledApi {
  readonly #pool: Pool;
  readonly #headers: Readonly<Record<string, string>>;

  private constructor(pool: Pool, headers: Readonly<Record<string, string>>) {
    this.#pool = pool;
    this.#headers = headers;
  }

  static async open({ kubeconfig, connections, http2 = false, streams = 1 }: PooledApiOptions): Promise<PooledApi> {
    const config = new KubeConfig();
    config.loadFromString(kubeconfig);
    const server = config.getCurrentCluster()?.server;
    if (server === undefined) throw new Error('the kubeconfig names no server');
    const tls: HttpsOptions = {};
    await config.applyToHTTPSOptions(tls);
    const pool = new Pool(server, {
      connections,
      pipelining: streams,
      allowH2: http2,
      h2Options: { maxConcurrentStreams: streams },
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: tls.ca === undefined ? {} : { ca: tls.ca },
    });
    return new PooledApi(pool, z.record(z.string(), z.string()).parse(tls.headers ?? {}));
  }

  /** Rejects for anything but 2xx. */
  async call(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: JsonObject,
  ): Promise<JsonObject> {
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const answer = await this.#pool.request({
      path,
      method,
      headers: { ...this.#headers, accept: 'application/json', 'content-type': contentType },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${text.slice(0, 300)}`);
    const object: unknown = JSON.parse(text);
    return isJsonObject(object) ? object : {};
  }

  /** The JSON lines of a stream, until it ends. */
  async *lines(path: string, signal: AbortSignal): AsyncGenerator<JsonObject, void, void> {
    const answer = await this.#pool.request({ path, method: 'GET', headers: this.#headers, signal });
    if (answer.statusCode !== 200) throw new Error(`GET ${path}: ${answer.statusCode} ${await answer.body.text()}`);
    answer.body.setEncoding('utf8');
    let rest = '';
    for await (const chunk of answer.body) {
      const parts = (rest + String(chunk)).split('\n');
      rest = parts.pop() ?? '';
      for (const line of parts) {
        const event: unknown = JSON.parse(line);
        if (isJsonObject(event)) yield event;
      }
    }
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}
