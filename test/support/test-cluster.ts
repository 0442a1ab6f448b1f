import { readFile } from 'node:fs/promises';
import { inject } from 'vitest';
import { ApiClient } from './api-client.ts';
// Declares what the run's setup provides.
import type {} from './vitest/global-setup.ts';

/** The run's API server, shared by all test files. */
export interface TestCluster {
  /** As a cluster admin. Close it at the end. */
  readonly admin: ApiClient;
  /** Path of that admin's kubeconfig. */
  readonly kubeconfig: string;
  /** Path or name of a kubectl that fits. */
  readonly kubectl: string;
}

export async function testCluster(): Promise<TestCluster> {
  const kubeconfig = inject('adminKubeconfig');
  return {
    admin: await ApiClient.fromKubeconfig(await readFile(kubeconfig, 'utf8')),
    kubeconfig,
    kubectl: inject('kubectl'),
  };
}
