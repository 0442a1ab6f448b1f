import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { ApiClient } from '../api-client.ts';
import { provideBinaries } from './binaries.ts';
import type { Binaries } from './binaries.ts';
import { loadCrds, loadOwnCrds } from './crd-files.ts';
import { freePort } from './free-port.ts';
import { installCrds } from './install-crds.ts';
import { stderrProgress } from './progress.ts';
import type { Progress } from './progress.ts';
import { ServerProcess } from './server-process.ts';
import { SetupError } from './setup-error.ts';

export interface ControlPlaneOptions {
  /** TCP port of the API server on 127.0.0.1; default a free one. */
  readonly port?: number;
  /** Install the CRDs of Velero and OADP; default true. */
  readonly crds?: boolean;
  /** Of the API server, where they are to differ from its defaults. */
  readonly featureGates?: Readonly<Record<string, boolean>>;
  readonly progress?: Progress;
}

/** Which server a fault is done to. */
export type ServerName = 'kube-apiserver' | 'etcd';

const readyMs = 60_000;
/** How often another free port is tried when the server ends at once, as it does when the port was taken meanwhile. */
const portAttempts = 3;

/**
 * A kube-apiserver with its etcd, for as long as this process lives: whatever ends it, no server and no file stays behind.
 *
 * There is no controller manager: nothing deletes the content of namespaces, makes ServiceAccounts or counts quotas. etcd is
 * reached through a socket in a private directory, so the API server's port is the only one taken.
 */
export class ControlPlane {
  readonly binaries: Binaries;
  /** `https://127.0.0.1:PORT`; stays the same through restarts. */
  readonly server: string;
  /** Text of a kubeconfig of a cluster admin, complete in itself. */
  readonly kubeconfig: string;
  /** As that admin. */
  readonly admin: ApiClient;
  /** Private to this control plane: certificates, keys, logs, and etcd's data in `etcd`. For tests that harm them. */
  readonly directory: string;
  readonly #servers: Readonly<Record<ServerName, ServerProcess>>;

  private constructor(parts: {
    binaries: Binaries;
    directory: string;
    servers: Readonly<Record<ServerName, ServerProcess>>;
    kubeconfig: string;
    admin: ApiClient;
  }) {
    this.binaries = parts.binaries;
    this.directory = parts.directory;
    this.#servers = parts.servers;
    this.kubeconfig = parts.kubeconfig;
    this.admin = parts.admin;
    this.server = parts.admin.server;
  }

  /**
   * Starts both and returns when the API server is ready and serves the CRDs: about 4 seconds, plus about 6 minutes the first
   * time, while the programs are built. Throws `SetupError` (one line, with the log's path).
   */
  static async start(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
    const binaries = await provideBinaries(options.progress ?? stderrProgress);
    // Read while the server starts: neither waits for the other.
    const crds = options.crds === false ? [] : [loadCrds(), loadOwnCrds()];
    const started = ControlPlane.#startOnSomePort(binaries, options);
    const [loaded, controlPlane] = await Promise.allSettled([Promise.all(crds), started]);
    if (controlPlane.status === 'rejected') throw controlPlane.reason;
    try {
      if (loaded.status === 'rejected') throw loaded.reason;
      await installCrds(controlPlane.value.admin, loaded.value.flat());
    } catch (error) {
      await controlPlane.value.stop();
      throw error;
    }
    return controlPlane.value;
  }

  static async #startOnSomePort(
    binaries: Binaries,
    { port, featureGates = {} }: ControlPlaneOptions,
  ): Promise<ControlPlane> {
    for (let attempt = 1; ; attempt += 1) {
      // mkdtemp makes it readable for its owner only: it holds the admin's token and etcd's socket.
      const directory = await mkdtemp(join(tmpdir(), 'nab-sync-'));
      try {
        return await ControlPlane.#startOn(binaries, directory, port ?? (await freePort()), featureGates);
      } catch (error) {
        // The last directory stays: the error names a log in it.
        if (port !== undefined || attempt === portAttempts) throw error;
        await rm(directory, { recursive: true, force: true });
      }
    }
  }

  static async #startOn(
    binaries: Binaries,
    directory: string,
    port: number,
    featureGates: Readonly<Record<string, boolean>>,
  ): Promise<ControlPlane> {
    const adminToken = randomBytes(24).toString('hex');
    await writeCredentials(directory, adminToken);
    const servers = {
      etcd: new ServerProcess({
        program: binaries.etcd,
        args: etcdArguments(),
        directory,
        logFile: join(directory, 'etcd.log'),
      }),
      'kube-apiserver': new ServerProcess({
        program: binaries.kubeApiserver,
        args: apiServerArguments(port, featureGates),
        directory,
        logFile: join(directory, 'kube-apiserver.log'),
      }),
    };
    try {
      await servers.etcd.start();
      await servers['kube-apiserver'].start();
      const certificate = await untilWritten(join(directory, certificateFile), servers);
      const kubeconfig = adminKubeconfig(port, certificate, adminToken);
      const admin = await ApiClient.fromKubeconfig(kubeconfig);
      const controlPlane = new ControlPlane({ binaries, directory, servers, kubeconfig, admin });
      await controlPlane.untilReady();
      return controlPlane;
    } catch (error) {
      await Promise.all([servers['kube-apiserver'].kill(), servers.etcd.kill()]);
      throw error;
    }
  }

  /** Resolves when /readyz says so; throws `SetupError` naming the log if a server ends or a minute passes. */
  async untilReady(): Promise<void> {
    const deadline = performance.now() + readyMs;
    for (;;) {
      failIfEnded(this.#servers);
      if (await answersReady(this.admin)) return;
      if (performance.now() > deadline) {
        throw new SetupError(
          `kube-apiserver is not ready after ${readyMs / 1000} s: see ${this.#servers['kube-apiserver'].logFile}`,
        );
      }
      await sleep(50);
    }
  }

  /** Ends a server as if its machine had failed (SIGKILL), or as the given signal asks, and waits until it is gone. */
  async kill(name: ServerName, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.#servers[name].kill(signal);
  }

  /** Starts a killed server again, on the same port and data; `untilReady` tells when the API serves again. */
  async startAgain(name: ServerName): Promise<void> {
    await this.#servers[name].start();
  }

  /** Freezes a server (SIGSTOP): its connections stay open and nothing answers. */
  pause(name: ServerName): void {
    this.#servers[name].pause();
  }

  resume(name: ServerName): void {
    this.#servers[name].resume();
  }

  /**
   * Ends both and removes all that they wrote. SIGKILL, since there is nothing to save: an orderly end takes five seconds.
   * May be called more than once.
   */
  async stop(): Promise<void> {
    await this.admin.close();
    await Promise.all([this.#servers['kube-apiserver'].kill(), this.#servers.etcd.kill()]);
    await rm(this.directory, { recursive: true, force: true });
  }
}

// Names are relative to the private directory, in which both servers run: a socket's path may not exceed about 100 bytes.
const etcdSocket = 'unix://etcd.sock:0';
const serviceAccountKeyFile = 'service-account.key';
const tokenFile = 'tokens.csv';
const certificateDirectory = 'certificates';
/** Written by kube-apiserver itself: the serving certificate, followed by the CA that signed it. */
const certificateFile = join(certificateDirectory, 'apiserver.crt');

function etcdArguments(): string[] {
  const peerSocket = 'unix://peer.sock:0';
  return [
    '--name=nab-sync',
    '--data-dir=etcd',
    // A power cut may cost the data, and nobody would miss it.
    '--unsafe-no-fsync',
    `--listen-client-urls=${etcdSocket}`,
    `--advertise-client-urls=${etcdSocket}`,
    `--listen-peer-urls=${peerSocket}`,
    `--initial-advertise-peer-urls=${peerSocket}`,
    `--initial-cluster=nab-sync=${peerSocket}`,
    '--log-level=warn',
  ];
}

function apiServerArguments(port: number, featureGates: Readonly<Record<string, boolean>>): string[] {
  const gates = Object.entries(featureGates).map(([name, isOn]) => `${name}=${String(isOn)}`);
  return [
    `--etcd-servers=${etcdSocket}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    `--cert-dir=${certificateDirectory}`,
    '--authorization-mode=RBAC',
    `--token-auth-file=${tokenFile}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${serviceAccountKeyFile}`,
    `--service-account-signing-key-file=${serviceAccountKeyFile}`,
    // It would wait for ServiceAccounts that only a controller manager makes.
    '--disable-admission-plugins=ServiceAccount',
    '--service-cluster-ip-range=10.0.0.0/24',
    // There are no other API servers to tell where this one is, and loopback addresses are refused as endpoints.
    '--endpoint-reconciler-type=none',
    ...(gates.length === 0 ? [] : [`--feature-gates=${gates.join(',')}`]),
  ];
}

async function writeCredentials(directory: string, adminToken: string): Promise<void> {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });
  await writeFile(join(directory, serviceAccountKeyFile), privateKey, { mode: 0o600 });
  await writeFile(join(directory, tokenFile), `${adminToken},admin,admin,"system:masters"\n`, { mode: 0o600 });
}

function adminKubeconfig(port: number, certificate: Buffer, token: string): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'nab-sync',
        cluster: {
          server: `https://127.0.0.1:${port}`,
          'certificate-authority-data': certificate.toString('base64'),
        },
      },
    ],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'nab-sync', context: { cluster: 'nab-sync', user: 'admin' } }],
    'current-context': 'nab-sync',
  });
}

type Servers = Readonly<Record<ServerName, ServerProcess>>;

function failIfEnded(servers: Servers): void {
  for (const [name, server] of Object.entries(servers)) {
    if (!server.running) throw new SetupError(`${name} does not run: see ${server.logFile}`);
  }
}

async function untilWritten(path: string, servers: Servers): Promise<Buffer> {
  const deadline = performance.now() + readyMs;
  for (;;) {
    failIfEnded(servers);
    const certificate = await readFile(path).catch(() => undefined);
    if (certificate?.includes('-----END CERTIFICATE-----') === true) return certificate;
    if (performance.now() > deadline) {
      throw new SetupError(`kube-apiserver has written no certificate: see ${servers['kube-apiserver'].logFile}`);
    }
    await sleep(20);
  }
}

async function answersReady(api: ApiClient): Promise<boolean> {
  try {
    return (await api.request('GET', '/readyz', { timeoutMs: 2_000 })).status === 200;
  } catch {
    return false; // no connection yet
  }
}
