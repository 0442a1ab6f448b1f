import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { eventsIn } from '../main-job/support/events.ts';
import { mainJob } from '../main-job/support/main-job.ts';
import { createCounter } from './support/create-counter.ts';
import { passOver } from './support/passes.ts';

/**
 * Admission webhooks that are broken in the ways webhooks break: nobody listens, what listens is no webhook, or it never
 * answers. Each costs the namespaces that it is for, at most one deadline of ours, and nobody else (field case C5).
 */

const job = await mainJob();
const { gen, objects } = job;
const creates = await createCounter(job);
const api = 'admissionregistration.k8s.io/v1';

/** Takes connections and never says anything. */
const silent: Server = createServer((socket) => {
  sockets.add(socket);
  socket.on('error', () => undefined);
  socket.on('close', () => sockets.delete(socket));
});
const sockets = new Set<Socket>();
silent.listen(0, '127.0.0.1');
await once(silent, 'listening');

/** Free a moment ago, and nobody listens there now. */
const closed = createServer();
closed.listen(0, '127.0.0.1');
await once(closed, 'listening');
const deadPort = portOf(closed);
closed.close();

function portOf(server: Server): number {
  const address: string | AddressInfo | null = server.address();
  if (address === null || typeof address === 'string') throw new Error('not a TCP server');
  return address.port;
}

const made: string[] = [];

/** A webhook for the namespaces that carry its name. */
async function install(name: string, url: string, timeoutSeconds: number, caBundle?: string): Promise<void> {
  const id = job.tenant(name);
  await objects.create({
    apiVersion: api,
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: id },
    webhooks: [
      {
        name: `${name}.test.example`,
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        timeoutSeconds,
        clientConfig: { url, ...(caBundle === undefined ? {} : { caBundle }) },
        namespaceSelector: { matchLabels: { 'test-webhook': id } },
        rules: [
          {
            apiGroups: ['oadp.openshift.io'],
            apiVersions: ['*'],
            operations: ['CREATE'],
            resources: ['nonadminbackups'],
          },
        ],
      },
    ],
  });
  made.push(id);
}

async function uninstall(name: string): Promise<void> {
  await objects.deleteObject({
    apiVersion: api,
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: job.tenant(name) },
  });
}

async function tenantUnder(webhook: string, name: string, count = 30): Promise<string> {
  const namespace = await job.createTenant(name, { 'test-webhook': job.tenant(webhook) });
  await backUp(namespace, count);
  return namespace;
}

async function backUp(namespace: string, count: number): Promise<void> {
  await Promise.all(numbered(count).map((name) => objects.create(gen.backup({ namespace, name }))));
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `b${index}`);
}

/** Until the API server asks the webhook (or no longer does), which it shows by failing a create that is not meant. */
async function untilInForce(namespace: string, inForce = true): Promise<void> {
  const path = `/apis/oadp.openshift.io/v1alpha1/namespaces/${namespace}/nonadminbackups?dryRun=All`;
  await eventually(async () => {
    const body = gen.nonAdminBackup({ namespace, name: 'probe' });
    const answered = await job.api
      .request('POST', path, { body, timeoutMs: 1_000 })
      .then(({ status }) => status === 201)
      .catch(() => false);
    expect(answered).toBe(!inForce);
  }, 30_000);
}

beforeAll(async () => {
  await objects.create(gen.storageLocation());
});

afterAll(async () => {
  await Promise.all(
    made.map((name) =>
      objects.deleteObject({ apiVersion: api, kind: 'ValidatingWebhookConfiguration', metadata: { name } }),
    ),
  );
  for (const socket of sockets) socket.destroy();
  silent.close();
});

describe.each([
  ['nobody listens', 'dead', () => `https://127.0.0.1:${deadPort}/`],
  ['what listens is no webhook', 'nonsense', () => `${job.api.server}/readyz`],
])('a webhook where %s', (_, name, url) => {
  let broken: string;
  let neighbour: string;
  let pass: Awaited<ReturnType<typeof passOver>>;

  beforeAll(async () => {
    await install(name, url(), 2);
    broken = await tenantUnder(name, `${name}-broken`);
    neighbour = await job.createTenant(`${name}-neighbour`);
    await backUp(neighbour, 5);
    await untilInForce(broken);
    creates.reset();
    pass = await passOver(job, [broken, neighbour], creates.kubeconfig);
  });

  it('ends that namespace’s pass after few tries, with every NAB reported', () => {
    expect(pass.exitCode).toBe(1);
    // Nothing is known of the namespace, so its creates go one at a time.
    expect(creates.in(broken)).toBe(5);
    expect(pass.report).toMatchObject({ outcome: 'Partial', counts: { seen: 35, created: 5, failed: 30 } });
    expect(pass.report.reasons).toEqual({ Missing: 5, ServerError: 30 });
    for (const failure of pass.report.failures) {
      expect(failure.namespace).toBe(broken);
      expect(failure.message).toContain('failed calling webhook');
    }
  });

  it('does not cost the neighbour anything', async () => {
    expect(await job.nabNames(neighbour)).toHaveLength(5);
  });

  it('is no news for the tenant, who can do nothing about it', async () => {
    expect(await eventsIn(objects, broken)).toEqual([]);
  });

  it('is over when the webhook is mended', async () => {
    await uninstall(name);
    await untilInForce(broken, false);
    expect((await passOver(job, [broken])).exitCode).toBe(0);
    expect(await job.nabNames(broken)).toHaveLength(30);
  });
});

describe('a webhook that never answers', () => {
  let hanging: string[];
  let neighbours: string[];
  let pass: Awaited<ReturnType<typeof passOver>>;

  beforeAll(async () => {
    // Longer than our own deadline of 5 seconds: it is ours that counts.
    await install('silent', `https://127.0.0.1:${portOf(silent)}/`, 30);
    // As many as would fill all slots five times over, were a namespace let in with all that it has.
    hanging = await Promise.all(numbered(10).map((name) => tenantUnder('silent', `hanging-${name}`, 20)));
    // Their Backups are listed behind those of the others.
    neighbours = await Promise.all(numbered(3).map((name) => job.createTenant(`undisturbed-${name}`)));
    for (const neighbour of neighbours) await backUp(neighbour, 5);
    for (const namespace of hanging) await untilInForce(namespace);
    creates.reset();
    pass = await passOver(job, [...hanging, ...neighbours], creates.kubeconfig);
  });

  it('costs one deadline, not one for each NAB', () => {
    const { startTime, completionTime } = pass.report;
    const seconds = (Date.parse(completionTime) - Date.parse(startTime)) / 1000;
    expect(seconds).toBeGreaterThan(5);
    expect(seconds).toBeLessThan(20);
    for (const namespace of hanging) expect(creates.in(namespace)).toBe(1);
  });

  it('has every NAB of its namespaces reported as timed out', () => {
    expect(pass.exitCode).toBe(1);
    expect(pass.report.reasons).toEqual({ Missing: 15, Timeout: 200 });
    expect(new Set(pass.report.failures.map(({ namespace }) => namespace))).toEqual(new Set(hanging));
  });

  it('does not cost the neighbours anything: their NABs are there long before the deadline', async () => {
    const hangingSince = Math.min(...hanging.map((namespace) => creates.firstIn(namespace) ?? Number.NaN));
    for (const namespace of neighbours) {
      const nabs = await objects.list(kinds.nonAdminBackups, { namespace });
      expect(nabs).toHaveLength(5);
      for (const nab of nabs) {
        const created = Date.parse(stringAt(objectAt(nab, 'metadata'), 'creationTimestamp') ?? '');
        expect(created).toBeLessThan(hangingSince + 4_000);
      }
    }
  });

  it('is over when the webhook is gone', async () => {
    await uninstall('silent');
    for (const namespace of hanging) await untilInForce(namespace, false);
    expect((await passOver(job, hanging)).exitCode).toBe(0);
    for (const namespace of hanging) expect(await job.nabNames(namespace)).toHaveLength(20);
  });
});
