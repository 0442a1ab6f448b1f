import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { spawnBound } from './bound-process.ts';

/** How to start one server, the same way each time. */
export interface ServerCommand {
  readonly program: string;
  readonly args: readonly string[];
  /** Working directory; removed if this process dies without stopping the server. */
  readonly directory: string;
  /** Receives stdout and stderr, appended. */
  readonly logFile: string;
}

/**
 * One server of the control plane, which tests may pause, kill and start again. Signals go to the server's own process.
 */
export class ServerProcess {
  readonly #command: ServerCommand;
  #child: ChildProcess | undefined;

  constructor(command: ServerCommand) {
    this.#command = command;
  }

  get logFile(): string {
    return this.#command.logFile;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get pid(): number | undefined {
    return this.running ? this.#child?.pid : undefined;
  }

  /** Starts it; says nothing about when it is ready. Rejects if it runs already or cannot be started. */
  async start(): Promise<void> {
    if (this.running) throw new Error(`${this.#command.program} runs already`);
    const output = openSync(this.#command.logFile, 'a', 0o600);
    try {
      this.#child = spawnBound(this.#command.program, this.#command.args, {
        cwd: this.#command.directory,
        output,
        removeWhenOrphaned: this.#command.directory,
      });
      await once(this.#child, 'spawn');
    } finally {
      closeSync(output);
    }
  }

  /** Ends it with the given signal and waits until it is gone; a paused one needs SIGKILL. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (child === undefined || !this.running) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  /** Freezes it: connections stay open, nothing answers. */
  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }
}
