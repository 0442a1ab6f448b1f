import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import type { RequestOptions as HttpsOptions } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import { z } from 'zod';
import type { JsonObject } from '../../src/kube/resource.ts';

/**
 * The tests' own way to the API server, apart from nab-sync's client on purpose: it must see what is really there even if
 * that client is wrong, and does what nab-sync never does (delete, finalize, mint tokens, ask for tables).
 */
export interface ApiRequest {
  readonly body?: unknown;
  /** Default `application/json`. */
  readonly accept?: string;
  /** Default `application/json`; a patch must say which kind of patch it is. */
  readonly contentType?: string;
  /** Milliseconds; default 15,000. */
  readonly timeoutMs?: number;
}

export interface ApiResponse {
  readonly status: number;
  readonly body: JsonObject;
}

/** An answer that the caller did not expect. `reason` is that of the Status object, such as `NotFound`. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly reason: string;

  constructor(request: string, status: number, body: JsonObject) {
    const { reason, message } = statusObject.parse(body);
    super(`${request}: ${status} ${reason}: ${message}`);
    this.status = status;
    this.reason = reason;
  }
}

const statusObject = z.object({ reason: z.string().catch(''), message: z.string().catch('') });
const jsonObject = z.record(z.string(), z.unknown());

export class ApiClient {
  readonly server: string;
  readonly #kubeConfig: KubeConfig;
  readonly #agent: Agent;
  readonly #headers: Record<string, string>;

  private constructor(kubeConfig: KubeConfig, server: string, tls: HttpsOptions) {
    this.#kubeConfig = kubeConfig;
    this.server = server;
    this.#headers = z.record(z.string(), z.string()).parse(tls.headers ?? {});
    this.#agent = new Agent({
      connections: 16,
      connect: {
        ...(tls.ca === undefined ? {} : { ca: tls.ca }),
        ...(tls.cert === undefined ? {} : { cert: tls.cert }),
        ...(tls.key === undefined ? {} : { key: tls.key }),
        ...(tls.servername === undefined ? {} : { servername: tls.servername }),
        ...(tls.rejectUnauthorized === undefined ? {} : { rejectUnauthorized: tls.rejectUnauthorized }),
      },
    });
  }

  /** Reads a kubeconfig's text; its current context counts. */
  static async fromKubeconfig(text: string): Promise<ApiClient> {
    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromString(text);
    return await ApiClient.fromKubeConfig(kubeConfig);
  }

  static async fromKubeConfig(kubeConfig: KubeConfig): Promise<ApiClient> {
    const cluster = kubeConfig.getCurrentCluster();
    if (cluster === null) throw new Error('the kubeconfig has no current context');
    const tls: HttpsOptions = {};
    await kubeConfig.applyToHTTPSOptions(tls);
    return new ApiClient(kubeConfig, cluster.server, tls);
  }

  /** The same server with another bearer token and no other credentials. */
  async withToken(token: string): Promise<ApiClient> {
    return await ApiClient.fromKubeconfig(this.kubeconfigFor({ token }));
  }

  /** Text of a kubeconfig for this server with the given bearer token. */
  kubeconfigFor({ token, namespace }: { token: string; namespace?: string }): string {
    const cluster = this.#kubeConfig.getCurrentCluster();
    if (cluster === null) throw new Error('the kubeconfig has no current context');
    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromClusterAndUser({ ...cluster, name: 'test' }, { name: 'test', token });
    kubeConfig.contexts = [
      { name: 'test', cluster: 'test', user: 'test', ...(namespace === undefined ? {} : { namespace }) },
    ];
    kubeConfig.setCurrentContext('test');
    return kubeConfig.exportConfig();
  }

  /**
   * One request; any status is an answer. An empty or non-JSON body becomes `{}` or `{ text }`. Rejects when there is no
   * answer in time. 429 is retried as the server asks: right after a CRD was installed it means "not yet".
   */
  async request(method: string, path: string, request: ApiRequest = {}): Promise<ApiResponse> {
    const deadline = AbortSignal.timeout(request.timeoutMs ?? 15_000);
    for (;;) {
      const answer = await this.#agent.request({
        origin: this.server,
        path,
        method,
        signal: deadline,
        headers: {
          ...this.#headers,
          accept: request.accept ?? 'application/json',
          'content-type': request.contentType ?? 'application/json',
        },
        body: request.body === undefined ? null : JSON.stringify(request.body),
      });
      const text = await answer.body.text();
      if (answer.statusCode !== 429) return { status: answer.statusCode, body: parseBody(text) };
      await sleep(Number(answer.headers['retry-after'] ?? 1) * 1000, undefined, { signal: deadline });
    }
  }

  /** As `request`, but anything other than 2xx throws an `ApiError`. */
  async call(method: string, path: string, request: ApiRequest = {}): Promise<JsonObject> {
    const { status, body } = await this.request(method, path, request);
    if (status >= 200 && status < 300) return body;
    throw new ApiError(`${method} ${path}`, status, body);
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

function parseBody(text: string): JsonObject {
  try {
    return jsonObject.parse(JSON.parse(text));
  } catch {
    return text === '' ? {} : { text };
  }
}
