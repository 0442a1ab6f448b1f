import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A real server on a real socket that misbehaves as the test tells it: what no interceptor can play. */
export class FaultyServer {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Path and query of every request, in order. */
  readonly requests: string[] = [];
  handler: Handler;
  connections = 0;

  private constructor(handler: Handler) {
    this.handler = handler;
    this.#server = createServer((request, response) => {
      this.requests.push(request.url ?? '');
      this.handler(request, response);
    });
    this.#server.on('connection', (socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(handler: Handler): Promise<FaultyServer> {
    const server = new FaultyServer(handler);
    await server.listen(0);
    return server;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the server does not listen');
    return address.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get openSockets(): number {
    return this.#sockets.size;
  }

  async listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** Breaks every connection and refuses new ones. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    await closed;
  }

  /** Breaks every connection; new ones are served. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }
}

/** Ends the headers and sends pieces of a body, `apartMs` milliseconds apart; the body stays open. */
export async function sendPieces(
  response: ServerResponse,
  pieces: readonly (string | Uint8Array)[],
  apartMs = 2,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' });
  for (const piece of pieces) {
    response.write(piece);
    await new Promise((resolve) => setTimeout(resolve, apartMs));
  }
}
