import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import omit from 'lodash/omit.js';
import type { Credentials } from './credentials.ts';
import type { JsonObject } from './resource.ts';

/**
 * Asks the plugin or identity provider of a user, by way of client-node. Makes one reader for one cluster and user; it keeps
 * what it got until that expires, so forgetting takes a new one.
 *
 * To be imported only when a user needs it: client-node takes longer to load than all else together.
 */
export function pluginCredentials(server: string, cluster: JsonObject, user: JsonObject): () => Promise<Credentials> {
  const config = new KubeConfig();
  // JSON is YAML, and the one way in that goes through client-node's own reading of a kubeconfig.
  config.loadFromString(JSON.stringify(kubeconfigOf(server, cluster, user)));
  return () => readCredentials(config);
}

/** The parts as client-node wants them; docs/adr/0001-own-reflector.md says where it differs from kubectl. */
function kubeconfigOf(server: string, cluster: JsonObject, user: JsonObject): JsonObject {
  // Without TLS there is nothing to verify, but client-node refuses plain http unless told so.
  const plain = server.startsWith('http:') ? { 'insecure-skip-tls-verify': true } : {};
  return {
    // Proxies are ours to handle: client-node would make an agent for each.
    clusters: [{ name: 'cluster', cluster: { ...omit(cluster, 'proxy-url'), server, ...plain } }],
    users: [{ name: 'user', user }],
    contexts: [{ name: 'context', context: { cluster: 'cluster', user: 'user' } }],
    'current-context': 'context',
  };
}

async function readCredentials(config: KubeConfig): Promise<Credentials> {
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const headers: Record<string, string> = {};
  if (typeof options.auth === 'string')
    headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    // What a plugin prints may end in a newline, which no header may hold.
    if (typeof value === 'string') headers[name.toLowerCase()] = value.trim();
  }
  const { ca, cert, key, rejectUnauthorized, servername } = options;
  return {
    headers,
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(servername === undefined ? {} : { servername }),
      ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
    },
  };
}
