import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import type { TestProject } from 'vitest/node';
import { ApiClient } from '../api-client.ts';
import { ControlPlane } from '../control-plane/control-plane.ts';
import { loadCrds, loadOwnCrds } from '../control-plane/crd-files.ts';
import { installCrds } from '../control-plane/install-crds.ts';

declare module 'vitest' {
  /** What the run's one setup hands to every test file; `testCluster()` is the way to use it. */
  interface ProvidedContext {
    /** Path of a cluster admin's kubeconfig. */
    adminKubeconfig: string;
    /** Path or name of the kubectl program. */
    kubectl: string;
  }
}

interface Cluster {
  /** Text of a cluster admin's kubeconfig. */
  readonly kubeconfig: string;
  readonly kubectl: string;
  readonly stop: () => Promise<void>;
}

/** One API server for the whole run, and one build of dist/nab-sync.mjs; each test file keeps to namespaces of its own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const [cluster] = await Promise.all([provideCluster(), promisify(execFile)('npm', ['run', '--silent', 'build'])]);
  const directory = await mkdtemp(join(tmpdir(), 'nab-sync-run-'));
  const kubeconfig = join(directory, 'kubeconfig');
  await writeFile(kubeconfig, cluster.kubeconfig, { mode: 0o600 });
  project.provide('adminKubeconfig', kubeconfig);
  project.provide('kubectl', cluster.kubectl);
  return async () => {
    await cluster.stop();
    await rm(directory, { recursive: true, force: true });
  };
}

async function provideCluster(): Promise<Cluster> {
  if (process.env['USE_EXISTING_CLUSTER'] === 'true') return await existingCluster();
  const controlPlane = await ControlPlane.start();
  return {
    kubeconfig: controlPlane.kubeconfig,
    kubectl: controlPlane.binaries.kubectl,
    stop: () => controlPlane.stop(),
  };
}

/** The cluster of KUBECONFIG. CRDs that it lacks are installed and stay there; kubectl is the one on the PATH. */
async function existingCluster(): Promise<Cluster> {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromDefault();
  const api = await ApiClient.fromKubeConfig(kubeConfig);
  try {
    await installCrds(api, [...(await loadCrds()), ...(await loadOwnCrds())]);
  } finally {
    await api.close();
  }
  return { kubeconfig: kubeConfig.exportConfig(), kubectl: 'kubectl', stop: () => Promise.resolve() };
}
