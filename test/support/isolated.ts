import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { objectAt, stringAt } from '../../src/kube/json.ts';
import type { JsonObject } from '../../src/kube/resource.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import type { ApiClient } from './api-client.ts';
import { liveObjects } from './gen/live-objects.ts';
import type { LiveObjects } from './gen/live-objects.ts';
import { renderManifests } from './manifests.ts';
import type { RenderOptions } from './manifests.ts';
import { createNamespace, deleteNamespace } from './namespaces.ts';
import { Objects } from './objects.ts';
import { serviceAccountToken } from './service-account.ts';
import { testCluster } from './test-cluster.ts';

/** A part of the run's server that belongs to one test file: an OADP namespace, and tenants whose names no other file has. */
export interface Isolated {
  readonly api: ApiClient;
  readonly objects: Objects;
  /** Builders of objects for this OADP namespace. */
  readonly gen: LiveObjects;
  readonly oadpNamespace: string;
  /** Path of a cluster admin's kubeconfig. */
  readonly adminKubeconfig: string;
  readonly kubectl: string;
  /** `team-a` becomes a namespace name of this file's own; says nothing about whether it exists. */
  readonly tenant: (name: string) => string;
  /** Makes that namespace and returns its name. */
  readonly createTenant: (name: string, labels?: Readonly<Record<string, string>>) => Promise<string>;
  /** Deletes it with all that is in it; `createTenant` may then make it anew. */
  readonly deleteTenant: (name: string) => Promise<void>;
  /**
   * Installs manifests/base into the OADP namespace, under names of this file's own, and returns the path of a kubeconfig
   * with the token of its ServiceAccount: what the controller may do in production.
   */
  readonly install: (options?: Pick<RenderOptions, 'directory' | 'patches'>) => Promise<string>;
  /** Writes a file that is removed at the end and returns its path. */
  readonly file: (name: string, content: string) => Promise<string>;
}

/**
 * Call it once at the top of a test file and await it; it cleans up after the file's last test. Test files of one run share
 * the server, so a controller here sees other files' namespaces and NABs, but no Backup of theirs.
 */
export async function isolated(): Promise<Isolated> {
  const { admin, kubeconfig, kubectl } = await testCluster();
  const objects = await Objects.on(admin);
  const id = `t${randomBytes(4).toString('hex')}`;
  const oadpNamespace = `${id}-oadp`;
  const directory = await mkdtemp(join(tmpdir(), `nab-sync-${id}-`));
  const clusterWide: JsonObject[] = [];
  await createNamespace(objects, oadpNamespace);

  afterAll(async () => {
    const namespaces = (await objects.list(kinds.namespaces))
      .map((namespace) => stringAt(objectAt(namespace, 'metadata'), 'name') ?? '')
      .filter((name) => name.startsWith(`${id}-`));
    await Promise.all(namespaces.map((name) => deleteNamespace(objects, name)));
    await Promise.all(clusterWide.map((object) => objects.deleteObject(object)));
    await admin.close();
    await rm(directory, { recursive: true, force: true });
  });

  const file = async (name: string, content: string): Promise<string> => {
    const path = join(directory, name);
    await writeFile(path, content, { mode: 0o600 });
    return path;
  };
  const tenant = (name: string): string => `${id}-${name}`;
  return {
    api: admin,
    objects,
    gen: liveObjects(oadpNamespace),
    oadpNamespace,
    adminKubeconfig: kubeconfig,
    kubectl,
    tenant,
    async createTenant(name, labels) {
      await createNamespace(objects, tenant(name), labels);
      return tenant(name);
    },
    deleteTenant: (name) => deleteNamespace(objects, tenant(name)),
    async install(options) {
      const nameSuffix = `-${id}`;
      const rendered = await renderManifests({ kubectl, namespace: oadpNamespace, nameSuffix, ...options });
      // There is one CRD for all test files, and the run's setup has installed it.
      const manifests = rendered.filter(({ kind }) => kind !== 'CustomResourceDefinition');
      for (const object of manifests) await objects.apply(object);
      clusterWide.push(
        ...manifests.filter((object) => stringAt(objectAt(object, 'metadata'), 'namespace') === undefined),
      );
      const token = await serviceAccountToken(admin, { namespace: oadpNamespace, name: `nab-sync${nameSuffix}` });
      return await file('service-account.kubeconfig', admin.kubeconfigFor({ token, namespace: oadpNamespace }));
    },
    file,
  };
}
