import type { Host } from '../settings/host.ts';
import type { Streams } from './streams.ts';

/** What a command gets from the process that it runs in; tests hand in their own. */
export interface Surroundings {
  /** How people call the program: `nab-sync`, or `kubectl nab-sync`. */
  readonly program?: string;
  readonly host: Host;
  readonly streams: Streams;
  /** Aborted by SIGINT and SIGTERM, with an `Interruption` as the reason. */
  readonly signal: AbortSignal;
  /** Never resolves; rejects with what nobody caught, so that it ends a command like any other failure. */
  readonly crashed: Promise<never>;
}

export class Interruption extends Error {
  override readonly name = 'Interruption';
  readonly signalName: 'SIGINT' | 'SIGTERM';

  constructor(signalName: 'SIGINT' | 'SIGTERM') {
    super(`ended by ${signalName}`);
    this.signalName = signalName;
  }
}
