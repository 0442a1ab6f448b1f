import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { z } from 'zod';
import { objectAt, stringAt } from '../../src/kube/json.ts';
import type { JsonObject } from '../../src/kube/resource.ts';
import { ApiClient } from '../support/api-client.ts';
import { isolated } from '../support/isolated.ts';
import { installCrds } from '../support/control-plane/install-crds.ts';
import { loadMonitoringCrds } from '../support/control-plane/crd-files.ts';
import { overlayNames, renderManifests, renderOverlay } from '../support/manifests.ts';

const here = await isolated();
const { kubectl } = here;
const rendered = await renderManifests({ kubectl, namespace: here.oadpNamespace });

const role = z.object({
  metadata: z.object({ name: z.string() }),
  rules: z.array(
    z.object({
      apiGroups: z.array(z.string()),
      resources: z.array(z.string()),
      resourceNames: z.array(z.string()).optional(),
      verbs: z.array(z.string()),
    }),
  ),
});

function ofKind(kind: string, objects: readonly JsonObject[] = rendered): JsonObject[] {
  return objects.filter((object) => object['kind'] === kind);
}

function only(kind: string, objects: readonly JsonObject[] = rendered): JsonObject {
  const [found, ...more] = ofKind(kind, objects);
  if (found === undefined || more.length > 0) throw new Error(`expected one ${kind}`);
  return found;
}

/** The one that is bound to nab-sync; the others are added to Kubernetes' own roles. */
function ownClusterRole(objects: readonly JsonObject[] = rendered): JsonObject {
  const [found, ...more] = ofKind('ClusterRole', objects).filter((object) => aggregatedTo(object).length === 0);
  if (found === undefined || more.length > 0) throw new Error('expected one ClusterRole for nab-sync');
  return found;
}

/** Kubernetes' own roles that get what the role grants. */
function aggregatedTo(object: JsonObject): string[] {
  return Object.keys(objectAt(objectAt(object, 'metadata'), 'labels')).flatMap(
    (label) => /^rbac\.authorization\.k8s\.io\/aggregate-to-(.*)$/.exec(label)?.[1] ?? [],
  );
}

const nameOf = (object: JsonObject): string => stringAt(objectAt(object, 'metadata'), 'name') ?? '';

describe('rights', () => {
  const rules = [only('Role'), ownClusterRole()].flatMap((object) => role.parse(object).rules);

  it('include deleting for one kind alone, in any role: that of the requests that nab-sync answers', () => {
    expect(rules.length).toBeGreaterThan(0);
    const deleting = rules.filter(({ verbs }) => verbs.some((verb) => verb.startsWith('delete')));
    expect(deleting).toHaveLength(1);
    expect(deleting).toMatchObject([
      {
        apiGroups: ['sync.oadp.openshift.io'],
        resources: ['nonadminbackupsyncrequests'],
        verbs: ['list', 'watch', 'delete'],
      },
    ]);
  });

  it('name each group, kind and verb: no wildcard', () => {
    for (const { apiGroups, resources, verbs } of rules) {
      expect([...apiGroups, ...resources, ...verbs]).not.toContain('*');
    }
  });

  it("never change a NAB or anything else of a tenant's: only statuses, and by name what is nab-sync's own", () => {
    const changing = rules.filter(({ verbs }) => verbs.some((verb) => ['update', 'patch'].includes(verb)));
    const what = changing.map(({ resources, resourceNames = [] }) => [...resources, ...resourceNames].join(' '));
    expect(what.sort()).toEqual([
      'configmaps nab-sync-status',
      'events',
      'leases nab-sync',
      'nonadminbackups/status',
      'nonadminbackupsyncrequests/status',
    ]);
  });

  it('in the namespaces of tenants create NABs and events only', () => {
    const creating = role.parse(ownClusterRole()).rules.filter(({ verbs }) => verbs.includes('create'));
    expect(creating.flatMap(({ resources }) => resources).sort()).toEqual(['events', 'nonadminbackups']);
  });
});

describe('what is added to the roles of tenants', () => {
  it('is that admins and editors of a namespace may ask for a sync and read, and viewers read', () => {
    const granted = ofKind('ClusterRole')
      .filter((object) => aggregatedTo(object).length > 0)
      .map((object) => ({ to: aggregatedTo(object).sort(), rules: role.parse(object).rules }));
    const requests = { apiGroups: ['sync.oadp.openshift.io'], resources: ['nonadminbackupsyncrequests'] };
    expect(granted).toMatchObject([
      { to: ['admin', 'edit'], rules: [{ ...requests, verbs: ['get', 'list', 'watch', 'create', 'delete'] }] },
      { to: ['view'], rules: [{ ...requests, verbs: ['get', 'list', 'watch'] }] },
    ]);
  });
});

describe('the base', () => {
  it('follows the namespace of an overlay everywhere, also in what the cluster-wide binding names', () => {
    for (const kind of ['ServiceAccount', 'Role', 'RoleBinding', 'Deployment']) {
      expect(objectAt(only(kind), 'metadata')['namespace']).toBe(here.oadpNamespace);
    }
    for (const kind of ['RoleBinding', 'ClusterRoleBinding']) {
      expect(only(kind)['subjects']).toEqual([
        { kind: 'ServiceAccount', name: 'nab-sync', namespace: here.oadpNamespace },
      ]);
    }
  });

  it('lets its pods talk to name resolution and the API server, be asked for metrics, and nothing else', () => {
    const { spec } = only('NetworkPolicy');
    expect(spec).toMatchObject({
      podSelector: { matchLabels: { 'app.kubernetes.io/name': 'nab-sync' } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [{ namespaceSelector: {} }], ports: [{ port: 'metrics' }] }],
      egress: [
        { ports: [{ port: 53 }, { port: 53 }, { port: 5353 }, { port: 5353 }] },
        { ports: [{ port: 443 }, { port: 6443 }] },
      ],
    });
  });

  it("passes the strictest of Kubernetes' pod security standards", async () => {
    const namespace = await here.createTenant('restricted', { 'pod-security.kubernetes.io/enforce': 'restricted' });
    const template = objectAt(objectAt(only('Deployment'), 'spec'), 'template');
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'nab-sync', namespace }, spec: template['spec'] };
    await expect(here.objects.create(pod)).resolves.toMatchObject({ kind: 'Pod' });
    const lax = { ...pod, metadata: { name: 'lax', namespace }, spec: { containers: [{ name: 'a', image: 'a' }] } };
    await expect(here.objects.create(lax)).rejects.toMatchObject({ status: 403 });
  });
});

describe.each([
  ['job', 'Job', (object: JsonObject) => objectAt(object, 'spec')],
  ['cronjob', 'CronJob', (object: JsonObject) => objectAt(objectAt(objectAt(object, 'spec'), 'jobTemplate'), 'spec')],
] as const)('one pass as overlay %s', (overlay, kind, jobSpecOf) => {
  let objects: JsonObject[];
  let spec: JsonObject;

  beforeAll(async () => {
    objects = await renderOverlay(kubectl, overlay, here.oadpNamespace);
    spec = jobSpecOf(only(kind, objects));
  });

  it('is in place of the controller, with all of its rights', () => {
    for (const absent of ['Deployment', 'Service']) expect(ofKind(absent, objects)).toEqual([]);
    for (const present of ['Role', 'RoleBinding', 'ClusterRoleBinding', 'NetworkPolicy', 'CustomResourceDefinition']) {
      expect(ofKind(present, objects)).toHaveLength(1);
    }
  });

  it('is tried again a few times, given up in the end, not tried again where that is in vain, and removed', () => {
    expect(spec).toMatchObject({
      backoffLimit: 3,
      activeDeadlineSeconds: 900,
      ttlSecondsAfterFinished: z.int().positive().parse(spec['ttlSecondsAfterFinished']),
      podFailurePolicy: { rules: [{ action: 'FailJob', onExitCodes: { values: [2] } }, { action: 'Ignore' }] },
    });
    if (kind === 'CronJob') {
      expect(only(kind, objects)['spec']).toMatchObject({
        concurrencyPolicy: 'Forbid',
        suspend: false,
        startingDeadlineSeconds: 600,
        successfulJobsHistoryLimit: 1,
        failedJobsHistoryLimit: 3,
      });
    }
  });

  it("passes the strictest of Kubernetes' pod security standards, and runs once", async () => {
    const namespace = await here.createTenant(overlay, { 'pod-security.kubernetes.io/enforce': 'restricted' });
    const podSpec = objectAt(objectAt(spec, 'template'), 'spec');
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'nab-sync', namespace }, spec: podSpec };
    await expect(here.objects.create(pod)).resolves.toMatchObject({ kind: 'Pod' });
    expect(podSpec).toMatchObject({
      restartPolicy: 'Never',
      containers: [
        {
          command: ['node', '/app/nab-sync.mjs', 'once', '--output', 'json'],
          terminationMessagePath: '/dev/termination-log',
        },
      ],
    });
  });
});

describe('installed on a server', () => {
  it('its ServiceAccount may do what it needs, and no more, in tenants’ namespaces and in the OADP namespace', async () => {
    const namespace = await here.createTenant('team');
    await here.objects.create(here.gen.nonAdminBackup({ namespace }));
    await here.objects.create(here.gen.backup({ namespace, nacuuid: 'b1' }));
    const controller = await ApiClient.fromKubeconfig(await readFile(await here.install(), 'utf8'));
    const status = async (method: string, path: string, body?: JsonObject): Promise<number> =>
      (await controller.request(method, path, { body, contentType: 'application/json' })).status;
    const oadp = '/apis/oadp.openshift.io/v1alpha1';
    const velero = `/apis/velero.io/v1/namespaces/${here.oadpNamespace}`;
    try {
      expect(await status('GET', '/api/v1/namespaces')).toBe(200);
      expect(await status('GET', `${oadp}/nonadminbackups`)).toBe(200);
      expect(await status('GET', `${velero}/backups`)).toBe(200);
      expect(await status('GET', `${velero}/backups/b1`)).toBe(200);
      const create = here.gen.nonAdminBackup({ namespace, name: 'another' });
      expect(await status('POST', `${oadp}/namespaces/${namespace}/nonadminbackups`, create)).toBe(201);

      expect(await status('DELETE', `${oadp}/namespaces/${namespace}/nonadminbackups/daily`)).toBe(403);
      expect(await status('DELETE', `${velero}/backups/b1`)).toBe(403);
      expect(await status('GET', `/apis/velero.io/v1/backups`)).toBe(403);
      expect(await status('GET', `/api/v1/namespaces/${namespace}/secrets`)).toBe(403);
      expect(await status('PUT', `${oadp}/namespaces/${namespace}/nonadminbackups/daily`, create)).toBe(403);
    } finally {
      await controller.close();
    }
  });

  it('a right can be taken away for a test: the patched role no longer has the verb', async () => {
    const patched = await renderManifests({
      kubectl,
      namespace: here.oadpNamespace,
      patches: [{ target: { kind: 'Role' }, patch: '[{"op": "remove", "path": "/rules/0/verbs/0"}]' }],
    });
    expect(role.parse(only('Role', patched)).rules[0]?.verbs).toEqual(['list', 'watch']);
  });
});

/** What tells one object on a server from all others. */
const identityOf = (object: JsonObject): string =>
  [object['apiVersion'], object['kind'], objectAt(object, 'metadata')['namespace'] ?? '', nameOf(object)].join(' ');

/** Belongs to no install: a kind, or a right that adds itself to Kubernetes' own roles. */
function isCommon(object: JsonObject): boolean {
  const labels = Object.keys(objectAt(objectAt(object, 'metadata'), 'labels'));
  return (
    object['kind'] === 'CustomResourceDefinition' ||
    labels.some((label) => label.startsWith('rbac.authorization.k8s.io/aggregate-to-'))
  );
}

describe.each(await overlayNames())('overlay %s', (overlay) => {
  beforeAll(async () => {
    await installCrds(here.api, await loadMonitoringCrds());
  });

  it('is taken by a server as it is, every field known', async () => {
    const objects = await renderOverlay(kubectl, overlay, here.oadpNamespace);
    const file = await here.file(`${overlay}.yaml`, objects.map((object) => stringify(object)).join('---\n'));
    const { stdout } = await promisify(execFile)(kubectl, [
      `--kubeconfig=${here.adminKubeconfig}`,
      ...['apply', '--server-side', '--dry-run=server', '--validate=strict', '-f', file],
    ]);
    expect(objects.length).toBeGreaterThan(0);
    expect(stdout.trim().split('\n')).toHaveLength(objects.length);
  });

  it('copied for a second OADP namespace on the cluster, shares no object with the first', async () => {
    const first = await renderOverlay(kubectl, overlay, 'oadp-one');
    const second = await renderOverlay(kubectl, overlay, 'oadp-two');
    const taken = new Set(first.map(identityOf));
    const own = second.filter((object) => !isCommon(object));
    expect(own.map(identityOf).filter((identity) => taken.has(identity))).toEqual([]);
    for (const namespace of ['oadp-one', 'openshift-adp']) expect(JSON.stringify(second)).not.toContain(namespace);
    for (const object of second.filter(isCommon)) expect(first).toContainEqual(object);
  });

  it('binds its own ServiceAccount to its own roles', async () => {
    const objects = await renderOverlay(kubectl, overlay, 'oadp-two');
    const known = new Set(objects.map((object) => `${String(object['kind'])} ${nameOf(object)}`));
    for (const binding of ['ClusterRoleBinding', 'RoleBinding'].flatMap((kind) => ofKind(kind, objects))) {
      const { kind, name } = objectAt(binding, 'roleRef');
      expect(known).toContain(`${String(kind)} ${String(name)}`);
      expect(binding['subjects']).toEqual([{ kind: 'ServiceAccount', name: 'nab-sync', namespace: 'oadp-two' }]);
    }
    expect(known).toContain('ServiceAccount nab-sync');
  });
});

describe('overlay openshift', () => {
  it('leaves user and group to OpenShift, and serves metrics with the certificate of its service', async () => {
    const objects = await renderOverlay(kubectl, 'openshift', 'oadp-two');
    const deployment = JSON.stringify(only('Deployment', objects));
    expect(deployment).not.toMatch(/"(?:runAsUser|runAsGroup|fsGroup|supplementalGroups)"/);
    expect(deployment).toContain('{"name":"METRICS_TLS_DIRECTORY","value":"/etc/nab-sync/metrics-tls"}');
    expect(objectAt(objectAt(only('Service', objects), 'metadata'), 'annotations')).toEqual({
      'service.beta.openshift.io/serving-cert-secret-name': 'nab-sync-metrics-tls',
    });
    expect(only('ServiceMonitor', objects)).toMatchObject({
      spec: { endpoints: [{ scheme: 'https', tlsConfig: { serverName: 'nab-sync.oadp-two.svc' } }] },
    });
  });
});

describe('overlay ha', () => {
  it('runs two pods apart, and lets a drain take one at a time', async () => {
    const objects = await renderOverlay(kubectl, 'ha', here.oadpNamespace);
    expect(only('Deployment', objects)).toMatchObject({
      spec: {
        replicas: 2,
        template: {
          spec: {
            topologySpreadConstraints: [
              { topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway' },
              { topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' },
            ],
          },
        },
      },
    });
    const labels = { 'app.kubernetes.io/name': 'nab-sync' };
    expect(only('PodDisruptionBudget', objects)).toMatchObject({
      spec: { maxUnavailable: 1, selector: { matchLabels: labels } },
    });
  });
});

describe('an overlay of one’s own', () => {
  it('combines monitoring, OpenShift and two replicas', async () => {
    const components = ['../../monitoring', '../../openshift', '../../ha'];
    const objects = await renderOverlay(kubectl, 'openshift', 'oadp-two', components);
    expect(only('Deployment', objects)).toMatchObject({
      spec: { replicas: 2, template: { spec: { volumes: [{ name: 'metrics-tls' }] } } },
    });
    for (const kind of ['PodDisruptionBudget', 'PrometheusRule', 'ServiceMonitor']) only(kind, objects);
  });
});
