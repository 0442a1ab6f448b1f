import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { KubeClient } from '../../src/kube/client.ts';
import { loadConnection } from '../../src/kube/connection.ts';
import { EventRecorder } from '../../src/kube/events.ts';
import type { EventFact, Regarding } from '../../src/kube/events.ts';
import { isJsonObject, objectAt, stringAt } from '../../src/kube/json.ts';
import type { JsonObject } from '../../src/kube/resource.ts';
import { ApiClient } from '../support/api-client.ts';

const kubeconfig = inject('adminKubeconfig');
const run = randomUUID().slice(0, 8);
const made: string[] = [];
let admin: ApiClient;
let client: KubeClient;
let namespace: string;

beforeAll(async () => {
  admin = await ApiClient.fromKubeconfig(await readFile(kubeconfig, 'utf8'));
  client = new KubeClient(loadConnection({ kubeconfig }));
});

afterAll(async () => {
  await Promise.all(made.map((name) => admin.request('DELETE', `/api/v1/namespaces/${name}`)));
  await client.close();
  await admin.close();
});

beforeEach(async () => {
  namespace = `events-${run}-${made.length}`;
  await makeNamespace(namespace);
});

async function makeNamespace(name: string): Promise<void> {
  await admin.call('POST', '/api/v1/namespaces', { body: { metadata: { name } } });
  made.push(name);
}

function recorder(instance = 'pod-1_uuid'): EventRecorder {
  return new EventRecorder({ client, log: pino({ level: 'silent' }), component: 'nab-sync', instance });
}

function fact(regarding: Partial<Regarding> = {}): EventFact {
  return {
    regarding: {
      apiVersion: 'oadp.openshift.io/v1alpha1',
      kind: 'NonAdminBackup',
      namespace,
      name: 'daily',
      uid: '11111111-2222-3333-4444-555555555555',
      ...regarding,
    },
    type: 'Normal',
    reason: 'RecreatedFromVeleroBackup',
    message: 'Re-created.',
    dedupeKey: 'backup-1',
  };
}

const aboutNamespace = (): EventFact => ({
  ...fact(),
  regarding: { apiVersion: 'v1', kind: 'Namespace', name: namespace },
  type: 'Warning',
  reason: 'QuotaDenied',
});

async function events(query = ''): Promise<JsonObject[]> {
  const { items } = await admin.call('GET', `/api/v1/namespaces/${namespace}/events${query}`);
  return Array.isArray(items) ? items.filter(isJsonObject) : [];
}

describe('events on a real API server', () => {
  it('the same fact told twice, by two processes, is one event with count 2 (field case D13)', async () => {
    const first = recorder();
    const second = recorder('pod-2_uuid');
    first.record(fact());
    await first.close(10_000);
    second.record(fact());
    await second.close(10_000);
    expect(await events()).toEqual([
      expect.objectContaining({
        count: 2,
        reason: 'RecreatedFromVeleroBackup',
        message: 'Re-created.',
        reportingComponent: 'nab-sync',
        reportingInstance: 'pod-2_uuid',
        source: { component: 'nab-sync' },
      }),
    ]);
    expect([first.counters, second.counters]).toMatchObject([{ sent: 1 }, { aggregated: 1 }]);
  });

  it('told by two processes at the same moment is one event all the same', async () => {
    const recorders = Array.from({ length: 8 }, (_, number) => recorder(`pod-${number}`));
    for (const one of recorders) one.record(fact());
    await Promise.all(recorders.map((one) => one.close(10_000)));
    expect(await events()).toHaveLength(1);
    expect(recorders.map(({ counters }) => counters.sent).reduce((sum, sent) => sum + sent)).toBe(1);
    expect(recorders.every(({ counters }) => counters.failed === 0)).toBe(true);
  });

  it('told again about an object that was made anew is found by kubectl describe, which asks by uid', async () => {
    const uid = '99999999-2222-3333-4444-555555555555';
    const one = recorder();
    one.record(fact());
    await one.flush(10_000);
    one.record(fact({ uid }));
    await one.close(10_000);
    expect(await events(`?fieldSelector=involvedObject.name=daily,involvedObject.uid=${uid}`)).toMatchObject([
      { count: 2 },
    ]);
  });

  it('about a Namespace is shown to the people in it', async () => {
    const one = recorder();
    one.record(aboutNamespace());
    await one.close(10_000);
    const { stdout } = await promisify(execFile)(inject('kubectl'), [
      '--kubeconfig',
      kubeconfig,
      'events',
      '--namespace',
      namespace,
      '--for',
      `namespace/${namespace}`,
    ]);
    expect(stdout).toMatch(/Warning\s+QuotaDenied\s+Namespace\/events-\S+\s+Re-created\./);
  });

  it("about a Namespace could not be put there without naming it as the object's namespace: why we do", async () => {
    const body = {
      metadata: { name: 'probe' },
      involvedObject: { apiVersion: 'v1', kind: 'Namespace', name: namespace },
    };
    const { status } = await admin.request('POST', `/api/v1/namespaces/${namespace}/events`, { body });
    expect(status).toBe(422);
  });

  it('about another cluster-scoped object goes to default', async () => {
    const one = recorder();
    const name = `node-of-${namespace}`;
    one.record({ ...fact(), regarding: { apiVersion: 'v1', kind: 'Node', name } });
    await one.close(10_000);
    expect(one.counters).toMatchObject({ sent: 1 });
    const { items } = await admin.call(
      'GET',
      `/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=${name}`,
    );
    expect(items).toHaveLength(1);
  });

  it.each([
    ['the longest name', { name: 'n'.repeat(253) }],
    ['a name that is none', { name: 'NOT/a name\0' }],
    ['no uid', { uid: undefined }],
  ])('about an object with %s is accepted', async (_, regarding) => {
    const one = recorder('i'.repeat(400));
    one.record({ ...fact(regarding), reason: 'R'.repeat(400), message: '😀\0"\u2028'.repeat(2_000) });
    await one.close(10_000);
    expect(one.counters).toMatchObject({ sent: 1, failed: 0 });
    const [event] = await events();
    expect(Buffer.byteLength(stringAt(event ?? {}, 'message') ?? '')).toBeLessThanOrEqual(1_024);
    expect(stringAt(objectAt(event ?? {}, 'metadata'), 'name')?.length).toBeLessThanOrEqual(253);
  });

  it('for a namespace that is missing or terminating is counted as failed and harms no other', async () => {
    await makeNamespace(`${namespace}-going`);
    await admin.call('DELETE', `/api/v1/namespaces/${namespace}-going`);
    const one = recorder();
    one.record(fact({ namespace: `${namespace}-missing` }));
    one.record(fact({ namespace: `${namespace}-going` }));
    one.record(fact());
    await one.close(10_000);
    expect(one.counters).toEqual({ sent: 1, aggregated: 0, dropped: 0, failed: 2, waiting: 0 });
  });
});
