import type { IncomingHttpHeaders } from 'node:http';
import { errors, type Dispatcher } from 'undici';
import type { Deadline } from './deadline.ts';

/** A whole HTTP answer. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Undefined when it is longer than was allowed; unless it was there already, its connection is closed. */
  readonly body: Buffer | undefined;
}

export interface ExchangeOptions {
  readonly dispatcher: Dispatcher;
  readonly request: Dispatcher.DispatchOptions;
  readonly deadline: Deadline;
  /** Largest body that is taken in, for an answer of this status. */
  readonly maxBytes: (status: number) => number;
}

/**
 * One request and its whole answer, with neither a stream nor a signal for each as undici's `request` has them: they were a
 * third of what a request costs. Rejects with undici's error, and as soon as the deadline is over, wherever the request is by
 * then: its connection is closed if it had one, and one that still waits keeps its place in undici's queue and is dropped when its
 * turn comes.
 */
export function exchange({ dispatcher, request, deadline, maxBytes }: ExchangeOptions): Promise<Answer> {
  if (deadline.over) return Promise.reject(new errors.RequestAbortedError());
  return new Promise((resolve, reject) => {
    const handler = new AnswerHandler(deadline, maxBytes, resolve, reject);
    try {
      dispatcher.dispatch(request, handler);
    } catch (error) {
      handler.fail(error);
    }
  });
}

class AnswerHandler implements Dispatcher.DispatchHandler {
  readonly #maxBytes: (status: number) => number;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: unknown) => void;
  readonly #unsubscribe: () => void;
  readonly #chunks: Buffer[] = [];
  /** Once the request has a connection. */
  #controller: Dispatcher.DispatchController | undefined;
  #settled = false;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #bytes = 0;
  #mostBytes = 0;

  constructor(
    deadline: Deadline,
    maxBytes: (status: number) => number,
    resolve: (answer: Answer) => void,
    reject: (error: unknown) => void,
  ) {
    this.#maxBytes = maxBytes;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#unsubscribe = deadline.onOver(() => {
      this.fail(new errors.RequestAbortedError());
    });
  }

  /** Ends the exchange, which undici may only notice when the request gets its connection. */
  fail(error: unknown): void {
    if (!this.#settle()) return;
    this.#reject(error);
    this.#controller?.abort(new errors.RequestAbortedError());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Thrown and not aborted: that would close a connection on which nothing was sent yet.
    if (this.#settled) throw new errors.RequestAbortedError();
    this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Anything below announces the answer that is still to come.
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#mostBytes = this.#maxBytes(status);
    if (Number(headers['content-length']) > this.#mostBytes) this.#tooLong();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#mostBytes) this.#tooLong();
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (!this.#settle()) return;
    const [first] = this.#chunks;
    const body = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks, this.#bytes);
    this.#resolve({ status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#settle()) this.#reject(error);
  }

  #tooLong(): void {
    if (!this.#settle()) return;
    this.#resolve({ status: this.#status, headers: this.#headers, body: undefined });
    // Not from within the parser, which may have the end of the answer before it already.
    queueMicrotask(() => this.#controller?.abort(new errors.RequestAbortedError()));
  }

  /** False if it was settled before. */
  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.#unsubscribe();
    return true;
  }
}
