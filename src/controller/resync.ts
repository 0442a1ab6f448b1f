/** Calls a function at an interval that can be changed while it runs. */
export class Resync {
  readonly #tick: () => void;
  #periodMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #running = false;

  constructor(tick: () => void) {
    this.#tick = tick;
  }

  start(): void {
    this.#running = true;
    this.#arm();
  }

  stop(): void {
    this.#running = false;
    clearTimeout(this.#timer);
  }

  /** @param periodMs 0 = never. A changed period counts from now on. */
  setPeriod(periodMs: number): void {
    if (periodMs === this.#periodMs) return;
    this.#periodMs = periodMs;
    if (this.#running) this.#arm();
  }

  #arm(): void {
    clearTimeout(this.#timer);
    if (this.#periodMs === 0) return;
    this.#timer = setTimeout(() => {
      this.#arm();
      this.#tick();
    }, this.#periodMs);
  }
}
