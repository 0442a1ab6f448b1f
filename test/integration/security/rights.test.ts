import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { rights } from '../../../src/controller/rights.ts';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import { resourcePath } from '../../../src/kube/resource.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { ApiClient } from '../../support/api-client.ts';
import { isolated } from '../../support/isolated.ts';
import { serviceAccountToken } from '../../support/service-account.ts';
import { grantedLines, install, rightLine, type Installation } from './support/installation.ts';

/** What the ServiceAccount may do on a real server, and that this is what the program needs. */

const here = await isolated();
const { objects } = here;
let nabSync: Installation;
let asNabSync: ApiClient;
/** A tenant with a NAB of his own making, and what a tenant has besides. */
let tenant: string;

beforeAll(async () => {
  nabSync = await install(here, 'adp');
  asNabSync = await ApiClient.fromKubeconfig(await readFile(nabSync.kubeconfig, 'utf8'));
  tenant = await here.createTenant('team');
  const { gen } = nabSync;
  await Promise.all(
    [
      gen.storageLocation(),
      gen.backup({ namespace: tenant, nacuuid: 'backup-1' }),
      gen.deleteRequest({ name: 'request-1' }),
      gen.dataProtectionApplication(),
      gen.nonAdminStorageLocation({ namespace: tenant }),
      gen.nonAdminBackup({ namespace: tenant, labels: { team: 'blue' }, spec: { backupSpec: { ttl: '1h0m0s' } } }),
      gen.nonAdminBackup({ namespace: nabSync.oadpNamespace, name: 'in-oadp' }),
      ...[tenant, nabSync.oadpNamespace].map((namespace) => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'credentials', namespace },
        stringData: { password: 'hunter2' },
      })),
      {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'of-somebody-else', namespace: nabSync.oadpNamespace },
        spec: {},
      },
      ...['nab-sync', 'of-somebody-else'].map((name) => ({
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name, namespace: tenant },
        spec: {},
      })),
    ].map((object) => objects.create(object)),
  );
});

afterAll(async () => {
  await asNabSync.close();
});

describe('manifests/base', () => {
  it('grants exactly the rights that the program has a use for', () => {
    expect(grantedLines(nabSync.manifests).sort()).toEqual(rights.map(rightLine).sort());
  });

  it('grants no wildcard, no secret, no change of a NAB outside of its status, and deleting of requests alone', () => {
    const lines = grantedLines(nabSync.manifests);
    expect(lines.filter((line) => line.includes('*'))).toEqual([]);
    expect(lines.filter((line) => /secrets|pods/.test(line))).toEqual([]);
    expect(lines.filter((line) => /^\w+ delete/.test(line))).toEqual([
      'cluster delete nonadminbackupsyncrequests.sync.oadp.openshift.io',
    ]);
    expect(lines.filter((line) => /^\w+ (update|patch|escalate|bind|impersonate)\b/.test(line)).sort()).toEqual([
      'cluster patch events',
      'cluster update nonadminbackups.oadp.openshift.io/status',
      'cluster update nonadminbackupsyncrequests.sync.oadp.openshift.io/status',
      'oadp update configmaps nab-sync-status',
      'oadp update leases.coordination.k8s.io nab-sync',
    ]);
  });

  it('says of each right what it is for', () => {
    for (const { whatFor } of rights) expect(whatFor).toMatch(/\w/);
    expect(new Set(rights.map(rightLine)).size).toBe(rights.length);
  });
});

const rulesReview = z.object({
  status: z.object({
    incomplete: z.boolean(),
    resourceRules: z.array(
      z.object({
        verbs: z.array(z.string()),
        apiGroups: z.array(z.string()),
        resources: z.array(z.string()),
        resourceNames: z.array(z.string()).optional(),
      }),
    ),
  }),
});

/** What a ServiceAccount may do in a namespace by its own account. */
async function rulesOf(account: ApiClient, namespace: string): Promise<string[]> {
  const answer = await account.call('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
    body: { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } },
  });
  const { incomplete, resourceRules } = rulesReview.parse(answer).status;
  expect(incomplete).toBe(false);
  return grantedLines([{ kind: 'Role', rules: resourceRules }]).map((line) => line.replace(/^oadp /, ''));
}

const inScope = (...scopes: string[]): string[] =>
  rights
    .filter(({ scope }) => scopes.includes(scope))
    .map((right) => rightLine(right).replace(/^\w+ /, ''))
    .sort();

describe('what the API server says of the ServiceAccount’s rights', () => {
  /** A ServiceAccount that nobody gave anything: what it may do, all may. */
  let bare: ApiClient;

  beforeAll(async () => {
    const account = { namespace: nabSync.oadpNamespace, name: 'bare' };
    await objects.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: account });
    bare = await here.api.withToken(await serviceAccountToken(here.api, account));
  });

  afterAll(async () => {
    await bare.close();
  });

  it.each([
    ['the OADP namespace they are all on the list', () => nabSync.oadpNamespace, ['cluster', 'oadp']],
    ['a tenant’s namespace they are those of the cluster role', () => tenant, ['cluster']],
    ['kube-system they are those of the cluster role', () => 'kube-system', ['cluster']],
  ])('in %s', async (_, namespace, scopes) => {
    const everybodys = new Set(await rulesOf(bare, namespace()));
    const own = (await rulesOf(asNabSync, namespace())).filter((line) => !everybodys.has(line));
    expect(own.sort()).toEqual(inScope(...scopes));
  });

  const review = z.object({ status: z.object({ allowed: z.boolean() }) });
  const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];

  async function isAllowed(name: string, resourceAttributes: JsonObject): Promise<boolean> {
    const { namespace } = nabSync.account;
    const user = `system:serviceaccount:${namespace}:${name}`;
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
    const answer = await here.api.call('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: { user, groups, resourceAttributes },
      },
    });
    return review.parse(answer).status.allowed;
  }

  it('of all verbs on all resources of the server, in a tenant’s namespace and cluster-wide, no other is allowed', async () => {
    const attributes = objects.kinds.flatMap((kind) =>
      [undefined, ...kind.subresources].flatMap((subresource) =>
        [...verbs, 'impersonate', 'escalate', 'bind', 'approve'].map((verb) => ({
          verb,
          group: kind.group,
          resource: kind.plural,
          ...(subresource === undefined ? {} : { subresource }),
          ...(kind.namespaced ? { namespace: tenant } : {}),
        })),
      ),
    );
    expect(attributes.length).toBeGreaterThan(500);
    const allowed = await mapAtOnce(12, attributes, async (attempt) => {
      if (!(await isAllowed(nabSync.account.name, attempt)) || (await isAllowed('bare', attempt))) return [];
      const { verb, group, resource, subresource } = attempt;
      const full = group === '' ? resource : `${resource}.${group}`;
      return [`${verb} ${full}${subresource === undefined ? '' : `/${subresource}`}`];
    });
    expect(allowed.flat().sort()).toEqual(inScope('cluster'));
  }, 60_000);
});

/** As `Promise.all` over `map`, a bounded number at a time. */
async function mapAtOnce<T, R>(atOnce: number, items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const [index, item] of queue) results[index] = await work(item);
    }),
  );
  return results;
}

const oadpApi = '/apis/oadp.openshift.io/v1alpha1';
const mergePatch = 'application/merge-patch+json';

describe('what happens when the ServiceAccount tries', () => {
  /** The verb is spelled out, so that a failing test says what was let through. */
  const attempts: readonly (readonly [string, () => { method: string; path: string; body?: JsonObject }])[] = [
    ['deletes a NAB', () => ({ method: 'DELETE', path: nab() })],
    [
      'deletes all NABs of a namespace',
      () => ({ method: 'DELETE', path: `${oadpApi}/namespaces/${tenant}/nonadminbackups` }),
    ],
    ['patches the spec of a NAB', () => ({ method: 'PATCH', path: nab(), body: { spec: { deleteBackup: true } } })],
    [
      'patches the labels of a NAB',
      () => ({ method: 'PATCH', path: nab(), body: { metadata: { labels: { a: 'b' } } } }),
    ],
    [
      'patches the finalizers of a NAB',
      () => ({ method: 'PATCH', path: nab(), body: { metadata: { finalizers: [] } } }),
    ],
    ['replaces a NAB', () => ({ method: 'PUT', path: nab(), body: nabBody() })],
    ['patches the status of a NAB', () => ({ method: 'PATCH', path: `${nab()}/status`, body: { status: {} } })],
    ['deletes a NABSL', () => ({ method: 'DELETE', path: nabsl() })],
    ['patches a NABSL', () => ({ method: 'PATCH', path: nabsl(), body: { metadata: { labels: { a: 'b' } } } })],
    ['patches the status of a NABSL', () => ({ method: 'PATCH', path: `${nabsl()}/status`, body: { status: {} } })],
    [
      'creates a NABSL',
      () => ({
        method: 'POST',
        path: `${oadpApi}/namespaces/${tenant}/nonadminbackupstoragelocations`,
        body: {
          apiVersion: 'oadp.openshift.io/v1alpha1',
          kind: 'NonAdminBackupStorageLocation',
          metadata: { name: 'x' },
        },
      }),
    ],
    [
      'creates a NonAdminRestore',
      () => ({ method: 'POST', path: `${oadpApi}/namespaces/${tenant}/nonadminrestores`, body: {} }),
    ],
    [
      'makes a request for a sync',
      () => ({ method: 'POST', path: resourcePath(kinds.syncRequests, { namespace: tenant }), body: syncRequest() }),
    ],
    [
      'changes a request for a sync',
      () => ({
        method: 'PATCH',
        path: resourcePath(kinds.syncRequests, { namespace: tenant, name: 'request' }),
        body: { metadata: { labels: { a: 'b' } } },
      }),
    ],
    [
      'deletes all requests of a namespace',
      () => ({ method: 'DELETE', path: resourcePath(kinds.syncRequests, { namespace: tenant }) }),
    ],
    ['reads a secret of a tenant', () => ({ method: 'GET', path: `/api/v1/namespaces/${tenant}/secrets/credentials` })],
    ['lists all secrets', () => ({ method: 'GET', path: '/api/v1/secrets' })],
    [
      'reads a secret beside OADP',
      () => ({ method: 'GET', path: `/api/v1/namespaces/${nabSync.oadpNamespace}/secrets/credentials` }),
    ],
    [
      'lists the secrets beside OADP',
      () => ({ method: 'GET', path: `/api/v1/namespaces/${nabSync.oadpNamespace}/secrets` }),
    ],
    ['reads a config map', () => ({ method: 'GET', path: `/api/v1/namespaces/${tenant}/configmaps` })],
    ['lists the config maps beside OADP', () => ({ method: 'GET', path: configMaps() })],
    ['reads another config map beside OADP', () => ({ method: 'GET', path: `${configMaps()}/kube-root-ca.crt` })],
    [
      'replaces another config map beside OADP',
      () => ({ method: 'PUT', path: `${configMaps()}/kube-root-ca.crt`, body: {} }),
    ],
    ['deletes its own config map', () => ({ method: 'DELETE', path: `${configMaps()}/nab-sync-status` })],
    ['creates a pod', () => ({ method: 'POST', path: `/api/v1/namespaces/${tenant}/pods`, body: {} })],
    ['deletes a namespace', () => ({ method: 'DELETE', path: `/api/v1/namespaces/${tenant}` })],
    [
      'labels a namespace',
      () => ({ method: 'PATCH', path: `/api/v1/namespaces/${tenant}`, body: { metadata: { labels: { a: 'b' } } } }),
    ],
    [
      'creates a namespace',
      () => ({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: `${tenant}-2` } } }),
    ],
    ['finalizes a namespace', () => ({ method: 'PUT', path: `/api/v1/namespaces/${tenant}/finalize`, body: {} })],
    [
      'creates a Backup',
      () => ({ method: 'POST', path: velero('backups'), body: nabSync.gen.backup({ namespace: tenant }) }),
    ],
    [
      'patches a Backup',
      () => ({ method: 'PATCH', path: `${velero('backups')}/backup-1`, body: { metadata: { labels: { a: 'b' } } } }),
    ],
    ['deletes a Backup', () => ({ method: 'DELETE', path: `${velero('backups')}/backup-1` })],
    ['lists the Backups of all namespaces', () => ({ method: 'GET', path: '/apis/velero.io/v1/backups' })],
    [
      'patches a storage location',
      () => ({
        method: 'PATCH',
        path: `${velero('backupstoragelocations')}/default`,
        body: { spec: { default: false } },
      }),
    ],
    ['reads a single storage location', () => ({ method: 'GET', path: `${velero('backupstoragelocations')}/default` })],
    [
      'requests the deletion of a backup',
      () => ({ method: 'POST', path: velero('deletebackuprequests'), body: nabSync.gen.deleteRequest({ name: 'x' }) }),
    ],
    [
      'takes a request for a deletion away',
      () => ({ method: 'DELETE', path: `${velero('deletebackuprequests')}/request-1` }),
    ],
    ['creates a Restore', () => ({ method: 'POST', path: velero('restores'), body: {} })],
    ['asks for a download of a backup', () => ({ method: 'POST', path: velero('downloadrequests'), body: {} })],
    [
      'patches the DPA',
      () => ({
        method: 'PATCH',
        path: `${oadpApi}/namespaces/${nabSync.oadpNamespace}/dataprotectionapplications/dpa`,
        body: { spec: {} },
      }),
    ],
    [
      'takes another one’s Lease',
      () => ({ method: 'PATCH', path: lease(nabSync.oadpNamespace, 'of-somebody-else'), body: { spec: {} } }),
    ],
    ['reads another one’s Lease', () => ({ method: 'GET', path: lease(nabSync.oadpNamespace, 'of-somebody-else') })],
    ['reads a Lease in another namespace', () => ({ method: 'GET', path: lease(tenant, 'nab-sync') })],
    ['deletes its own Lease', () => ({ method: 'DELETE', path: lease(nabSync.oadpNamespace, 'nab-sync') })],
    ['reads events', () => ({ method: 'GET', path: `/api/v1/namespaces/${tenant}/events` })],
    ['deletes events', () => ({ method: 'DELETE', path: `/api/v1/namespaces/${tenant}/events` })],
    [
      'grants itself more',
      () => ({
        method: 'PATCH',
        path: `/apis/rbac.authorization.k8s.io/v1/clusterroles/${nabSync.account.name}`,
        body: { rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] },
      }),
    ],
    [
      'binds itself to cluster-admin',
      () => ({
        method: 'POST',
        path: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
        body: {
          metadata: { name: 'x' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
          subjects: [],
        },
      }),
    ],
    [
      'mints a token',
      () => ({
        method: 'POST',
        path: `/api/v1/namespaces/${nabSync.oadpNamespace}/serviceaccounts/${nabSync.account.name}/token`,
        body: { spec: {} },
      }),
    ],
    [
      'installs a webhook',
      () => ({
        method: 'POST',
        path: '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
        body: { metadata: { name: 'x' }, webhooks: [] },
      }),
    ],
  ];
  const syncRequest = (): JsonObject => ({
    apiVersion: 'sync.oadp.openshift.io/v1alpha1',
    kind: 'NonAdminBackupSyncRequest',
    metadata: { generateName: 'request-' },
  });
  const nab = (): string => `${oadpApi}/namespaces/${tenant}/nonadminbackups/daily`;
  const nabsl = (): string => `${oadpApi}/namespaces/${tenant}/nonadminbackupstoragelocations/bucket`;
  const nabBody = (): JsonObject => nabSync.gen.nonAdminBackup({ namespace: tenant, spec: { deleteBackup: true } });
  const configMaps = (): string => `/api/v1/namespaces/${nabSync.oadpNamespace}/configmaps`;
  const velero = (plural: string): string => `/apis/velero.io/v1/namespaces/${nabSync.oadpNamespace}/${plural}`;
  const lease = (namespace: string, name: string): string =>
    `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`;

  it.each(attempts)('it %s: 403', async (_, attempt) => {
    const before = await everything();
    const { method, path, body } = attempt();
    const contentType = method === 'PATCH' ? mergePatch : 'application/json';
    const { status } = await asNabSync.request(method, path, { contentType, ...(body === undefined ? {} : { body }) });
    expect(status).toBe(403);
    expect(await everything()).toEqual(before);
  });

  /** The versions of what the tenant and the OADP namespace have: equal means that nothing was changed. */
  async function everything(): Promise<unknown> {
    const namespaces = [tenant, nabSync.oadpNamespace];
    const kept = [kinds.nonAdminBackups, kinds.nonAdminBackupStorageLocations, kinds.backups];
    const found = await Promise.all(
      namespaces.flatMap((namespace) => kept.map((kind) => objects.list(kind, { namespace }))),
    );
    return found.flat().map((object) => objectAt(object, 'metadata')['resourceVersion']);
  }

  it('it has the right to update the status of a NAB, but nothing else comes along: spec and metadata stay', async () => {
    const ref = { namespace: tenant, name: 'daily' };
    const before = (await objects.get(kinds.nonAdminBackups, ref)) ?? {};
    const body = {
      ...before,
      metadata: {
        ...objectAt(before, 'metadata'),
        labels: { team: 'red', 'openshift.io/oadp-nab-synced-from-nacuuid': 'forged' },
        annotations: { forged: 'yes' },
        finalizers: ['forged/finalizer'],
        ownerReferences: [{ apiVersion: 'v1', kind: 'Secret', name: 'credentials', uid: 'forged' }],
      },
      spec: { backupSpec: {}, deleteBackup: true },
      status: { phase: 'BackingOff' },
    };
    const path = resourcePath(kinds.nonAdminBackups, { ...ref, subresource: 'status' });
    const { status } = await asNabSync.request('PUT', path, { body });
    expect(status).toBe(200);
    const after = (await objects.get(kinds.nonAdminBackups, ref)) ?? {};
    expect(after['spec']).toEqual(before['spec']);
    const kept = ['labels', 'annotations', 'finalizers', 'ownerReferences', 'uid', 'creationTimestamp', 'generation'];
    for (const field of kept) expect(objectAt(after, 'metadata')[field]).toEqual(objectAt(before, 'metadata')[field]);
    expect(stringAt(objectAt(after, 'status'), 'phase')).toBe('BackingOff');
  });
});
