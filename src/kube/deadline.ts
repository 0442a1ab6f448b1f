/**
 * A time limit that is also over when the caller's signal is aborted, and remembers which of the two it was. Leaves nothing
 * behind: `AbortSignal.any([signal, AbortSignal.timeout(ms)])` would do the same, but keeps each timer until it fires and a
 * link to the caller's signal until it is collected: at thousands of requests a second under one long-lived signal that is a
 * leak in all but name.
 */
export class Deadline implements Disposable {
  readonly #caller: AbortSignal | undefined;
  readonly #listeners = new Set<() => void>();
  #timer: NodeJS.Timeout;
  #lengthMs: number;
  #over = false;
  #expired = false;
  #controller: AbortController | undefined;

  constructor(ms: number, caller?: AbortSignal) {
    this.#lengthMs = ms;
    this.#caller = caller;
    this.#timer = this.#start();
    if (caller?.aborted === true) this.#end();
    else caller?.addEventListener('abort', this.#end, { once: true });
  }

  /** Its time was up before the caller's signal was aborted. */
  get expired(): boolean {
    return this.#expired;
  }

  get over(): boolean {
    return this.#over;
  }

  /** For those who take nothing else; made when it is first asked for, since it costs more than all else here. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#over) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /** Calls `listener` when it comes to be over; never, if it is already. Returns what ends the subscription. */
  onOver(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Starts the time anew, with another length if given. */
  extend(ms = this.#lengthMs): void {
    if (this.#over) return;
    if (ms === this.#lengthMs) {
      this.#timer.refresh();
      return;
    }
    clearTimeout(this.#timer);
    this.#lengthMs = ms;
    this.#timer = this.#start();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener('abort', this.#end);
  }

  #start(): NodeJS.Timeout {
    return setTimeout(() => {
      this.#expired = true;
      this.#end();
    }, this.#lengthMs);
  }

  readonly #end = (): void => {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#controller?.abort();
    for (const listener of [...this.#listeners]) listener();
    this.#listeners.clear();
  };
}

/** Waits for a promise that knows no signal; rejects with the signal's reason as soon as it is aborted. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // Looked at below, if at all; that it fails is not unhandled.
  promise.catch(() => undefined);
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => {
    reject(new Error('aborted'));
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
