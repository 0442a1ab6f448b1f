import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { createSecureContext } from 'node:tls';
import isEqual from 'lodash/isEqual.js';
import { ConfigurationError } from './configuration-error.ts';
import type { Credentials } from './credentials.ts';
import { Deadline, untilAborted } from './deadline.ts';
import { fileProblem, readKubeconfig, type KubeconfigTarget } from './kubeconfig-file.ts';
import { stringAt } from './json.ts';
import type { JsonObject } from './resource.ts';
import { needsPlugin, readStaticCredentials, tokenFileOf } from './static-credentials.ts';

export interface ConnectionOptions {
  /** Path of a kubeconfig, or several joined like in KUBECONFIG. */
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
}

/** Where else a connection is looked for. Tests put their own here. */
export interface ConnectionEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Directory with `token`, `ca.crt` and `namespace` that a pod gets. */
  readonly serviceAccountDirectory: string;
  readonly homeDirectory: string;
}

/** Where the API server is and how to speak to it. Holds no sockets. */
export interface Connection {
  /** URL without a trailing slash; it may have a path. */
  readonly server: string;
  readonly inCluster: boolean;
  /** The pod's own namespace in a cluster, else the one of the context. */
  readonly namespace: string | undefined;
  /** Where the CA comes from, for error messages. */
  readonly caSource: string;
  readonly proxyUrl: string | undefined;
  /**
   * The current credentials; files and plugins are asked again when the last answer is older than a few seconds. No promise
   * where nothing has to be asked, since every request comes by here.
   */
  credentials(): Credentials | Promise<Credentials>;
  /** Credentials read afresh because the server refused `refused`; many callers at once cause one reading. */
  reload(refused: Credentials): Promise<Credentials>;
}

/** One cluster and one user, in kubeconfig's words. */
interface Target {
  readonly cluster: JsonObject;
  readonly user: JsonObject;
  readonly server: string;
  readonly namespace: string | undefined;
  readonly caSource: string;
  readonly proxyUrl: string | undefined;
}

const SERVICE_ACCOUNT_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Finds the API server: the kubeconfig that was given (flag, then KUBECONFIG), else the service account of the pod, else
 * `~/.kube/config`. A context can only be chosen in a kubeconfig, so naming one rules out the service account.
 *
 * Throws ConfigurationError.
 */
export function loadConnection(
  options: ConnectionOptions = {},
  environment: ConnectionEnvironment = {
    env: process.env,
    serviceAccountDirectory: SERVICE_ACCOUNT_DIRECTORY,
    homeDirectory: homedir(),
  },
): Connection {
  const given = nonEmpty(options.kubeconfig) ?? nonEmpty(environment.env['KUBECONFIG']);
  if (given === undefined && options.context === undefined && hasServiceAccount(environment)) {
    return new KubeConfigConnection(true, () => inClusterTarget(environment));
  }
  const files =
    given === undefined
      ? [path.join(environment.homeDirectory, '.kube', 'config')]
      : given.split(path.delimiter).filter((file) => file !== '');
  if (given === undefined && !existsSync(files[0] ?? '')) {
    throw new ConfigurationError(
      `no API server to talk to: not in a cluster, KUBECONFIG is not set and there is no ${files.join('')}; give --kubeconfig`,
    );
  }
  return new KubeConfigConnection(false, () => kubeconfigTarget(readKubeconfig(files, nonEmpty(options.context))));
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

function hasServiceAccount({ env, serviceAccountDirectory }: ConnectionEnvironment): boolean {
  return (
    nonEmpty(env['KUBERNETES_SERVICE_HOST']) !== undefined &&
    nonEmpty(env['KUBERNETES_SERVICE_PORT']) !== undefined &&
    existsSync(path.join(serviceAccountDirectory, 'token'))
  );
}

function inClusterTarget({ env, serviceAccountDirectory }: ConnectionEnvironment): Target {
  const host = env['KUBERNETES_SERVICE_HOST'] ?? '';
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${env['KUBERNETES_SERVICE_PORT'] ?? ''}`;
  const namespaceFile = path.join(serviceAccountDirectory, 'namespace');
  return checked({
    server,
    cluster: { server, 'certificate-authority': path.join(serviceAccountDirectory, 'ca.crt') },
    user: { tokenFile: path.join(serviceAccountDirectory, 'token') },
    namespace: existsSync(namespaceFile) ? nonEmpty(readFileSync(namespaceFile, 'utf8').trim()) : undefined,
    where: 'the service account of this pod',
  });
}

function kubeconfigTarget(target: KubeconfigTarget): Target {
  const where = `kubeconfig ${target.file}`;
  const server = stringAt(target.cluster, 'server')?.replace(/\/+$/, '');
  if (server === undefined || !/^https?:\/\/[^/]/.test(server) || !URL.canParse(server)) {
    throw new ConfigurationError(`${where} gives no server URL for its cluster; set clusters[].cluster.server in it`);
  }
  return checked({ server, cluster: target.cluster, user: target.user, namespace: target.namespace, where });
}

interface Parts {
  readonly server: string;
  readonly cluster: JsonObject;
  readonly user: JsonObject;
  readonly namespace: string | undefined;
  readonly where: string;
}

/** Reads all key material once, so that what is missing or broken is reported by name and not by a failing handshake. */
function checked({ server, cluster, user, namespace, where }: Parts): Target {
  const caFile = stringAt(cluster, 'certificate-authority');
  const tokenFile = tokenFileOf(user);
  if (tokenFile !== undefined) readNamed(tokenFile, 'token file', where);
  checkPem('ca', cluster, 'certificate-authority', 'CA', where);
  checkPem('cert', user, 'client-certificate', 'client certificate', where);
  checkPem('key', user, 'client-key', 'client key', where);
  for (const field of ['as-groups', 'as-uid', 'as-user-extra']) {
    // Left out in silence, they would make us somebody else than the admin meant.
    if (user[field] !== undefined) {
      throw new ConfigurationError(`${where} uses ${field}, which is not supported; take another user for nab-sync`);
    }
  }
  const proxyUrl = stringAt(cluster, 'proxy-url');
  if (proxyUrl !== undefined && !(/^https?:\/\//.test(proxyUrl) && URL.canParse(proxyUrl))) {
    throw new ConfigurationError(`${where} names a proxy that is not http or https; correct proxy-url in it`);
  }
  const caData = stringAt(cluster, 'certificate-authority-data');
  return {
    server,
    namespace,
    proxyUrl,
    caSource: caFile ?? (caData === undefined ? 'the system CAs' : `the CA in ${where}`),
    cluster,
    user,
  };
}

function readNamed(file: string, what: string, where: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ConfigurationError(
      `cannot read ${what} ${file} of ${where}: ${fileProblem(error)}; put it there or correct the path`,
      { cause: error },
    );
  }
}

/** `field` names a file, `field`-data holds the same in base64; the file wins. */
function checkPem(part: 'ca' | 'cert' | 'key', entry: JsonObject, field: string, what: string, where: string): void {
  const file = stringAt(entry, field);
  const data = stringAt(entry, `${field}-data`);
  if (file === undefined && data === undefined) return;
  const pem = file === undefined ? Buffer.from(data ?? '', 'base64') : readNamed(file, `${what} file`, where);
  try {
    // Node takes text without any certificate for an empty CA list and only fails in the handshake.
    if (!pem.includes('-----BEGIN ')) throw new Error('no PEM block');
    createSecureContext({ [part]: pem });
  } catch (error) {
    throw new ConfigurationError(
      `${file === undefined ? `${field}-data` : `${what} file ${file}`} of ${where} is not usable PEM; replace it`,
      { cause: error },
    );
  }
}

/** How long headers and key material are used before the files and plugins behind them are asked again. */
const CREDENTIALS_TTL_MS = 10_000;

/** A plugin that hangs is given up after this long, so that a later request can start it anew. */
const CREDENTIALS_DEADLINE_MS = 60_000;

class KubeConfigConnection implements Connection {
  readonly server: string;
  readonly inCluster: boolean;
  readonly namespace: string | undefined;
  readonly caSource: string;
  readonly proxyUrl: string | undefined;
  readonly #load: () => Target;
  #readFresh: () => Promise<Credentials>;
  #current: { readonly credentials: Credentials; readonly readAt: number } | undefined;
  #reading: Promise<Credentials> | undefined;

  constructor(inCluster: boolean, load: () => Target) {
    const target = load();
    this.server = target.server;
    this.inCluster = inCluster;
    this.namespace = target.namespace;
    this.caSource = target.caSource;
    this.proxyUrl = target.proxyUrl;
    this.#load = load;
    this.#readFresh = credentialsReader(target);
  }

  credentials(): Credentials | Promise<Credentials> {
    const current = this.#current;
    if (current === undefined) return this.#read();
    const isFresh = performance.now() - current.readAt < CREDENTIALS_TTL_MS;
    return isFresh ? current.credentials : this.#readOrKeep(current.credentials);
  }

  async #readOrKeep(known: Credentials): Promise<Credentials> {
    try {
      return await this.#read();
    } catch {
      // A token file that is being replaced, a plugin that stumbled: what we have may still be good. If it is not, the
      // server says 401 and `reload` reports the fault.
      this.#current = { credentials: known, readAt: performance.now() };
      return known;
    }
  }

  async reload(refused: Credentials): Promise<Credentials> {
    const current = this.#current;
    // Somebody else's 401 already brought newer ones.
    if (current !== undefined && current.credentials !== refused) return current.credentials;
    if (this.#reading === undefined) {
      const target = this.#load();
      if (target.server !== this.server) {
        // The new token is meant for another server; this one must not see it.
        throw new ConfigurationError(`the kubeconfig now names ${target.server} instead of ${this.server}; restart`);
      }
      // A new reader forgets the token that a plugin said to be good for longer.
      this.#readFresh = credentialsReader(target);
    }
    return this.#read();
  }

  /** One reading at a time, however many requests wait for it. */
  async #read(): Promise<Credentials> {
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readNow(): Promise<Credentials> {
    using deadline = new Deadline(CREDENTIALS_DEADLINE_MS);
    const fresh = await untilAborted(this.#readFresh(), deadline.signal);
    const known = this.#current?.credentials;
    const tls = known !== undefined && isEqual(known.tls, fresh.tls) ? known.tls : fresh.tls;
    // Unchanged credentials stay the same object, so that `reload` can tell whether there are newer ones than the refused.
    const same = known?.tls === tls && isEqual(known.headers, fresh.headers);
    const credentials = same ? known : { headers: fresh.headers, tls };
    this.#current = { credentials, readAt: performance.now() };
    return credentials;
  }
}

/** Reads the credentials of a target, anew each time as far as files go. */
function credentialsReader({ server, cluster, user }: Target): () => Promise<Credentials> {
  if (!needsPlugin(user)) return async () => Promise.resolve(readStaticCredentials(cluster, user));
  let reader: Promise<() => Promise<Credentials>> | undefined;
  return async () => {
    reader ??= import('./plugin-credentials.ts').then((module) => module.pluginCredentials(server, cluster, user));
    return (await reader)();
  };
}
