import { z } from 'zod';
import type { Resource } from '../../src/kube/resource.ts';
import type { ApiClient } from './api-client.ts';

/** A kind as the server offers it. */
export interface OfferedResource extends Resource {
  readonly verbs: readonly string[];
  readonly subresources: readonly string[];
}

const groups = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string().optional() }).optional(),
      versions: z.array(
        z.object({
          version: z.string(),
          resources: z
            .array(
              z.object({
                resource: z.string(),
                responseKind: z.object({ kind: z.string() }),
                scope: z.string(),
                verbs: z.array(z.string()),
                subresources: z.array(z.object({ subresource: z.string() })).optional(),
              }),
            )
            .optional(),
        }),
      ),
    }),
  ),
});

/** Everything that the server serves now, preferred versions first; two requests. */
export async function discover(api: ApiClient): Promise<OfferedResource[]> {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  const answers = await Promise.all(['/api', '/apis'].map((path) => api.call('GET', path, { accept })));
  return answers
    .flatMap((answer) => groups.parse(answer).items)
    .flatMap(({ metadata, versions }) =>
      versions.flatMap(({ version, resources = [] }) =>
        resources.map((offered) => ({
          group: metadata?.name ?? '',
          version,
          plural: offered.resource,
          kind: offered.responseKind.kind,
          namespaced: offered.scope === 'Namespaced',
          verbs: offered.verbs,
          subresources: offered.subresources?.map(({ subresource }) => subresource) ?? [],
        })),
      ),
    );
}
