import { setTimeout as sleep } from 'node:timers/promises';
import { resourcePath } from '../../src/kube/resource.ts';
import { objectAt, stringAt } from '../../src/kube/json.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { ApiError } from './api-client.ts';
import type { OfferedResource } from './discovery.ts';
import type { Objects } from './objects.ts';

export async function createNamespace(
  objects: Objects,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  await objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
}

/** Marks a namespace as being deleted and stops there: it stays `Terminating`, with all that is in it. */
export async function startNamespaceDeletion(objects: Objects, name: string): Promise<void> {
  await objects.api.call('DELETE', resourcePath(kinds.namespaces, { name }));
}

/**
 * Deletes a namespace with all that is in it, doing what a controller manager does, since none runs beside the embedded
 * server: mark, delete the content, finalize. Finalizers are taken off, as if their owners had done their part. Throws if a
 * NonAdminBackup is left. A namespace that is not there is no error.
 */
export async function deleteNamespace(objects: Objects, name: string): Promise<void> {
  try {
    await startNamespaceDeletion(objects, name);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return;
    throw error;
  }
  await deleteContent(objects, name);
  const left = await objects.list(kinds.nonAdminBackups, { namespace: name });
  if (left.length > 0) throw new Error(`${left.length} NonAdminBackups are left in namespace ${name}`);
  await finalize(objects, name);
}

const deadlineMs = 30_000;

async function deleteContent(objects: Objects, namespace: string): Promise<void> {
  let left = objects.kinds.filter(
    // Events of the newer group are the same objects as those of the core group.
    ({ namespaced, verbs, group }) =>
      namespaced && verbs.includes('delete') && verbs.includes('list') && group !== 'events.k8s.io',
  );
  const deadline = performance.now() + deadlineMs;
  // Rounds: a writer that was let in just before the mark may be done just after the first.
  while (left.length > 0) {
    if (performance.now() > deadline) {
      throw new Error(`namespace ${namespace} still has ${left.map(({ plural }) => plural).join(', ')}`);
    }
    const stillThere = await Promise.all(
      left.map(async (resource) => ((await deleteAll(objects, resource, namespace)) > 0 ? [resource] : [])),
    );
    left = stillThere.flat();
  }
}

/** Returns how many of the kind were there. */
async function deleteAll(objects: Objects, resource: OfferedResource, namespace: string): Promise<number> {
  const found = await objects.list(resource, { namespace }).catch((error: unknown) => {
    // Another test has taken its kind away since the server was asked what it offers.
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  });
  await Promise.all(
    found.map((object) =>
      objects.delete(resource, { namespace, name: stringAt(objectAt(object, 'metadata'), 'name') }),
    ),
  );
  return found.length;
}

async function finalize(objects: Objects, name: string): Promise<void> {
  const path = resourcePath(kinds.namespaces, { name });
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const namespace = await objects.get(kinds.namespaces, { name });
    if (namespace === undefined) return;
    // On an existing cluster its controller does the same at the same time: whoever loses the race looks again.
    await objects.api.request('PUT', `${path}/finalize`, { body: { ...namespace, spec: { finalizers: [] } } });
    if (performance.now() > deadline) throw new Error(`namespace ${name} does not go away`);
    await sleep(20);
  }
}
