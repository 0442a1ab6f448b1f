import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import type { Surroundings } from '../../../src/commands/surroundings.ts';

/** A stream that keeps what it gets, or fails every write like a pipe whose reader went away. */
export class Sink extends Writable {
  text = '';
  readonly #failure: NodeJS.ErrnoException | undefined;

  constructor(failure?: NodeJS.ErrnoException) {
    super({ emitClose: false, autoDestroy: false });
    this.#failure = failure;
    // As main does for stdout: a write tells its own error.
    this.on('error', () => undefined);
  }

  override _write(chunk: unknown, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.#failure === undefined) this.text += String(chunk);
    done(this.#failure ?? null);
  }
}

export interface FakeSurroundings extends Surroundings {
  readonly out: Sink;
  readonly error: Sink;
  readonly stop: AbortController;
  readonly crash: (error: unknown) => void;
}

/** A process of one's own: environment, streams, signal and crash. */
export function fakeSurroundings(environment: Record<string, string> = {}, out = new Sink()): FakeSurroundings {
  const stop = new AbortController();
  const error = new Sink();
  let crash: (error: unknown) => void = () => undefined;
  const crashed = new Promise<never>((_, reject) => {
    crash = reject;
  });
  crashed.catch(() => undefined);
  return {
    host: { environment, stderrIsTerminal: false, exists: () => false, read: () => undefined },
    streams: { out, error },
    signal: stop.signal,
    crashed,
    out,
    error,
    stop,
    crash,
  };
}

/** A kubeconfig for a server that need not be there; returns its path. */
export function writeKubeconfig(directory: string, server: string): string {
  const path = join(directory, 'kubeconfig');
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user: { token: 'not-a-secret' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  };
  writeFileSync(path, JSON.stringify(kubeconfig));
  return path;
}
