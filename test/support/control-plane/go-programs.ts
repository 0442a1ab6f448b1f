import { createHash } from 'node:crypto';
import { access, constants, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { withBuildLock } from './build-lock.ts';
import { go } from './go-tool.ts';
import { elapsed, withHeartbeat } from './progress.ts';
import type { Progress } from './progress.ts';

/** Programs that are built from one Go module of the project's, and kept. */
export interface GoPrograms {
  /** The module's directory. */
  readonly module: string;
  /** Name of their part of the cache. */
  readonly cache: string;
  /** For people who wait: what is built, and for how many minutes on two cores. */
  readonly what: string;
  readonly minutes: number;
  readonly buildFlags: readonly string[];
  /** Import path, the file that go names after its last element, and the name that it is to have. */
  readonly programs: readonly { readonly importPath: string; readonly builtAs: string; readonly file: string }[];
}

/**
 * The directory that holds the programs: in the user's cache, built into it if need be, once for each state of the module.
 * Throws `SetupError` when that is not possible.
 */
export async function provideGoPrograms(wanted: GoPrograms, progress: Progress): Promise<string> {
  const root = join(cacheRoot(), wanted.cache);
  const directory = join(root, await cacheKey(wanted));
  if (await isComplete(wanted, directory)) return directory;
  await withBuildLock(`${directory}.lock`, progress, async () => {
    // Another process may have built it while this one waited for the lock.
    if (!(await isComplete(wanted, directory))) await build(wanted, root, directory, progress);
  });
  return directory;
}

/** As `provideGoPrograms`, but builds nothing: undefined where they are not in the cache. Throws `SetupError` without Go. */
export async function builtGoPrograms(wanted: GoPrograms): Promise<string | undefined> {
  const directory = join(cacheRoot(), wanted.cache, await cacheKey(wanted));
  return (await isComplete(wanted, directory)) ? directory : undefined;
}

/** `$XDG_CACHE_HOME/nab-sync`; the standard says that a relative XDG_CACHE_HOME is to be ignored. */
function cacheRoot(): string {
  const xdg = process.env['XDG_CACHE_HOME'];
  const base = xdg !== undefined && isAbsolute(xdg) ? xdg : join(homedir(), '.cache');
  return join(base, 'nab-sync');
}

/** Changes with everything that goes into the programs. */
async function cacheKey({ module, buildFlags }: GoPrograms): Promise<string> {
  const hash = createHash('sha256');
  hash.update(await readFile(join(module, 'go.mod')));
  hash.update(await readFile(join(module, 'go.sum')));
  hash.update(buildFlags.join('\0'));
  hash.update(await go(['env', 'GOVERSION', 'GOOS', 'GOARCH'], { module }));
  return hash.digest('hex').slice(0, 20);
}

async function isComplete({ programs }: GoPrograms, directory: string): Promise<boolean> {
  try {
    await Promise.all(programs.map(({ file }) => access(join(directory, file), constants.X_OK)));
    return true;
  } catch {
    return false;
  }
}

async function build(wanted: GoPrograms, root: string, target: string, progress: Progress): Promise<void> {
  const started = performance.now();
  progress(`building ${wanted.what} from source: about ${wanted.minutes} minutes on two cores, only this once`);
  const workspace = await mkdtemp(join(root, '.building-'));
  try {
    await compile(wanted, workspace, progress);
    await publish(workspace, target);
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
  progress(`built in ${elapsed(performance.now() - started)}, kept in ${target}`);
}

async function compile(wanted: GoPrograms, workspace: string, progress: Progress): Promise<void> {
  const { module, programs, buildFlags } = wanted;
  const importPaths = programs.map(({ importPath }) => importPath);
  const tags = buildFlags.filter((flag) => flag.startsWith('-tags='));
  // Downloads the modules as well, which is why it can take a minute.
  const packages = await withHeartbeat(
    progress,
    () => 'downloading Go modules',
    () => go(['list', ...tags, '-deps', ...importPaths], { module, workspace }),
  );
  const total = packages.trim().split('\n').length;
  let compiled = 0;
  await withHeartbeat(
    progress,
    () => `compiling, ${compiled} of at most ${total} packages done`,
    () =>
      go(['build', '-v', '-o', `${workspace}/`, ...buildFlags, ...importPaths], {
        module,
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
