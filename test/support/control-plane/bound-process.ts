import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';

/**
 * Runs before the program proper, in the same process: leaves a watcher behind and then becomes the program (`exec`), so
 * that the process id node knows is the program's own. The watcher waits for a line on a pipe whose other end only the
 * parent holds. A line means that the program has ended by itself; end of file without one means that the parent is gone,
 * however it went (kill -9 too), and then nothing may stay behind.
 *
 * $1 is a directory to remove when orphaned, or empty; the rest is the program. $$ inside the watcher is still the
 * program's process id.
 */
const bindToParent = `
orphaned=$1
shift
{
  exec >/dev/null 2>&1
  if ! read -r farewell <&3; then
    kill -KILL $$
    sleep 1
    if [ -n "$orphaned" ]; then rm -rf -- "$orphaned"; fi
  fi
} &
exec 3<&-
exec "$@"
`;

/** Exit code with which a shell says that there is no such program. */
export const programNotFound = 127;

export interface BoundProcessOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Where stdout and stderr go: an open file, or a pipe to read from. */
  readonly output: number | 'pipe';
  /** Directory to remove if this process dies before the program has ended. */
  readonly removeWhenOrphaned?: string;
}

/**
 * Starts a program that cannot outlive this process, and that a Ctrl-C in the terminal does not reach: it runs in a session
 * of its own, so that whoever started it decides the order in which things stop.
 */
export function spawnBound(program: string, args: readonly string[], options: BoundProcessOptions): ChildProcess {
  const child = spawn('sh', ['-c', bindToParent, 'sh', options.removeWhenOrphaned ?? '', program, ...args], {
    cwd: options.cwd,
    env: options.env ?? process.env,
    detached: true,
    // The pipe is a fourth one: node closes stdin by itself when a child has ended, before anybody can write a farewell.
    stdio: ['ignore', options.output, options.output, 'pipe'],
  });
  const leash = child.stdio[3];
  if (!(leash instanceof Socket)) throw new Error('node gave no pipe as file descriptor 3');
  // The watcher may be gone before the farewell reaches it: nobody is left to miss it.
  leash.on('error', () => undefined);
  child.once('exit', () => leash.end('farewell\n'));
  return child;
}
