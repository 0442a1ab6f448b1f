import { createHash } from 'node:crypto';
import { access, constants, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { withBuildLock } from './build-lock.ts';
import { go, moduleDirectory } from './go-tool.ts';
import { elapsed, withHeartbeat } from './progress.ts';
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
const buildFlags = ['-trimpath', '-ldflags', ['-s', '-w', ...versionFlags].join(' ')];

/** Import path, and the file that go names after its last element. */
const programs = [
  { importPath: 'k8s.io/kubernetes/cmd/kube-apiserver', builtAs: 'kube-apiserver', file: 'kube-apiserver' },
  { importPath: 'go.etcd.io/etcd/server/v3', builtAs: 'server', file: 'etcd' },
  { importPath: 'k8s.io/kubernetes/cmd/kubectl', builtAs: 'kubectl', file: 'kubectl' },
] as const;

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
  const root = cacheRoot();
  const directory = join(root, await cacheKey());
  const binaries = binariesIn(directory);
  if ((await firstMissing(binaries)) === undefined) return binaries;
  await withBuildLock(`${directory}.lock`, progress, async () => {
    // Another process may have built it while this one waited for the lock.
    if ((await firstMissing(binaries)) !== undefined) await build(root, directory, progress);
  });
  return binaries;
}

/** `$XDG_CACHE_HOME/nab-sync/control-plane`; the standard says that a relative XDG_CACHE_HOME is to be ignored. */
function cacheRoot(): string {
  const xdg = process.env['XDG_CACHE_HOME'];
  const base = xdg !== undefined && isAbsolute(xdg) ? xdg : join(homedir(), '.cache');
  return join(base, 'nab-sync', 'control-plane');
}

/** Changes with everything that goes into the programs. */
async function cacheKey(): Promise<string> {
  const hash = createHash('sha256');
  hash.update(await readFile(join(moduleDirectory, 'go.mod')));
  hash.update(await readFile(join(moduleDirectory, 'go.sum')));
  hash.update(buildFlags.join('\0'));
  hash.update(await go(['env', 'GOVERSION', 'GOOS', 'GOARCH']));
  return hash.digest('hex').slice(0, 20);
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

async function build(root: string, target: string, progress: Progress): Promise<void> {
  const started = performance.now();
  progress(
    `building kube-apiserver and kubectl ${kubernetesVersion.git} and etcd from source: about 6 minutes on two cores, only this once`,
  );
  const workspace = await mkdtemp(join(root, '.building-'));
  try {
    await compile(workspace, progress);
    await publish(workspace, target);
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
  progress(`built in ${elapsed(performance.now() - started)}, kept in ${target}`);
}

async function compile(workspace: string, progress: Progress): Promise<void> {
  const importPaths = programs.map(({ importPath }) => importPath);
  // Downloads the modules as well, which is why it can take a minute.
  const packages = await withHeartbeat(
    progress,
    () => 'downloading Go modules',
    () => go(['list', '-deps', ...importPaths], { workspace }),
  );
  const total = packages.trim().split('\n').length;
  let compiled = 0;
  await withHeartbeat(
    progress,
    () => `compiling, ${compiled} of at most ${total} packages done`,
    () =>
      go(['build', '-v', '-o', `${workspace}/`, ...buildFlags, ...importPaths], {
        workspace,
        onProgressLine: () => {
          compiled += 1;
        },
      }),
  );
  for (const { builtAs, file } of programs) await rename(join(workspace, builtAs), join(workspace, file));
}

/** Puts the finished directory in place in one step: whoever looks sees all of it or nothing. */
async function publish(workspace: string, target: string): Promise<void> {
  // What a person who cleaned by hand may have left. Two builders that both get here (a lock broken by both) build the same.
  await rm(target, { recursive: true, force: true });
  await rename(workspace, target);
}
