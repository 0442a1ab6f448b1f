import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { isJsonObject, objectAt } from '../../../src/kube/json.ts';
import { syncRequests } from '../../../src/oadp/kinds.ts';
import { ApiError } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { codeBlocks, text } from '../../support/markdown.ts';
import { mainJob, untilTheEndOfTheFile, type Controller } from '../main-job/support/main-job.ts';
import { answerOf, ask, askAndWait, finalStatus, refusedStatus, syncRequest } from '../../support/sync-requests.ts';

/** What stands in the status of a request, in a tenant's namespace and in that of OADP. */

const job = await mainJob();
const { gen, objects, oadpNamespace } = job;
let gold: string;
let silver: string;
let controller: Controller;

beforeAll(async () => {
  gold = await job.createTenant('gold', { tier: 'gold' });
  silver = await job.createTenant('silver', { tier: 'silver' });
  await objects.create(gen.storageLocation());
  await objects.create(gen.ownedStorageLocation({ namespace: silver }));
  await objects.create(gen.nonAdminStorageLocation({ namespace: silver }));
  await objects.create(gen.backup({ namespace: gold }));
  await objects.create(gen.backup({ namespace: silver }));
  await objects.create(
    gen.backup({ namespace: gold, name: 'forged', spec: { storageLocation: `${silver}-bucket-1` } }),
  );
  controller = await job.controller([], {}, untilTheEndOfTheFile);
  await controller.firstPass();
}, 60_000);

describe('a request in the namespace of OADP', () => {
  it('is for all namespaces that backups claim, and tells of refused backups, too', async () => {
    expect(await askAndWait(objects, oadpNamespace)).toMatchObject({
      phase: 'Succeeded',
      namespaces: 2,
      counts: { seen: 3, present: 2, skipped: 1 },
      skipped: [{ namespace: gold, name: 'forged', reason: 'StorageLocationOwnerMismatch' }],
    });
  });

  it.each([
    ['labels', { matchLabels: { tier: 'silver' } }, { namespaces: 1, counts: { seen: 1, present: 1 }, skipped: [] }],
    [
      'expressions',
      { matchExpressions: [{ key: 'tier', operator: 'In', values: ['gold', 'platinum'] }] },
      { namespaces: 1, counts: { seen: 2, present: 1, skipped: 1 }, skipped: [{ name: 'forged' }] },
    ],
    ['what no namespace has', { matchLabels: { tier: 'lead' } }, { namespaces: 0, counts: { seen: 0 } }],
    ['nothing, which is all', {}, { namespaces: 2, counts: { seen: 3 } }],
  ])('may be for those that its selector selects: by %s', async (_, namespaceSelector, status) => {
    expect(await askAndWait(objects, oadpNamespace, { namespaceSelector })).toMatchObject({
      phase: 'Succeeded',
      ...status,
    });
  });

  it('from the command line, with a selector in the words of kubectl', async () => {
    const args = ['request', '-n', oadpNamespace, '--wait', '--namespace-selector', 'tier!=silver,tier', '-o', 'json'];
    const { exitCode, stdout, stderr } = await job.command(args, { KUBECONFIG: job.adminKubeconfig });
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(stdout)).toMatchObject({ status: { namespaces: 1, counts: { seen: 2 } } });
    const refused = await job.command(['request', '-n', oadpNamespace, '--namespace-selector', 'tier>1']);
    expect(refused).toMatchObject({ exitCode: 2, stdout: '' });
    expect(refused.stderr).toMatch(/^nab-sync: --namespace-selector: a request takes no < and >/);
  });

  it('whose selector holds what no label can have fails, and says so', async () => {
    const namespaceSelector = { matchLabels: { 'a,b': 'x' } };
    const answer = refusedStatus.parse(
      await answerOf(objects, oadpNamespace, await ask(objects, oadpNamespace, { namespaceSelector })),
    );
    expect(answer).toMatchObject({ phase: 'Failed', conditions: [{ reason: 'InvalidNamespaceSelector' }, {}] });
    expect(answer.counts).toBeUndefined();
  });
});

describe('a request in a tenant’s namespace', () => {
  it('says nothing of a backup that only claims to be his', async () => {
    const status = await askAndWait(objects, gold);
    expect(status).toMatchObject({ namespaces: 1, counts: { seen: 1, present: 1, skipped: 0 }, skipped: [] });
    expect(JSON.stringify(status)).not.toMatch(/forged/);
  });

  it('in a namespace without backups is answered with nothing', async () => {
    const empty = await job.createTenant('empty');
    expect(await askAndWait(objects, empty)).toMatchObject({ phase: 'Succeeded', namespaces: 1, counts: { seen: 0 } });
  });

  it('is answered once and for all: the API server refuses to change a final status or a spec', async () => {
    const name = await ask(objects, gold);
    const ref = { namespace: gold, name };
    const status = await answerOf(objects, gold, name);
    const refusal = { status: 422 };
    await expect(objects.setStatus(syncRequests, ref, { phase: 'Running' })).rejects.toMatchObject(refusal);
    await expect(objects.setStatus(syncRequests, ref, { counts: { seen: 9 } })).rejects.toMatchObject(refusal);
    const bare = { apiVersion: 'sync.oadp.openshift.io/v1alpha1', kind: syncRequests.kind };
    const path = `/apis/sync.oadp.openshift.io/v1alpha1/namespaces/${gold}/nonadminbackupsyncrequests/${name}`;
    const { metadata } = (await objects.get(syncRequests, ref)) ?? {};
    await expect(objects.api.call('PUT', `${path}/status`, { body: { ...bare, metadata } })).rejects.toThrow(ApiError);
    await expect(objects.patch(syncRequests, ref, { spec: { namespaceSelector: {} } })).rejects.toMatchObject(refusal);
    const after = await objects.get(syncRequests, ref);
    expect(after?.['status']).toEqual(status);
  });

  it.each([
    ['an operator without values', { matchExpressions: [{ key: 'a', operator: 'In' }] }],
    ['values without use', { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] }],
    ['an unknown operator', { matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1'] }] }],
    ['a value that no label can have', { matchLabels: { a: 'b,c=d' } }],
  ])('is not even made with %s', async (_, namespaceSelector) => {
    await expect(ask(objects, oadpNamespace, { namespaceSelector })).rejects.toMatchObject({ status: 422 });
  });
});

describe('what failed', () => {
  it('is told with reason and message, is carried on in the history, and is not hidden by what follows', async () => {
    const poor = await job.createTenant('poor');
    const quota = { namespace: poor, name: 'nabs' };
    const hard = { 'count/nonadminbackups.oadp.openshift.io': '0' };
    await objects.create({
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: quota,
      spec: { hard },
      status: { hard, used: hard },
    });
    await objects.create(gen.backup({ namespace: poor }));
    const first = await askAndWait(objects, poor);
    expect(first).toMatchObject({
      phase: 'Failed',
      counts: { seen: 1, failed: 1 },
      failed: [{ namespace: poor, name: 'daily', reason: 'QuotaDenied' }],
      history: { consecutiveFailures: 1, lastFailureTime: first.completionTime, failingSince: first.completionTime },
    });
    expect(first.failed[0]?.message).toContain('exceeded quota');
    const second = await askAndWait(objects, poor);
    expect(second.history).toMatchObject({ consecutiveFailures: 2, failingSince: first.completionTime });

    const resource = objects.kinds.find(({ plural }) => plural === 'resourcequotas');
    if (resource === undefined) throw new Error('no quotas here');
    await objects.delete(resource, quota);
    // The server's quota cache notices within moments; until then the request fails like the others.
    const good = await eventually(async () => {
      const status = await askAndWait(objects, poor);
      expect(status.phase).toBe('Succeeded');
      return status;
    }, 40_000);
    expect(good.history).toMatchObject({ consecutiveFailures: 0, lastSuccessTime: good.completionTime });
    expect(good.history.lastFailureMessage).toContain('QuotaDenied');
    expect(good.history.failingSince).toBeUndefined();
  });

  it('is still known after a restart', async () => {
    const poor = job.tenant('poor');
    const before = (await objects.list(syncRequests, { namespace: poor })).flatMap(({ status }) => {
      const { success, data } = finalStatus.safeParse(status);
      return success ? [data.history] : [];
    });
    const lastFailure = before
      .map(({ lastFailureTime }) => lastFailureTime ?? '')
      .sort()
      .at(-1);
    await controller.stop();
    const next = await job.controller();
    await next.firstPass();
    const { history } = await askAndWait(objects, poor);
    expect(history).toMatchObject({ consecutiveFailures: 0, lastFailureTime: lastFailure });
    expect(history.lastFailureMessage).toContain('QuotaDenied');
  });
});

it('the status that docs/sync-requests.md shows is one, to its last field', async () => {
  const namespace = await job.createTenant('shown');
  const example = codeBlocks(text('docs/sync-requests.md')).find(({ body }) => body.startsWith('phase: Partial'));
  const status = finalStatus.parse(parse(example?.body ?? ''));
  const request = { ...syncRequest(namespace), status };
  // The server would leave out a field that it does not know.
  expect((await objects.create(request))['status']).toEqual(status);
});

it('kubectl explain has a sentence for every field', async () => {
  const crd = await objects.api.call(
    'GET',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nonadminbackupsyncrequests.sync.oadp.openshift.io',
  );
  const [version] = Array.isArray(objectAt(crd, 'spec')['versions'])
    ? (objectAt(crd, 'spec')['versions'] as unknown[])
    : [];
  if (!isJsonObject(version)) throw new Error('no version');
  const silent = undescribed(objectAt(objectAt(version, 'schema'), 'openAPIV3Schema'), '');
  expect(silent).toEqual(['.metadata']);
});

/** Paths of the fields in a schema that say nothing of themselves. */
function undescribed(schema: unknown, path: string): string[] {
  if (!isJsonObject(schema)) return [];
  const fields = Object.entries(objectAt(schema, 'properties'));
  return [
    ...fields.flatMap(([name, field]) => {
      const here = `${path}.${name}`;
      const silent = isJsonObject(field) && field['description'] === undefined ? [here] : [];
      return [...silent, ...undescribed(field, here)];
    }),
    ...undescribed(schema['items'], `${path}[]`),
  ];
}
