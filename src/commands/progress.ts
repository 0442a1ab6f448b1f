import { Writable } from 'node:stream';
import type { Terminal } from './terminal.ts';

/** Work that is done sooner needs no progress. */
const patienceMs = 1_000;
const pauseMs = 100;

/** To the beginning of the line, and away with what is on it. */
const erase = '\r\u001b[K';

/** One line on a terminal that says how far long work is. Without a terminal it says nothing. */
export class ProgressLine {
  readonly #stream: Writable;
  readonly #terminal: Terminal | undefined;
  readonly #now: () => number;
  #nextAt: number;
  #shown = false;

  /**
   * @param terminal what `stream` is shown on
   * @param now milliseconds on a clock that never jumps
   */
  constructor(stream: Writable, terminal: Terminal | undefined, now: () => number = () => performance.now()) {
    this.#stream = stream;
    this.#terminal = terminal;
    this.#now = now;
    this.#nextAt = now() + patienceMs;
  }

  /** The last part takes the line away: what comes next is the result. */
  show(done: number, total: number, what: string): void {
    if (done >= total) {
      this.clear();
      return;
    }
    const now = this.#now();
    if (this.#terminal === undefined || now < this.#nextAt) return;
    this.#nextAt = now + pauseMs;
    this.#shown = true;
    const line = `${what}: ${String(done)} of ${String(total)}`;
    this.#stream.write(erase + line.slice(0, this.#terminal.columns - 1));
  }

  /** `stream` for what is to take the place of the progress line, and not to begin behind it. */
  before(stream: Writable): Writable {
    return new Writable({
      write: (chunk: unknown, _encoding, done) => {
        this.clear();
        stream.write(chunk, done);
      },
    });
  }

  /** Makes room for something else. */
  clear(): void {
    if (!this.#shown) return;
    this.#shown = false;
    this.#stream.write(erase);
  }
}
