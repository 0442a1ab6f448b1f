import { once } from 'node:events';
import { homedir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { spawnBound } from './control-plane/bound-process.ts';

/** The bundle that `npm run build` makes; the test run's setup has built it. */
const bundle = fileURLToPath(new URL('../../dist/nab-sync.mjs', import.meta.url));

export interface NabSyncOptions {
  /** Path of a kubeconfig. */
  readonly kubeconfig: string;
  readonly oadpNamespace: string;
  /** Laid over the environment, of which the process otherwise gets PATH and HOME only. */
  readonly env?: Readonly<Record<string, string>>;
  /** File to run; default dist/nab-sync.mjs. */
  readonly program?: string;
}

export interface NabSyncExit {
  /** Null if a signal ended it. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A nab-sync that runs. It dies with this process at the latest. */
export interface NabSyncProcess {
  readonly pid: number;
  /** What it has printed so far. */
  readonly stdout: string;
  readonly stderr: string;
  /** Settles when it has ended and all its output is here. */
  readonly exited: Promise<NabSyncExit>;
  signal(signal: NodeJS.Signals): void;
  /** SIGTERM, and wait for the end. */
  stop(): Promise<NabSyncExit>;
}

/** Starts `nab-sync ARGS` as a process of its own. Metrics and probes are on free ports, unless the arguments say otherwise. */
export async function startNabSync(args: readonly string[], options: NabSyncOptions): Promise<NabSyncProcess> {
  const output = { stdout: '', stderr: '' };
  const child = spawnBound(process.execPath, [options.program ?? bundle, ...args], {
    cwd: homedir(),
    env: {
      PATH: process.env['PATH'],
      HOME: homedir(),
      KUBECONFIG: options.kubeconfig,
      WATCH_NAMESPACE: options.oadpNamespace,
      METRICS_ADDRESS: '127.0.0.1:0',
      HEALTH_ADDRESS: '127.0.0.1:0',
      ...options.env,
    },
    output: 'pipe',
  });
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  const exited = once(child, 'close').then((): NabSyncExit => ({ exitCode: child.exitCode, ...output }));
  await once(child, 'spawn');
  const { pid } = child;
  if (pid === undefined) throw new Error('nab-sync was not started');
  return {
    pid,
    get stdout() {
      return output.stdout;
    },
    get stderr() {
      return output.stderr;
    },
    exited,
    signal: (signal) => child.kill(signal),
    stop: () => {
      child.kill('SIGTERM');
      return exited;
    },
  };
}

/** Runs `nab-sync ARGS` to its end. */
export async function runNabSync(args: readonly string[], options: NabSyncOptions): Promise<NabSyncExit> {
  return await (
    await startNabSync(args, options)
  ).exited;
}
