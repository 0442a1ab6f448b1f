import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * A TCP port on the loopback interface that was free a moment ago. Somebody else may take it before the caller does, so the
 * caller must be able to try again with another.
 */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('the probe did not listen on a TCP port');
  return address.port;
}
