/** A JSON object as the API server sent it. Nothing in it can be relied on before it has been looked at. */
export type JsonObject = Record<string, unknown>;

/** A kind of the Kubernetes API, in the words of its REST paths. */
export interface Resource {
  /** API group; empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Names one object, or with `name` left out one collection; `namespace` left out means all namespaces. */
export interface ObjectRef {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: 'status' | undefined;
}

/** `backups.velero.io`: how kubectl, RBAC messages and CRD names spell a kind. */
export function qualifiedName(resource: Resource): string {
  return resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`;
}

/** `velero.io/v1`, or `v1` for the core group. */
export function apiVersion(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** The URL path of an object or a collection; every part that came from outside is escaped. */
export function resourcePath(resource: Resource, ref: ObjectRef = {}): string {
  const parts = [resource.group === '' ? 'api' : `apis/${resource.group}`, resource.version];
  if (resource.namespaced && ref.namespace !== undefined) parts.push('namespaces', encodeURIComponent(ref.namespace));
  parts.push(resource.plural);
  if (ref.name !== undefined) parts.push(encodeURIComponent(ref.name));
  if (ref.subresource !== undefined) parts.push(ref.subresource);
  return `/${parts.join('/')}`;
}
