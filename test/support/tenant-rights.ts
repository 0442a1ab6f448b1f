import { objectAt, stringAt } from '../../src/kube/json.ts';
import { renderManifests } from './manifests.ts';
import type { Objects } from './objects.ts';
import { serviceAccountToken } from './service-account.ts';

const rbac = 'rbac.authorization.k8s.io';

/**
 * Makes somebody who has the rights in a namespace that manifests/crd adds to Kubernetes' `admin` and `edit`, or to `view`, and
 * nothing anywhere else; returns the text of his kubeconfig. They are bound directly, since no controller aggregates roles
 * beside the embedded server.
 */
export async function tenantKubeconfig(
  objects: Objects,
  kubectl: string,
  namespace: string,
  role: 'edit' | 'view' = 'edit',
): Promise<string> {
  const manifests = await renderManifests({ kubectl, namespace, directory: 'crd' });
  const granting = manifests.find(
    (object) => stringAt(objectAt(object, 'metadata'), 'name') === `nab-sync-requests-${role}`,
  );
  const account = { namespace, name: `tenant-${role}` };
  await objects.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: account });
  await objects.create({ apiVersion: `${rbac}/v1`, kind: 'Role', metadata: account, rules: granting?.['rules'] });
  await objects.create({
    apiVersion: `${rbac}/v1`,
    kind: 'RoleBinding',
    metadata: account,
    roleRef: { apiGroup: rbac, kind: 'Role', name: account.name },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  });
  return objects.api.kubeconfigFor({ token: await serviceAccountToken(objects.api, account), namespace });
}
