import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { ApiError } from '../api-client.ts';
import type { ApiClient } from '../api-client.ts';
import { SetupError } from './setup-error.ts';

const crdsPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const deadlineMs = 60_000;

const crdShape = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({
    group: z.string(),
    names: z.object({ plural: z.string() }),
    versions: z.array(z.object({ name: z.string(), served: z.boolean() })),
  }),
  status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })).catch([]) }).optional(),
});

/**
 * Creates the CRDs that are missing (one that is there is left alone: the cluster may be somebody's) and returns when each
 * is Established, its lists answer and discovery names it: from then on kubectl and controllers find it at once.
 */
export async function installCrds(api: ApiClient, crds: readonly JsonObject[]): Promise<void> {
  await Promise.all(crds.map((crd) => createUnlessPresent(api, crd)));
  const deadline = performance.now() + deadlineMs;
  await Promise.all(crds.map((crd) => untilServed(api, crd, deadline)));
  await untilDiscovered(api, crds, deadline);
}

async function createUnlessPresent(api: ApiClient, crd: JsonObject): Promise<void> {
  try {
    await api.call('POST', crdsPath, { body: crd });
  } catch (error) {
    if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error;
  }
}

async function untilServed(api: ApiClient, crd: JsonObject, deadline: number): Promise<void> {
  const { metadata, spec } = crdShape.parse(crd);
  for (;;) {
    const { status } = crdShape.parse(await api.call('GET', `${crdsPath}/${metadata.name}`));
    if (status?.conditions.some(({ type, status }) => type === 'Established' && status === 'True') === true) break;
    await pause(deadline, `${metadata.name} is not Established`);
  }
  for (const { name: version } of spec.versions.filter(({ served }) => served)) {
    for (;;) {
      // 404 until the API server has put the handler in place; the client sits out 429, "storage is (re)initializing".
      const { status } = await api.request('GET', `/apis/${spec.group}/${version}/${spec.names.plural}?limit=1`);
      if (status === 200) break;
      await pause(deadline, `the list of ${metadata.name} answers ${status}`);
    }
  }
}

const discovery = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      versions: z.array(z.object({ resources: z.array(z.object({ resource: z.string() })).catch([]) })).catch([]),
    }),
  ),
});

/** Discovery follows a little later than the kinds themselves, and kubectl knows only what discovery names. */
async function untilDiscovered(api: ApiClient, crds: readonly JsonObject[], deadline: number): Promise<void> {
  const wanted = crds.map((crd) => crdShape.parse(crd).metadata.name);
  for (;;) {
    const { items } = discovery.parse(
      await api.call('GET', '/apis', {
        accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
      }),
    );
    const found = new Set(
      items.flatMap(({ metadata, versions }) =>
        versions.flatMap(({ resources }) => resources.map(({ resource }) => `${resource}.${metadata.name}`)),
      ),
    );
    const missing = wanted.find((name) => !found.has(name));
    if (missing === undefined) return;
    await pause(deadline, `discovery does not name ${missing}`);
  }
}

async function pause(deadline: number, state: string): Promise<void> {
  if (performance.now() > deadline) throw new SetupError(`CRDs are not served after ${deadlineMs / 1000} s: ${state}`);
  await sleep(50);
}
