import { pino } from 'pino';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { KubeClient } from '../../../src/kube/client.ts';
import { loadConnection } from '../../../src/kube/connection.ts';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import { Reflector } from '../../../src/kube/reflector.ts';
import { Store } from '../../../src/kube/store.ts';
import type { JsonObject, Resource } from '../../../src/kube/resource.ts';
import { backups, namespaces } from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { isolated } from '../../support/isolated.ts';
import { serviceAccountToken } from '../../support/service-account.ts';

const here = await isolated();
const client = new KubeClient(loadConnection({ kubeconfig: here.adminKubeconfig }));
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
});

afterAll(async () => {
  await client.close();
});

interface Running {
  readonly reflector: Reflector<string>;
  readonly store: Store<string>;
}

/** Follows one kind, by name and resourceVersion. */
function follow(
  resource: Resource,
  options: { using?: KubeClient; namespace?: string; selector?: string } = {},
): Running {
  const store = new Store<string>();
  const reflector = new Reflector<string>({
    client: options.using ?? client,
    resource,
    namespace: options.namespace,
    labelSelector: options.selector,
    key: (object) => stringAt(objectAt(object, 'metadata'), 'name'),
    project: (object) => stringAt(objectAt(object, 'metadata'), 'resourceVersion'),
    store,
    log: pino({ level: 'silent' }),
    adminRetryCapMs: 1_000,
  });
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  stops.push(async () => {
    stop.abort();
    await running;
  });
  return { reflector, store };
}

function crdOf(group: string): JsonObject {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `lateones.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'lateones', kind: 'LateOne' },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
}

describe('a reflector on a real server', () => {
  it('has what is there, and follows creation, change and deletion', async () => {
    const namespace = here.tenant('any');
    await here.objects.create(here.gen.backup({ namespace, nacuuid: 'first' }));
    const { reflector, store } = follow(backups, { namespace: here.oadpNamespace });
    await reflector.waitForSync({ timeoutMs: 10_000 });
    expect([...store.keys()]).toEqual(['first']);
    await eventually(() => {
      expect(reflector.state.phase).toBe('live');
    });
    await here.objects.create(here.gen.backup({ namespace, nacuuid: 'second' }));
    await eventually(() => {
      expect([...store.keys()]).toEqual(['first', 'second']);
    });
    const before = store.get('first');
    await here.objects.patch(
      backups,
      { namespace: here.oadpNamespace, name: 'first' },
      { metadata: { labels: { a: 'b' } } },
    );
    await eventually(() => {
      expect(store.get('first')).not.toBe(before);
    });
    await here.api.call('DELETE', `/apis/velero.io/v1/namespaces/${here.oadpNamespace}/backups/first`);
    await eventually(() => {
      expect([...store.keys()]).toEqual(['second']);
    });
  });

  it('loses an object that its selector no longer selects', async () => {
    const name = await here.createTenant('labelled', { [here.tenant('chosen')]: 'yes' });
    const { store } = follow(namespaces, { selector: here.tenant('chosen') });
    await eventually(() => {
      expect([...store.keys()]).toEqual([name]);
    });
    await here.objects.patch(namespaces, { name }, { metadata: { labels: { [here.tenant('chosen')]: null } } });
    await eventually(() => {
      expect(store.size).toBe(0);
    });
  });

  it('has more objects than fit on one page', async () => {
    const names = Array.from({ length: 230 }, (_, index) => `many-${index}`);
    const label = { many: 'yes' };
    await Promise.all(
      names.map((name) => {
        const backup = here.gen.backup({ namespace: here.tenant('any'), nacuuid: name });
        return here.objects.create({ ...backup, metadata: { ...objectAt(backup, 'metadata'), labels: label } });
      }),
    );
    const { reflector, store } = follow(backups, { namespace: here.oadpNamespace, selector: 'many=yes' });
    await reflector.waitForSync({ timeoutMs: 20_000 });
    expect([...store.keys()].toSorted()).toEqual(names.toSorted());
  });

  it('finds a CRD that is installed later, and says that it is missing until then', async () => {
    const group = `${here.tenant('late')}.example`;
    const kind: Resource = { group, version: 'v1', plural: 'lateones', kind: 'LateOne', namespaced: true };
    const { reflector, store } = follow(kind, { namespace: here.oadpNamespace });
    await eventually(() => {
      expect(reflector.state.phase).toBe('kindNotInstalled');
    });
    const crd = await here.objects.create(crdOf(group));
    try {
      await eventually(() => {
        expect(reflector.state.phase).toBe('live');
      });
      await here.api.call('POST', `/apis/${group}/v1/namespaces/${here.oadpNamespace}/lateones`, {
        body: { apiVersion: `${group}/v1`, kind: 'LateOne', metadata: { name: 'one' } },
      });
      await eventually(() => {
        expect([...store.keys()]).toEqual(['one']);
      });
    } finally {
      await here.objects.deleteObject(crd);
    }
  });

  it('finds a right that is granted later, and says that it is missing until then', async () => {
    const namespace = here.oadpNamespace;
    const metadata = { name: 'reader', namespace };
    await here.objects.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata });
    const token = await serviceAccountToken(here.api, metadata);
    const kubeconfig = await here.file('reader.kubeconfig', here.api.kubeconfigFor({ token, namespace }));
    const using = new KubeClient(loadConnection({ kubeconfig }));
    stops.push(() => using.close());
    const { reflector } = follow(backups, { using, namespace });
    await eventually(() => {
      expect(reflector.state.phase).toBe('forbidden');
    });
    const rbac = 'rbac.authorization.k8s.io';
    await here.objects.create({
      apiVersion: `${rbac}/v1`,
      kind: 'Role',
      metadata,
      rules: [{ apiGroups: ['velero.io'], resources: ['backups'], verbs: ['list', 'watch'] }],
    });
    await here.objects.create({
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: rbac, kind: 'Role', name: 'reader' },
      subjects: [{ kind: 'ServiceAccount', name: 'reader', namespace }],
    });
    await eventually(() => {
      expect(reflector.state.phase).toBe('live');
    });
  });
});
