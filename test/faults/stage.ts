import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ControlPlane } from '../support/control-plane/control-plane.ts';
import { liveObjects } from '../support/gen/live-objects.ts';
import type { LiveObjects } from '../support/gen/live-objects.ts';
import { renderManifests } from '../support/manifests.ts';
import { createNamespace } from '../support/namespaces.ts';
import { Objects } from '../support/objects.ts';
import { serviceAccountToken } from '../support/service-account.ts';
import { EtcdCopies } from './etcd-copies.ts';
import { FaultProxy } from './fault-proxy.ts';

export const oadpNamespace = 'openshift-adp';

const serviceAccount = { namespace: oadpNamespace, name: 'nab-sync' };
/** Longer than any run. */
const tokenSeconds = 24 * 3600;

/**
 * An API server of one's own with nab-sync's manifests installed, which may be harmed in any way: `reset` makes it again
 * what it was at the beginning.
 */
export class Stage {
  readonly controlPlane: ControlPlane;
  readonly objects: Objects;
  readonly gen: LiveObjects = liveObjects(oadpNamespace);
  readonly etcd: EtcdCopies;
  readonly #certificate: string;
  readonly #key: string;
  #files = 0;

  private constructor(parts: { controlPlane: ControlPlane; objects: Objects; certificate: string; key: string }) {
    this.controlPlane = parts.controlPlane;
    this.objects = parts.objects;
    this.#certificate = parts.certificate;
    this.#key = parts.key;
    this.etcd = new EtcdCopies(parts.controlPlane);
  }

  static async open(): Promise<Stage> {
    const controlPlane = await ControlPlane.start();
    try {
      const objects = await Objects.on(controlPlane.admin);
      await createNamespace(objects, oadpNamespace);
      const { kubectl } = controlPlane.binaries;
      for (const object of await renderManifests({ kubectl, namespace: oadpNamespace })) await objects.apply(object);
      // The API server's own pair: nab-sync's kubeconfig trusts it already, and no other has to be made.
      const certificates = join(controlPlane.directory, 'certificates');
      const certificate = await readFile(join(certificates, 'apiserver.crt'), 'utf8');
      const key = await readFile(join(certificates, 'apiserver.key'), 'utf8');
      const stage = new Stage({ controlPlane, objects, certificate, key });
      await stage.etcd.take('pristine');
      return stage;
    } catch (error) {
      await controlPlane.stop();
      throw error;
    }
  }

  /** Everything is as it was after `open`, whatever has happened to the servers. */
  async reset(): Promise<void> {
    await this.etcd.putBack('pristine');
  }

  async proxy(options: { random?: () => number; pageLimit?: number } = {}): Promise<FaultProxy> {
    return await FaultProxy.start({
      upstream: this.controlPlane.server,
      certificate: this.#certificate,
      key: this.#key,
      random: options.random ?? Math.random,
      ...(options.pageLimit === undefined ? {} : { pageLimit: options.pageLimit }),
    });
  }

  /** A new token of nab-sync's ServiceAccount. */
  async token(): Promise<string> {
    return await serviceAccountToken(this.controlPlane.admin, serviceAccount, tokenSeconds);
  }

  /** Writes a file beside the servers, which goes away with them, and returns its path. */
  async file(name: string, content: string): Promise<string> {
    this.#files += 1;
    const path = join(this.controlPlane.directory, `${this.#files}-${name}`);
    await writeFile(path, content, { mode: 0o600 });
    return path;
  }

  /** Path of a kubeconfig that leads through a proxy, with the token read from a file. */
  async kubeconfig(proxy: FaultProxy, tokenFile: string): Promise<string> {
    const name = 'faults';
    const cluster = {
      server: proxy.server,
      'certificate-authority-data': Buffer.from(this.#certificate).toString('base64'),
    };
    // JSON is YAML.
    const content = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster }],
      users: [{ name, user: { tokenFile } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      'current-context': name,
    };
    return await this.file('kubeconfig', JSON.stringify(content));
  }

  async close(): Promise<void> {
    await this.controlPlane.stop();
  }
}
