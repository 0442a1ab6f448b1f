import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { isJsonObject, objectAt, stringAt } from '../../src/kube/json.ts';
import { resourcePath, type JsonObject } from '../../src/kube/resource.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { ControlPlane } from '../support/control-plane/control-plane.ts';
import { liveObjects } from '../support/gen/live-objects.ts';
import { renderManifests } from '../support/manifests.ts';
import { startNabSync, type NabSyncProcess } from '../support/nab-sync.ts';
import { createNamespace } from '../support/namespaces.ts';
import { Objects } from '../support/objects.ts';
import { serviceAccountToken } from '../support/service-account.ts';
import { inParallel } from './in-parallel.ts';
import { NabObserver } from './nab-observer.ts';
import { PooledApi } from './pooled-api.ts';
import { oadpNamespace, storedBackup, type Place } from './stored-backup.ts';

/** Writes in flight while the world is filled or emptied. */
const adminConcurrency = 32;

/** Longer than any run. */
const tokenSeconds = 24 * 3600;

/**
 * An API server of the benchmark's own with nab-sync installed as in production, and the Backups of tenants on it. NABs are
 * what the measured programs make.
 */
export class World {
  readonly controlPlane: ControlPlane;
  readonly objects: Objects;
  /** As cluster admin. */
  readonly admin: PooledApi;
  readonly observer: NabObserver;
  /** Text of a kubeconfig of nab-sync's ServiceAccount. */
  readonly kubeconfig: string;
  readonly directory: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #namespaces = new Set<string>();
  readonly #places: Place[] = [];
  readonly #started: NabSyncProcess[] = [];

  private constructor(parts: {
    controlPlane: ControlPlane;
    objects: Objects;
    admin: PooledApi;
    observer: NabObserver;
    kubeconfig: string;
    directory: string;
    environment: Readonly<Record<string, string>>;
  }) {
    this.controlPlane = parts.controlPlane;
    this.objects = parts.objects;
    this.admin = parts.admin;
    this.observer = parts.observer;
    this.kubeconfig = parts.kubeconfig;
    this.directory = parts.directory;
    this.#environment = parts.environment;
  }

  static async start(extraEnvironment: Readonly<Record<string, string>> = {}): Promise<World> {
    const controlPlane = await ControlPlane.start();
    try {
      const objects = await Objects.on(controlPlane.admin);
      const admin = await PooledApi.open({ kubeconfig: controlPlane.kubeconfig, connections: adminConcurrency });
      const observer = await NabObserver.open(
        await PooledApi.open({ kubeconfig: controlPlane.kubeconfig, connections: 1 }),
      );
      await createNamespace(objects, oadpNamespace);
      const { kubectl } = controlPlane.binaries;
      const installed = await renderManifests({ kubectl, namespace: oadpNamespace });
      for (const object of installed) await objects.apply(object);
      await objects.create(liveObjects(oadpNamespace).storageLocation());
      const account = { namespace: oadpNamespace, name: 'nab-sync' };
      const token = await serviceAccountToken(controlPlane.admin, account, tokenSeconds);
      const kubeconfig = controlPlane.admin.kubeconfigFor({ token, namespace: oadpNamespace });
      const directory = await mkdtemp(join(tmpdir(), 'nab-sync-bench-'));
      await writeFile(join(directory, 'kubeconfig'), kubeconfig, { mode: 0o600 });
      const environment = { ...memorySettings(installed), ...extraEnvironment };
      return new World({ controlPlane, objects, admin, observer, kubeconfig, directory, environment });
    } catch (error) {
      await controlPlane.stop();
      throw error;
    }
  }

  /** All Backups that were added, by where their NABs belong. */
  get places(): readonly Place[] {
    return this.#places;
  }

  get namespaces(): ReadonlySet<string> {
    return this.#namespaces;
  }

  /** Path of the ServiceAccount's kubeconfig, by way of another address (a relay's) if one is given. */
  async kubeconfigPath(server?: string): Promise<string> {
    if (server === undefined) return join(this.directory, 'kubeconfig');
    const path = join(this.directory, 'relayed.kubeconfig');
    await writeFile(path, this.kubeconfig.replaceAll(this.controlPlane.server, server), { mode: 0o600 });
    return path;
  }

  /** Backups, and the namespaces of tenants that they came from. */
  async add(places: readonly Place[]): Promise<void> {
    const namespaces = new Set(places.map(({ namespace }) => namespace));
    const unknown = [...namespaces].filter((name) => !this.#namespaces.has(name));
    await inParallel(unknown, adminConcurrency, (name) => this.addNamespace(name));
    await inParallel(places, adminConcurrency, (place) =>
      this.admin.call('POST', resourcePath(kinds.backups, { namespace: oadpNamespace }), storedBackup(place)),
    );
    this.#places.push(...places);
  }

  async addNamespace(name: string): Promise<void> {
    this.#namespaces.add(name);
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    await this.admin.call('POST', resourcePath(kinds.namespaces), body);
  }

  /** Takes a namespace away with its NABs and events, in the order of a namespace controller. */
  async removeNamespace(name: string): Promise<void> {
    const path = resourcePath(kinds.namespaces, { name });
    await this.admin.call('DELETE', path);
    // Again, where a create that was let in just before the mark was done just after the first time.
    do {
      await this.emptyNamespace(name);
      await sleep(5);
    } while (this.observer.of(name).visible.size > 0);
    const namespace = await this.admin.call('GET', path);
    await this.admin.call('PUT', `${path}/finalize`, { ...namespace, spec: { finalizers: [] } });
    this.#namespaces.delete(name);
  }

  /** Deletes all NABs, events and what is left of a Lease, as if none had ever been written. Nobody else may be at work. */
  async clear(): Promise<void> {
    await inParallel([...this.#namespaces], 8, (namespace) => this.emptyNamespace(namespace));
    await this.observer.untilGone();
    await this.admin.call('DELETE', '/apis/coordination.k8s.io/v1/namespaces/openshift-adp/leases');
  }

  /** Deletes its NABs and events, finalizers or not. */
  async emptyNamespace(namespace: string): Promise<void> {
    const nabs = resourcePath(kinds.nonAdminBackups, { namespace });
    await this.admin.call('DELETE', nabs);
    const left = await this.admin.call('GET', nabs);
    const items: unknown[] = Array.isArray(left['items']) ? left['items'] : [];
    for (const nab of items.filter(isJsonObject)) {
      const name = stringAt(objectAt(nab, 'metadata'), 'name');
      await this.admin
        .call('PATCH', resourcePath(kinds.nonAdminBackups, { namespace, name }), { metadata: { finalizers: null } })
        // It may have gone since it was listed.
        .catch(() => undefined);
    }
    await this.admin.call('DELETE', `/api/v1/namespaces/${namespace}/events`);
  }

  /** Starts `nab-sync run`; its log is JSON at level info. */
  async startNabSync(
    options: { env?: Readonly<Record<string, string>>; server?: string } = {},
  ): Promise<NabSyncProcess> {
    const nabSync = await startNabSync(['run'], {
      kubeconfig: await this.kubeconfigPath(options.server),
      oadpNamespace,
      env: { LOG_FORMAT: 'json', ...this.#environment, ...options.env },
    });
    this.#started.push(nabSync);
    return nabSync;
  }

  /** Ends everything that was started, whatever state it is in. */
  async stop(): Promise<void> {
    for (const nabSync of this.#started) nabSync.signal('SIGKILL');
    await this.observer.close();
    await this.admin.close();
    await this.controlPlane.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}

const deployment = z.object({
  kind: z.literal('Deployment'),
  spec: z.object({
    template: z.object({
      spec: z.object({
        containers: z.array(z.object({ env: z.array(z.object({ name: z.string(), value: z.string().optional() })) })),
      }),
    }),
  }),
});

/** What the Deployment tells the allocator, which decides over a good part of the memory that is measured. */
function memorySettings(installed: readonly JsonObject[]): Record<string, string> {
  const variables = installed.flatMap((object) => {
    const { success, data } = deployment.safeParse(object);
    return success ? data.spec.template.spec.containers.flatMap(({ env }) => env) : [];
  });
  return Object.fromEntries(
    variables.flatMap(({ name, value }) => (name.startsWith('MALLOC_') && value !== undefined ? [[name, value]] : [])),
  );
}
