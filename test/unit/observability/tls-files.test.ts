import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/kube/configuration-error.ts';
import { startServer, type RunningServer } from '../../../src/observability/http-server.ts';
import { eventually } from '../../support/eventually.ts';
import { selfSigned } from '../../support/self-signed.ts';

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const work of cleanUp.splice(0).reverse()) await work();
});

async function directoryWith(files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'nab-sync-tls-'));
  cleanUp.push(() => rm(directory, { recursive: true }));
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content);
  return directory;
}

async function start(path: string): Promise<RunningServer> {
  const server = await startServer({
    address: { host: '127.0.0.1', port: 0 },
    setting: '--metrics-address',
    pages: { '/metrics': () => ({ status: 200, contentType: 'text/plain', body: 'up 1\n' }) },
    tls: { path, setting: '--metrics-tls-directory', rereadMs: 10 },
    log: pino({ level: 'silent' }),
  });
  cleanUp.push(() => server.close());
  return server;
}

/** The page, asked for by a client that trusts this certificate alone. */
function ask({ address: { port } }: RunningServer, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request(
      { host: '127.0.0.1', port, path: '/metrics', ca, servername: 'nab-sync', agent: false },
      (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (body += chunk));
        response.on('end', () => {
          resolve(body);
        });
      },
    );
    call.on('error', reject);
    call.end();
  });
}

describe('a page behind TLS', () => {
  test('is served with the certificate of the directory, and from then on with the one that follows it', async () => {
    const [first, second] = [selfSigned('nab-sync'), selfSigned('nab-sync')];
    const directory = await directoryWith({ 'tls.crt': first.cert, 'tls.key': first.key });
    const server = await start(directory);
    expect(await ask(server, first.cert)).toBe('up 1\n');
    await expect(ask(server, second.cert)).rejects.toThrow();

    await writeFile(join(directory, 'tls.crt'), second.cert);
    await writeFile(join(directory, 'tls.key'), second.key);
    await eventually(async () => {
      expect(await ask(server, second.cert)).toBe('up 1\n');
    });
  });

  test('keeps its certificate while the next one is half there', async () => {
    const [first, second] = [selfSigned('nab-sync'), selfSigned('nab-sync')];
    const directory = await directoryWith({ 'tls.crt': first.cert, 'tls.key': first.key });
    const server = await start(directory);
    await writeFile(join(directory, 'tls.crt'), second.cert);
    for (let time = 0; time < 20; time += 1) expect(await ask(server, first.cert)).toBe('up 1\n');
    await writeFile(join(directory, 'tls.key'), second.key);
    await eventually(async () => {
      expect(await ask(server, second.cert)).toBe('up 1\n');
    });
  });

  test.each([
    ['no files', {}, 'ENOENT'],
    ['no certificate in them', { 'tls.crt': 'a', 'tls.key': 'b' }, ''],
  ])('does not start with %s, and names flag and directory', async (_, files, why) => {
    const directory = await directoryWith(files);
    const starting = start(directory);
    await expect(starting).rejects.toThrow(ConfigurationError);
    await expect(starting).rejects.toThrow(`tls.crt and tls.key in ${directory} (--metrics-tls-directory): ${why}`);
  });

  test('does not start with a certificate and the key of another', async () => {
    const directory = await directoryWith({ 'tls.crt': selfSigned('a').cert, 'tls.key': selfSigned('a').key });
    await expect(start(directory)).rejects.toThrow(ConfigurationError);
  });
});
