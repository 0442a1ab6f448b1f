import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { mainJob } from './support/main-job.ts';

const job = await mainJob();

const kubeconfigShape = z.looseObject({ clusters: z.array(z.looseObject({ cluster: z.looseObject({}) })) });

/** A proxy that opens tunnels, as the API server's https wants them; returns its URL and where its tunnels went. */
async function tunnels(): Promise<{ readonly url: string; readonly targets: Set<string> }> {
  const targets = new Set<string>();
  const proxy = createServer().on('connect', (request, client) => {
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
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(() => {
    proxy.close();
  });
  return { url: `http://127.0.0.1:${z.object({ port: z.number() }).parse(proxy.address()).port}`, targets };
}

it('a proxy-url of the kubeconfig is the way to the API server, for the bundle as it is shipped', async () => {
  const proxy = await tunnels();
  const config = kubeconfigShape.parse(parse(await readFile(job.kubeconfig, 'utf8')));
  for (const { cluster } of config.clusters) cluster['proxy-url'] = proxy.url;
  const path = `${job.kubeconfig}.proxied`;
  await writeFile(path, stringify(config), { mode: 0o600 });
  const { exitCode, stderr } = await job.command(['plan'], { KUBECONFIG: path });
  expect(exitCode, stderr).toBe(0);
  const servers = config.clusters.map(({ cluster }) => new URL(String(cluster['server'])).host);
  expect([...proxy.targets]).toEqual(servers);
});
