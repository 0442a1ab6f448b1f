import { get } from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { run } from '../../../src/commands/run.ts';
import type { CommandContext } from '../../../src/controller/context.ts';
import { HealthChecks } from '../../../src/observability/health.ts';
import { noMetrics } from '../../../src/observability/metrics.ts';
import { resolveSettings } from '../../../src/settings/settings.ts';
import { fakeSurroundings } from './support.ts';

const blockers: Server[] = [];
afterEach(() => {
  for (const blocker of blockers.splice(0)) blocker.close();
});

/** A port that somebody else listens on; with `release`, one that nobody does. */
async function takePort(release = false): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  if (release) await new Promise((resolve) => server.close(resolve));
  else blockers.push(server);
  return port;
}

function context(metrics: string, health: string, signal: AbortSignal): CommandContext {
  const { host } = fakeSurroundings({ METRICS_ADDRESS: metrics, HEALTH_ADDRESS: health });
  return {
    settings: resolveSettings({}, host),
    namespaces: [],
    // Nobody connects in here.
    connection: {
      server: 'http://127.0.0.1:1',
      inCluster: false,
      namespace: undefined,
      caSource: '',
      proxyUrl: undefined,
      credentials: () => Promise.reject(new Error('not used')),
      reload: () => Promise.reject(new Error('not used')),
    },
    log: pino({ level: 'silent' }),
    metrics: noMetrics,
    progress: () => undefined,
    health: { live: new HealthChecks(), ready: new HealthChecks() },
    userAgent: 'nab-sync/test',
    signal,
  };
}

function fetchText(port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      let body = `${response.statusCode ?? 0} `;
      response.on('data', (chunk) => (body += String(chunk)));
      response.on('end', () => {
        resolve(body);
      });
    }).on('error', reject);
  });
}

const { signal } = new AbortController();

describe('run', () => {
  test('serves metrics and probes while the controller works, and no longer', async () => {
    const [metricsPort, healthPort] = [await takePort(true), await takePort(true)];
    const seen: string[] = [];
    const result = await run(
      context(`127.0.0.1:${metricsPort}`, `127.0.0.1:${healthPort}`, signal),
      async ({ metrics, health }) => {
        seen.push(await fetchText(healthPort, '/readyz'));
        health.ready.set('synced', () => undefined);
        metrics.created();
        seen.push(await fetchText(healthPort, '/readyz'), await fetchText(healthPort, '/livez'));
        seen.push(await fetchText(metricsPort, '/metrics'));
        expect(await fetchText(metricsPort, '/livez')).toMatch(/^404/);
      },
    );
    expect(result).toEqual({ exitCode: 0 });
    expect(seen[0]).toBe('503 [-]synced failed: the controller has not started\nreadyz check failed\n');
    expect(seen[1]).toBe('200 [+]synced ok\nreadyz check passed\n');
    expect(seen[2]).toMatch(/^200/);
    expect(seen[3]).toMatch(/^nab_sync_created_total 1$/m);
    expect(seen[3]).toMatch(
      /^nab_sync_reflector_phase\{resource="nonadminbackups.oadp.openshift.io",phase="live"\} 0$/m,
    );
    await expect(fetchText(metricsPort, '/metrics')).rejects.toThrow();
  });

  test('serves both at one address when both settings name it', async () => {
    const port = await takePort(true);
    await run(context(`127.0.0.1:${port}`, `127.0.0.1:${port}`, signal), async () => {
      expect(await fetchText(port, '/metrics')).toMatch(/^200/);
      expect(await fetchText(port, '/livez')).toMatch(/^200/);
    });
  });

  test('serves nothing that is switched off', async () => {
    let ran = false;
    await run(context('0', '0', signal), () => {
      ran = true;
      return Promise.resolve();
    });
    expect(ran).toBe(true);
  });

  test('with its second address in use gives back the first, and does not start the controller', async () => {
    const [free, taken] = [await takePort(true), await takePort()];
    const started = run(context(`127.0.0.1:${free}`, `127.0.0.1:${taken}`, signal), () => {
      throw new Error('the controller was started');
    });
    await expect(started).rejects.toThrow(`cannot listen on 127.0.0.1:${taken} (--health-address)`);
    await expect(fetchText(free, '/metrics')).rejects.toThrow();
  });

  test('passes on what broke the controller', async () => {
    await expect(run(context('0', '0', signal), () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  });

  test('does not wait for ever for a controller that was told to stop', async () => {
    const stopped = AbortSignal.abort();
    const ended = run(context('0', '0', stopped), () => new Promise(() => undefined), 20);
    await expect(ended).rejects.toThrow('the controller did not stop within 20ms');
  });
});
