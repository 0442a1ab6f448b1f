import type { Fault } from './fault.ts';

/** The client's side of one answer, as far as a relay needs it. What it is given goes out in the order in which it came. */
export interface Outlet {
  write(bytes: Buffer): void;
  /** Ends the answer in good order. */
  end(): void;
}

const newline = 0x0a;

/** On the bookmark after the last object of a list that is streamed. */
const listEnd = 'k8s.io/initial-events-end';

/** How long a held-back event waits for the next one to change places with. */
const patienceMs = 300;

/** Events that are remembered, to be told again later. */
const remembered = 5;

/** Hands on the events of a watch line by line, and harms them as the present fault says. */
export class WatchRelay {
  readonly #out: Outlet;
  #pieces: Buffer[] = [];
  #fault: Fault | undefined;
  #held: Buffer | undefined;
  #patience: NodeJS.Timeout | undefined;
  readonly #past: Buffer[] = [];
  #ended = false;

  constructor(out: Outlet) {
    this.#out = out;
  }

  /** Does to the open stream what the fault says: at once where it can, with the next event otherwise. */
  strike(fault: Fault): void {
    this.#fault = fault;
    switch (fault.kind) {
      case 'garbageLine':
        this.#write(Buffer.from(`${fault.line}\n`));
        this.#fault = undefined;
        return;
      case 'errorEvent': {
        const { code, reason } = fault;
        const object = {
          kind: 'Status',
          apiVersion: 'v1',
          metadata: {},
          status: 'Failure',
          message: 'fault',
          reason,
          code,
        };
        this.#write(Buffer.from(`${JSON.stringify({ type: 'ERROR', object })}\n`));
        this.#end();
        return;
      }
      case 'closesEarly':
        this.#end();
        return;
      default:
    }
  }

  heal(): void {
    this.#fault = undefined;
    this.#release();
  }

  /** Bytes from the server, cut anywhere. */
  data(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      this.#pieces.push(chunk.subarray(start, end + 1));
      const line = Buffer.concat(this.#pieces);
      this.#pieces = [];
      start = end + 1;
      this.#line(line);
    }
    if (start < chunk.length) this.#pieces.push(chunk.subarray(start));
  }

  /** The server has ended the stream in good order. */
  sourceEnded(): void {
    this.#release();
    this.#write(Buffer.concat(this.#pieces));
    this.#end();
  }

  #line(line: Buffer): void {
    switch (this.#fault?.kind) {
      case 'truncatedEvent':
        this.#write(line.subarray(0, Math.ceil(line.length / 2)));
        this.#end();
        break;
      case 'duplicateEvents': {
        this.#write(line);
        const again = this.#fault.late ? this.#past[0] : line;
        if (again !== undefined) this.#write(again);
        break;
      }
      case 'emptyList':
        // Up to the end of the list nothing is told.
        if (!line.includes(listEnd)) return;
        this.#write(line);
        this.#fault = undefined;
        break;
      case 'reorderedEvents':
        if (this.#held === undefined) {
          this.#held = line;
          this.#patience = setTimeout(() => {
            this.#release();
          }, patienceMs);
        } else {
          this.#write(line);
          this.#release();
        }
        break;
      default:
        this.#write(line);
    }
    this.#past.push(line);
    if (this.#past.length > remembered) this.#past.shift();
  }

  #release(): void {
    clearTimeout(this.#patience);
    if (this.#held !== undefined) this.#write(this.#held);
    this.#held = undefined;
  }

  #write(bytes: Buffer): void {
    if (!this.#ended && bytes.length > 0) this.#out.write(bytes);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#patience);
    this.#out.end();
  }
}
