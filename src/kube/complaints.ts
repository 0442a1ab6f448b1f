import type { Logger } from 'pino';
import { KubeError } from './errors.ts';

/** Tells the log of what keeps going wrong: once for as long as it stays the same. */
export class Complaints {
  readonly #log: Logger;
  #told: string | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** @param facts stand in the line beside the error */
  tell(error: unknown, message: string, facts: Readonly<Record<string, unknown>> = {}): void {
    const what = error instanceof KubeError ? `${error.verb} ${error.code}` : String(error);
    if (what === this.#told) return;
    this.#told = what;
    this.#log.warn({ err: error, ...facts }, message);
  }

  /** It went well: the next complaint is news, whatever it is about. */
  end(): void {
    this.#told = undefined;
  }
}
