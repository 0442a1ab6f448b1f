import { request } from 'node:http';
import { connect } from 'node:net';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/kube/configuration-error.ts';
import { HealthChecks } from '../../../src/observability/health.ts';
import { healthPage, startServer, type Pages, type RunningServer } from '../../../src/observability/http-server.ts';

const log = pino({ level: 'silent' });
const running: RunningServer[] = [];

async function start(pages: Pages, port = 0): Promise<RunningServer> {
  const server = await startServer({ address: { host: '127.0.0.1', port }, setting: '--health-address', pages, log });
  running.push(server);
  return server;
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close()));
});

interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

function ask(server: RunningServer, path: string, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port: server.address.port, path, method, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (body += chunk));
      response.on('end', () => {
        resolve({ status: response.statusCode, headers: response.headers, body });
      });
    });
    call.on('error', reject);
    call.end();
  });
}

describe('a health page', () => {
  test('lists each check that is well, and the verdict', async () => {
    const checks = new HealthChecks();
    checks.set('queue', () => undefined);
    checks.set('watches', () => undefined);
    const server = await start({ '/livez': healthPage('livez', checks) });
    expect(await ask(server, '/livez')).toMatchObject({
      status: 200,
      body: '[+]queue ok\n[+]watches ok\nlivez check passed\n',
    });
  });

  test('says which check failed and why, the others still listed', async () => {
    const checks = new HealthChecks();
    checks.set('queue', () => undefined);
    checks.set('synced', () => 'the first lists are not complete');
    checks.set('broken', () => {
      throw new Error('the check broke');
    });
    const server = await start({ '/readyz': healthPage('readyz', checks) });
    expect(await ask(server, '/readyz')).toMatchObject({
      status: 503,
      body: '[+]queue ok\n[-]synced failed: the first lists are not complete\n[-]broken failed: the check broke\nreadyz check failed\n',
    });
    checks.set('synced', () => undefined);
    checks.set('broken', () => undefined);
    expect(await ask(server, '/readyz?verbose')).toMatchObject({ status: 200 });
  });

  test('without a check passes: the process answers', async () => {
    const server = await start({ '/livez': healthPage('livez', new HealthChecks()) });
    expect(await ask(server, '/livez')).toMatchObject({ status: 200, body: 'livez check passed\n' });
  });
});

describe('the server', () => {
  const pages: Pages = {
    '/metrics': () => Promise.resolve({ status: 200, contentType: 'text/plain; version=0.0.4', body: 'up 1\n' }),
    '/broken': () => Promise.reject(new Error('secret detail')),
  };

  test('gives a page with its type', async () => {
    const server = await start(pages);
    const answer = await ask(server, '/metrics');
    expect(answer).toMatchObject({ status: 200, body: 'up 1\n' });
    expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4');
  });

  test('answers HEAD without a body', async () => {
    const answer = await ask(await start(pages), '/metrics', 'HEAD');
    expect(answer).toMatchObject({ status: 200, body: '' });
    expect(answer.headers['content-length']).toBe('5');
  });

  test.each(['/', '/metrics/', '/nope', '/constructor', '/__proto__', '//metrics'])(
    'knows no page %s',
    async (path) => {
      expect(await ask(await start(pages), path)).toMatchObject({ status: 404 });
    },
  );

  test.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('refuses %s', async (method) => {
    const answer = await ask(await start(pages), '/metrics', method);
    expect(answer.status).toBe(405);
    expect(answer.headers['allow']).toBe('GET, HEAD');
  });

  test('says nothing of why a page failed', async () => {
    const answer = await ask(await start(pages), '/broken');
    expect(answer.status).toBe(500);
    expect(answer.body).not.toContain('secret');
  });

  test('takes a free port for 0', async () => {
    const [one, two] = [await start(pages), await start(pages)];
    expect(one.address.port).toBeGreaterThan(0);
    expect(one.address.port).not.toBe(two.address.port);
  });

  test('that finds its address in use says so in one line that names the setting', async () => {
    const { address } = await start(pages);
    const second = start(pages, address.port);
    await expect(second).rejects.toThrow(ConfigurationError);
    await expect(second).rejects.toThrow(
      `cannot listen on 127.0.0.1:${address.port} (--health-address): the address is in use; choose another one, or port 0 for a free one`,
    );
  });

  test('that is given an address of another machine says so', async () => {
    const elsewhere = startServer({
      address: { host: '192.0.2.1', port: 0 },
      setting: '--metrics-address',
      pages,
      log,
    });
    await expect(elsewhere).rejects.toThrow(
      'cannot listen on 192.0.2.1:0 (--metrics-address): this machine has no such address',
    );
  });

  test('closes at once although a client keeps its connection', async () => {
    const server = await start(pages);
    const socket = connect(server.address.port, '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.on('error', () => undefined);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await server.close();
    await closed;
  });

  test('refuses headers beyond all measure', async () => {
    const server = await start(pages);
    const socket = connect(server.address.port, '127.0.0.1');
    socket.on('error', () => undefined);
    let answer = '';
    socket.on('data', (chunk) => (answer += String(chunk)));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(`GET /metrics HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`);
    await closed;
    expect(answer).toMatch(/^HTTP\/1\.1 431/);
  });
});
