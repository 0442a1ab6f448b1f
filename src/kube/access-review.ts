import type { JsonObject, ObjectRef, Resource } from './resource.ts';
import { objectAt } from './json.ts';

const selfSubjectAccessReviews: Resource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectaccessreviews',
  kind: 'SelfSubjectAccessReview',
  namespaced: false,
};

export interface AccessReviewClient {
  create(resource: Resource, ref: ObjectRef, body: JsonObject): Promise<JsonObject>;
}

/** One right, in the words of RBAC. */
export interface Access {
  readonly verb: string;
  readonly resource: Resource;
  readonly namespace?: string;
  readonly subresource?: string;
}

/**
 * Asks the API server whether RBAC allows us something. Every authenticated user may ask that about himself.
 * Rejects with a KubeError.
 */
export async function mayI(client: AccessReviewClient, access: Access): Promise<boolean> {
  const { verb, resource, namespace, subresource } = access;
  const review = await client.create(
    selfSubjectAccessReviews,
    {},
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: selfSubjectAccessReviews.kind,
      spec: { resourceAttributes: { verb, group: resource.group, resource: resource.plural, namespace, subresource } },
    },
  );
  return objectAt(review, 'status')['allowed'] === true;
}
