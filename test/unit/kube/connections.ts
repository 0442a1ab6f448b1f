import type { Connection } from '../../../src/kube/connection.ts';
import type { Credentials } from '../../../src/kube/credentials.ts';

/** A connection to `server` that hands out `tokens` one by one, each time it is reloaded. */
export function connectionTo(
  server: string,
  tokens: readonly string[] = ['token-1'],
): Connection & { reloads: number } {
  const all: Credentials[] = tokens.map((token) => ({ headers: { authorization: `Bearer ${token}` }, tls: TLS }));
  return {
    server,
    inCluster: false,
    namespace: undefined,
    caSource: 'the test',
    proxyUrl: undefined,
    reloads: 0,
    credentials() {
      return Promise.resolve(at(all, this.reloads));
    },
    reload() {
      this.reloads += 1;
      return Promise.resolve(at(all, this.reloads));
    },
  };
}

const TLS = {};

function at(all: readonly Credentials[], index: number): Credentials {
  const found = all[Math.min(index, all.length - 1)];
  if (found === undefined) throw new Error('a connection needs a token');
  return found;
}
