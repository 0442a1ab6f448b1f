import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KubeClient } from '../../../src/kube/client.ts';
import { loadConnection } from '../../../src/kube/connection.ts';
import type { KubeError } from '../../../src/kube/errors.ts';
import { policyFor } from '../../../src/kube/errors.ts';
import { objectAt } from '../../../src/kube/json.ts';
import type { JsonObject, Resource } from '../../../src/kube/resource.ts';
import { backups, namespaces, nonAdminBackups } from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { isolated } from '../../support/isolated.ts';
import { startNamespaceDeletion } from '../../support/namespaces.ts';
import { serviceAccountToken } from '../../support/service-account.ts';
import { failure } from '../../unit/kube/failure.ts';

// What the errors are told apart by is not written down anywhere: the real server is the specification, and this keeps us to it.

const here = await isolated();
const admin = new KubeClient(loadConnection({ kubeconfig: here.adminKubeconfig }));
let team: string;
let nobody: KubeClient;

function nab(name: string): JsonObject {
  return {
    apiVersion: 'oadp.openshift.io/v1alpha1',
    kind: 'NonAdminBackup',
    metadata: { name },
    spec: { backupSpec: {} },
  };
}

function create(name: string, namespace = team, client = admin): Promise<KubeError> {
  return failure(client.create(nonAdminBackups, { namespace }, nab(name)));
}

/** A kubeconfig like the admin's with another token. */
async function kubeconfigOf(token: string): Promise<string> {
  return await here.file(`${token.slice(-8)}.kubeconfig`, here.api.kubeconfigFor({ token, namespace: team }));
}

beforeAll(async () => {
  team = await here.createTenant('answers');
  await here.objects.create({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'nobody', namespace: team },
  });
  const token = await serviceAccountToken(here.api, { namespace: team, name: 'nobody' });
  nobody = new KubeClient(loadConnection({ kubeconfig: await kubeconfigOf(token) }));
});

afterAll(async () => {
  await admin.close();
  await nobody.close();
});

describe('a 404 of the real server', () => {
  it('of an object is told from one of its namespace and one of its kind', async () => {
    expect(await failure(admin.get(nonAdminBackups, { namespace: team, name: 'x' }))).toMatchObject({
      code: 'NotFound',
    });
    expect(await failure(admin.get(namespaces, { name: here.tenant('never') }))).toMatchObject({ code: 'NotFound' });
    expect(await create('x', here.tenant('never'))).toMatchObject({ code: 'NamespaceNotFound' });
    const unknown: Resource = { ...backups, plural: 'restorations' };
    for (const kind of [unknown, { ...unknown, group: 'nobody.example' }, { ...backups, version: 'v9' }]) {
      expect(await failure(admin.listPage(kind))).toMatchObject({ code: 'KindNotInstalled' });
      expect(await failure(admin.get(kind, { namespace: team, name: 'x' }))).toMatchObject({
        code: 'KindNotInstalled',
      });
      expect(await failure(admin.create(kind, { namespace: team }, nab('x')))).toMatchObject({
        code: 'KindNotInstalled',
      });
    }
    const core: Resource = { group: '', version: 'v1', plural: 'thoughts', kind: 'Thought', namespaced: true };
    expect(await failure(admin.listPage(core))).toMatchObject({ code: 'KindNotInstalled' });
  });

  it('does not come for a list in a namespace that is not there: that is empty', async () => {
    expect((await admin.listPage(nonAdminBackups, { namespace: here.tenant('never') })).items).toEqual([]);
  });
});

describe('a 409 of the real server', () => {
  it('is AlreadyExists for a create and Conflict for an outdated resourceVersion', async () => {
    const made = await admin.create(nonAdminBackups, { namespace: team }, nab('twice'));
    expect(await create('twice')).toMatchObject({ code: 'AlreadyExists' });
    const ref = { namespace: team, name: 'twice', subresource: 'status' } as const;
    const outdated = { ...objectAt(made, 'metadata'), resourceVersion: '1' };
    const written = { ...made, metadata: outdated, status: { phase: 'Created' } };
    expect(await failure(admin.update(nonAdminBackups, ref, written))).toMatchObject({ code: 'Conflict' });
    const patch = { metadata: { resourceVersion: '1' }, status: { phase: 'Created' } };
    expect(await failure(admin.patch(nonAdminBackups, ref, patch))).toMatchObject({ code: 'Conflict' });
  });
});

describe('a denial of the real server', () => {
  it('comes from RBAC: an admin is needed', async () => {
    const refusals = [
      await create('x', team, nobody),
      await failure(nobody.get(nonAdminBackups, { namespace: team, name: 'x' })),
      await failure(nobody.listPage(nonAdminBackups)),
      await failure(nobody.watch(nonAdminBackups, { resourceVersion: '1', timeoutSeconds: 5 }).next()),
      await failure(nobody.patch(nonAdminBackups, { namespace: team, name: 'x', subresource: 'status' }, {})),
    ];
    for (const error of refusals) {
      expect(error).toMatchObject({ code: 'Forbidden', deniedBy: 'authorization' });
      expect(policyFor(error)).toBe('needsAdmin');
    }
    expect(refusals[0]?.message).toContain(
      `create nonadminbackups.oadp.openshift.io in namespace ${team}: forbidden: `,
    );
  });

  it('comes from a quota: the namespace is left alone', async () => {
    const full = await here.createTenant('full');
    const hard = { 'count/nonadminbackups.oadp.openshift.io': '0' };
    await here.objects.create({
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'none', namespace: full },
      spec: { hard },
      status: { hard, used: hard },
    });
    let tries = 0;
    // The first ones may still come before the server knows of the quota.
    const error = await eventually(() => {
      tries += 1;
      return create(`x${tries}`, full);
    });
    expect(error).toMatchObject({ code: 'Forbidden', deniedBy: 'admission' });
    expect(policyFor(error)).toBe('stopNamespace');
  });

  it('comes from a policy, with 422 as with 403: the namespace is left alone', async () => {
    const ruled = await here.createTenant('ruled', { [here.tenant('ruled')]: 'yes' });
    const name = here.tenant('policy');
    const group = 'admissionregistration.k8s.io/v1';
    const policy = await here.objects.create({
      apiVersion: group,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name },
      spec: {
        matchConstraints: {
          namespaceSelector: { matchLabels: { [ruled]: 'yes' } },
          resourceRules: [
            {
              apiGroups: ['oadp.openshift.io'],
              apiVersions: ['*'],
              operations: ['CREATE'],
              resources: ['nonadminbackups'],
            },
          ],
        },
        validations: [
          { expression: "object.metadata.name != 'invalid'", message: 'not this one' },
          { expression: "object.metadata.name != 'forbidden'", message: 'not this one', reason: 'Forbidden' },
        ],
      },
    });
    const binding = await here.objects.create({
      apiVersion: group,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name },
      spec: { policyName: name, validationActions: ['Deny'] },
    });
    try {
      // It takes the server a moment to put a policy into force.
      await eventually(async () => {
        expect(await create('invalid', ruled)).toMatchObject({ code: 'Invalid', status: 422, deniedBy: 'admission' });
        await here.objects.api.request(
          'DELETE',
          `/apis/oadp.openshift.io/v1alpha1/namespaces/${ruled}/nonadminbackups/invalid`,
        );
      }, 20_000);
      const forbidden = await create('forbidden', ruled);
      expect(forbidden).toMatchObject({ code: 'Forbidden', status: 403, deniedBy: 'admission' });
      expect(policyFor(forbidden)).toBe('stopNamespace');
    } finally {
      await here.objects.deleteObject(binding);
      await here.objects.deleteObject(policy);
    }
  });

  it('comes from a namespace that is going away: it is left alone', async () => {
    const leaving = await here.createTenant('leaving');
    await startNamespaceDeletion(here.objects, leaving);
    const error = await eventually(async () => {
      const refusal = await create('x', leaving);
      expect(refusal.code).toBe('NamespaceTerminating');
      return refusal;
    });
    expect(policyFor(error)).toBe('stopNamespace');
  });

  it('comes from the schema: this object is given up, the next one may pass', async () => {
    const wrong = { ...nab('wrong'), spec: { backupSpec: { includedNamespaces: 5 } } };
    const refusals = [
      await failure(admin.create(nonAdminBackups, { namespace: team }, wrong)),
      await create('Not_A_Name'),
    ];
    for (const error of refusals) {
      expect(error).toMatchObject({ code: 'Invalid', deniedBy: undefined });
      expect(error.causes[0]?.field).toBeTypeOf('string');
      expect(policyFor(error)).toBe('giveUpThisPass');
    }
  });
});

describe('what is too large for the real server', () => {
  it.each([
    ['for etcd', 1.7],
    ['for the connection to etcd', 2.3],
    ['for the API server', 3.5],
  ])('%s is too large for good', async (_, mebibytes) => {
    const body = here.gen.backup({ namespace: team, nacuuid: 'large' });
    const large = { ...body, spec: { includedNamespaces: ['x'.repeat(mebibytes * 1024 * 1024)] } };
    const error = await failure(admin.create(backups, { namespace: here.oadpNamespace }, large, { timeoutMs: 20_000 }));
    expect(error.code).toBe('TooLarge');
    expect(policyFor(error)).toBe('giveUpThisPass');
  });
});

describe('a watch of the real server', () => {
  it('from a version that it has forgotten has expired', async () => {
    const watch = admin.watch(nonAdminBackups, { namespace: team, resourceVersion: '1', timeoutSeconds: 5 });
    expect((await failure(watch.next())).code).toBe('Gone');
  });

  it('is opened, tells of what happens and ends in time', async () => {
    const { resourceVersion } = await admin.listPage(nonAdminBackups, { namespace: team });
    let opened = 0;
    const seen: string[] = [];
    const watch = admin.watch(nonAdminBackups, {
      namespace: team,
      resourceVersion,
      timeoutSeconds: 3,
      onOpen: () => {
        opened += 1;
        void admin.create(nonAdminBackups, { namespace: team }, nab('watched'));
      },
    });
    for await (const event of watch) {
      if (event.type !== 'BOOKMARK') seen.push(`${event.type} ${String(objectAt(event.object, 'metadata')['name'])}`);
    }
    expect({ opened, seen }).toEqual({ opened: 1, seen: ['ADDED watched'] });
  });
});

describe('a connection to the real server', () => {
  it('with the wrong token is refused, and with the wrong CA not made', async () => {
    const stranger = new KubeClient(loadConnection({ kubeconfig: await kubeconfigOf('not-a-token') }));
    expect((await failure(stranger.listPage(namespaces))).code).toBe('Unauthorized');
    await stranger.close();

    const connection = loadConnection({ kubeconfig: here.adminKubeconfig });
    const { headers } = await connection.credentials();
    // Without the CA of the kubeconfig those of the system count, and they do not know this server.
    const distrustful = new KubeClient({
      ...pick(connection),
      credentials: () => Promise.resolve({ headers, tls: {} }),
      reload: (refused) => Promise.resolve(refused),
    });
    const error = await failure(distrustful.listPage(namespaces));
    expect(error.code).toBe('Unreachable');
    expect(error.message).toMatch(/ \(checked against the CA in kubeconfig .+\)$/);
    await distrustful.close();
  });
});

function pick({ server, inCluster, namespace, caSource, proxyUrl }: ReturnType<typeof loadConnection>) {
  return { server, inCluster, namespace, caSource, proxyUrl };
}
