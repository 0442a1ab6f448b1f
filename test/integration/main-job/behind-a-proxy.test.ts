import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { selfSigned } from '../../support/self-signed.ts';
import { mainJob } from './support/main-job.ts';

const job = await mainJob();

const kubeconfigShape = z.looseObject({ clusters: z.array(z.looseObject({ cluster: z.looseObject({}) })) });

/** Makes `server` a proxy that opens tunnels, as the API server's https wants them; returns its port and where its tunnels went. */
async function tunnels(proxy: Server): Promise<{ readonly port: number; readonly targets: Set<string> }> {
  const targets = new Set<string>();
  proxy.on('connect', (request, client) => {
    const target = request.url ?? '';
    targets.add(target);
    const { hostname, port } = new URL(`http://${target}`);
    const server = connect(Number(port), hostname, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      server.pipe(client).pipe(server);
    });
    // Either side may hang up.
    for (const socket of [server, client]) socket.on('error', () => server.destroy());
  });
  proxy.listen(0, 'localhost');
  await once(proxy, 'listening');
  onTestFinished(() => {
    proxy.close();
  });
  return { port: z.object({ port: z.number() }).parse(proxy.address()).port, targets };
}

const { cert, key } = selfSigned('localhost');
const certificate = await job.file('proxy.pem', cert);

/** Asks for a plan by way of the proxy at `url`; returns how that ended and where it should have gone. */
async function planThrough(url: string, env: Record<string, string> = {}) {
  const config = kubeconfigShape.parse(parse(await readFile(job.kubeconfig, 'utf8')));
  for (const { cluster } of config.clusters) cluster['proxy-url'] = url;
  const path = await job.file('proxied.kubeconfig', stringify(config));
  const servers = config.clusters.map(({ cluster }) => new URL(String(cluster['server'])).host);
  return { ...(await job.command(['plan'], { KUBECONFIG: path, ...env })), servers };
}

it('a proxy-url of the kubeconfig is the way to the API server, for the bundle as it is shipped', async () => {
  const { port, targets } = await tunnels(createServer());
  const { exitCode, stderr, servers } = await planThrough(`http://localhost:${port}`);
  expect(exitCode, stderr).toBe(0);
  expect([...targets]).toEqual(servers);
});

it('so is one of https, also where the proxy would rather speak HTTP/2', async () => {
  // It would choose h2 if it were offered, and what follows is HTTP/1.1 in any case.
  const { port, targets } = await tunnels(createTlsServer({ cert, key, ALPNProtocols: ['h2', 'http/1.1'] }));
  const { exitCode, stderr, servers } = await planThrough(`https://localhost:${port}`, {
    NODE_EXTRA_CA_CERTS: certificate,
  });
  expect(exitCode, stderr).toBe(0);
  expect([...targets]).toEqual(servers);
});

it('one of https that nobody vouches for gets no request, whatever the environment says (case C23)', async () => {
  const { port, targets } = await tunnels(createTlsServer({ cert, key }));
  const { exitCode, stderr } = await planThrough(`https://localhost:${port}`, {
    NODE_TLS_REJECT_UNAUTHORIZED: '0',
    NODE_NO_WARNINGS: '1',
  });
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/SELF_SIGNED_CERT/);
  expect([...targets]).toEqual([]);
});
