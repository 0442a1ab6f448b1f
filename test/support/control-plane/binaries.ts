import { access, constants } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { provideGoPrograms, type GoPrograms } from './go-programs.ts';
import { moduleDirectory } from './go-tool.ts';
import type { Progress } from './progress.ts';
import { SetupError } from './setup-error.ts';

/** Absolute paths of the three programs. They lie in one directory, laid out as KUBEBUILDER_ASSETS has it. */
export interface Binaries {
  readonly directory: string;
  readonly kubeApiserver: string;
  readonly etcd: string;
  readonly kubectl: string;
}

const kubernetesVersion = { major: '1', minor: '37', git: 'v1.37.2' };

/** Without these the server would call itself v0.0.0-master, and clients that compare versions would take wrong turns. */
const versionFlags = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].flatMap((variables) => [
  `-X ${variables}.gitVersion=${kubernetesVersion.git}`,
  `-X ${variables}.gitMajor=${kubernetesVersion.major}`,
  `-X ${variables}.gitMinor=${kubernetesVersion.minor}`,
]);
const controlPlane: GoPrograms = {
  module: moduleDirectory,
  cache: 'control-plane',
  what: `kube-apiserver and kubectl ${kubernetesVersion.git} and etcd`,
  minutes: 6,
  buildFlags: ['-trimpath', '-ldflags', ['-s', '-w', ...versionFlags].join(' ')],
  programs: [
    { importPath: 'k8s.io/kubernetes/cmd/kube-apiserver', builtAs: 'kube-apiserver', file: 'kube-apiserver' },
    { importPath: 'go.etcd.io/etcd/server/v3', builtAs: 'server', file: 'etcd' },
    { importPath: 'k8s.io/kubernetes/cmd/kubectl', builtAs: 'kubectl', file: 'kubectl' },
  ],
};

/**
 * Where kube-apiserver, etcd and kubectl are: KUBEBUILDER_ASSETS if set, else the user's cache, built into it if need be
 * (about six minutes on two cores, once for each state of the Go module). Throws `SetupError` when neither is possible.
 */
export async function provideBinaries(progress: Progress): Promise<Binaries> {
  const assets = process.env['KUBEBUILDER_ASSETS'];
  if (assets !== undefined && assets !== '') {
    const binaries = binariesIn(resolve(assets));
    const missing = await firstMissing(binaries);
    if (missing === undefined) return binaries;
    throw new SetupError(`KUBEBUILDER_ASSETS is ${assets}, but ${missing} is not there or cannot be executed`);
  }
  return binariesIn(await provideGoPrograms(controlPlane, progress));
}

function binariesIn(directory: string): Binaries {
  return {
    directory,
    kubeApiserver: join(directory, 'kube-apiserver'),
    etcd: join(directory, 'etcd'),
    kubectl: join(directory, 'kubectl'),
  };
}

async function firstMissing({ kubeApiserver, etcd, kubectl }: Binaries): Promise<string | undefined> {
  for (const program of [kubeApiserver, etcd, kubectl]) {
    try {
      await access(program, constants.X_OK);
    } catch {
      return program;
    }
  }
  return undefined;
}
