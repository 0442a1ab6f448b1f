import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** What went through a relay. */
export interface Traffic {
  readonly connections: number;
  readonly bytesToServer: number;
  readonly bytesToClient: number;
}

/**
 * A TCP relay in front of the API server that counts bytes, encryption included, and notes when the first request came.
 * It needs no keys: a TLS record says in clear what kind it is.
 */
export class Relay {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;
  readonly #counts: Counts;

  private constructor(url: string, server: Server, sockets: Set<Socket>, counts: Counts) {
    this.url = url;
    this.#server = server;
    this.#sockets = sockets;
    this.#counts = counts;
  }

  /** @param target `https://HOST:PORT` */
  static async start(target: string): Promise<Relay> {
    const { hostname, port } = new URL(target);
    const counts: Counts = { connections: 0, bytesToServer: 0, bytesToClient: 0, firstRequestAt: undefined };
    const sockets = new Set<Socket>();
    const server = createServer((client) => {
      counts.connections += 1;
      const upstream = connect(Number(port), hostname);
      client.setNoDelay();
      upstream.setNoDelay();
      const records = new RequestFinder();
      client.on('data', (chunk: Buffer) => {
        counts.bytesToServer += chunk.length;
        if (counts.firstRequestAt === undefined && records.sees(chunk)) counts.firstRequestAt = performance.now();
      });
      upstream.on('data', (chunk: Buffer) => {
        counts.bytesToClient += chunk.length;
      });
      for (const [socket, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        sockets.add(socket);
        socket.on('error', () => other.destroy());
        socket.on('close', () => {
          sockets.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the relay has no port');
    return new Relay(`https://127.0.0.1:${address.port}`, server, sockets, counts);
  }

  get traffic(): Traffic {
    return { ...this.#counts };
  }

  /** On the clock of `performance.now()`. */
  get firstRequestAt(): number | undefined {
    return this.#counts.firstRequestAt;
  }

  /** Breaks all connections; new ones are taken. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    this.cut();
  }
}

interface Counts {
  connections: number;
  bytesToServer: number;
  bytesToClient: number;
  firstRequestAt: number | undefined;
}

const recordHeader = 5;
const applicationData = 23;

/**
 * Finds the first request in what a TLS 1.3 client sends: its second record of the type "application data". The first one
 * is the end of the handshake, which is disguised as such.
 */
class RequestFinder {
  #rest = Buffer.alloc(0);
  #seen = 0;

  sees(chunk: Buffer): boolean {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= recordHeader) {
      if (this.#rest[0] === applicationData) this.#seen += 1;
      if (this.#seen === 2) return true;
      const end = recordHeader + this.#rest.readUInt16BE(3);
      if (this.#rest.length < end) {
        // Counted again when the rest of it is here.
        if (this.#rest[0] === applicationData) this.#seen -= 1;
        return false;
      }
      this.#rest = this.#rest.subarray(end);
    }
    return false;
  }
}
