import { randomBytes } from 'node:crypto';
import { afterAll } from 'vitest';
import { z } from 'zod';
import { objectAt, stringAt } from '../../../../src/kube/json.ts';
import type { JsonObject } from '../../../../src/kube/resource.ts';
import { qualifiedName } from '../../../../src/kube/resource.ts';
import type { Right } from '../../../../src/controller/rights.ts';
import { liveObjects, type LiveObjects } from '../../../support/gen/live-objects.ts';
import type { Isolated } from '../../../support/isolated.ts';
import { renderManifests } from '../../../support/manifests.ts';
import { serviceAccountToken } from '../../../support/service-account.ts';

const rule = z.object({
  apiGroups: z.array(z.string()),
  resources: z.array(z.string()),
  resourceNames: z.array(z.string()).optional(),
  verbs: z.array(z.string()),
});
const role = z.looseObject({ kind: z.enum(['Role', 'ClusterRole']), rules: z.array(rule) });

/** A right as one line: `oadp get leases.coordination.k8s.io nab-sync`. */
export function rightLine({ scope, verb, resource, subresource, objectName }: Right): string {
  return [scope, ...granted(verb, qualifiedName(resource), subresource, objectName)].join(' ');
}

function granted(verb: string, resource: string, subresource?: string, objectName?: string): string[] {
  return [
    verb,
    subresource === undefined ? resource : `${resource}/${subresource}`,
    ...(objectName === undefined ? [] : [objectName]),
  ];
}

/** What the roles among the objects grant, a line each as `rightLine` writes it; throws at a rule that is not understood. */
export function grantedLines(objects: readonly JsonObject[]): string[] {
  return rolesAmong(objects).flatMap(({ kind, rules }) =>
    rules.flatMap(({ apiGroups, resources, resourceNames, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((path) =>
          verbs.flatMap((verb) => {
            const [plural = '', subresource] = path.split('/');
            const resource = group === '' ? plural : `${plural}.${group}`;
            const names = resourceNames ?? [undefined];
            const scope = kind === 'ClusterRole' ? 'cluster' : 'oadp';
            return names.map((name) => [scope, ...granted(verb, resource, subresource, name)].join(' '));
          }),
        ),
      ),
    ),
  );
}

/** Roles of nab-sync itself: those that are aggregated into Kubernetes' own are bound to nobody here. */
function rolesAmong(objects: readonly JsonObject[]): z.infer<typeof role>[] {
  return objects.filter(isOwnRole).map((object) => role.parse(object));
}

function isOwnRole(object: JsonObject): boolean {
  const labels = Object.keys(objectAt(objectAt(object, 'metadata'), 'labels'));
  const aggregated = labels.some((label) => label.startsWith('rbac.authorization.k8s.io/aggregate-to-'));
  return (object['kind'] === 'Role' || object['kind'] === 'ClusterRole') && !aggregated;
}

/** The roles among the objects without some rights; throws if they never had them, or would lose others too. */
function rolesWithout(objects: readonly JsonObject[], withdrawn: readonly Right[]): JsonObject[] {
  const unwanted = new Set(withdrawn.map(rightLine));
  const roles = rolesAmong(objects).map(({ rules, ...each }) => ({
    ...each,
    // One rule for each single right, so that any of them can be left out.
    rules: rules
      .flatMap(({ apiGroups, resources, verbs, ...names }) =>
        apiGroups.flatMap((group) =>
          resources.flatMap((resource) =>
            verbs.map((verb) => ({ ...names, apiGroups: [group], resources: [resource], verbs: [verb] })),
          ),
        ),
      )
      .filter((single) => !grantedLines([{ ...each, rules: [single] }]).some((line) => unwanted.has(line))),
  }));
  const lost = grantedLines(objects).filter((line) => !grantedLines(roles).includes(line));
  if (lost.length !== unwanted.size) throw new Error(`cannot be taken away: ${[...unwanted].join(', ')}`);
  return roles;
}

/** nab-sync's manifests in an OADP namespace, with roles that can be changed. */
export interface Installation {
  readonly oadpNamespace: string;
  readonly gen: LiveObjects;
  /** Of the ServiceAccount. */
  readonly kubeconfig: string;
  readonly account: { readonly namespace: string; readonly name: string };
  /** As applied. */
  readonly manifests: readonly JsonObject[];
  /** Takes these rights away; all others are granted. */
  withdraw(...withdrawn: readonly Right[]): Promise<void>;
  /** Grants all rights again. */
  restore(): Promise<void>;
}

/** Rendered once a file, since kustomize takes its time, and filled in for each install. */
let rendered: ReturnType<typeof renderManifests> | undefined;

/** Installs nab-sync into an OADP namespace of its own, which it makes. The cluster-wide objects go after the file's tests. */
export async function install(here: Isolated, name: string): Promise<Installation> {
  const oadpNamespace = await here.createTenant(name);
  const suffix = `-${randomBytes(4).toString('hex')}`;
  rendered ??= renderManifests({ kubectl: here.kubectl, namespace: 'the-namespace', nameSuffix: '-the-suffix' });
  const text = JSON.stringify(await rendered)
    .replaceAll('the-namespace', oadpNamespace)
    .replaceAll('-the-suffix', suffix);
  const manifests = z.array(z.record(z.string(), z.unknown())).parse(JSON.parse(text));
  // There is one CRD for all test files, and the run's setup has installed it.
  const needed = manifests.filter(({ kind }) => kind !== 'Deployment' && kind !== 'CustomResourceDefinition');
  for (const object of needed) await here.objects.apply(object);
  afterAll(async () => {
    const clusterWide = needed.filter((object) => stringAt(objectAt(object, 'metadata'), 'namespace') === undefined);
    await Promise.all(clusterWide.map((object) => here.objects.deleteObject(object)));
  });
  const account = { namespace: oadpNamespace, name: `nab-sync${suffix}` };
  const token = await serviceAccountToken(here.api, account);
  return {
    oadpNamespace,
    gen: liveObjects(oadpNamespace),
    kubeconfig: await here.file(`${name}.kubeconfig`, here.api.kubeconfigFor({ token, namespace: oadpNamespace })),
    account,
    manifests,
    async withdraw(...withdrawn) {
      await Promise.all(rolesWithout(needed, withdrawn).map((object) => here.objects.apply(object)));
    },
    async restore() {
      await Promise.all(needed.filter(isOwnRole).map((object) => here.objects.apply(object)));
    },
  };
}
