import { apiVersion, qualifiedName, resourcePath } from '../../src/kube/resource.ts';
import type { JsonObject, ObjectRef, Resource } from '../../src/kube/resource.ts';
import { isJsonObject, objectAt, stringAt } from '../../src/kube/json.ts';
import { ApiError } from './api-client.ts';
import type { ApiClient } from './api-client.ts';
import { discover } from './discovery.ts';
import type { OfferedResource } from './discovery.ts';

const mergePatch = 'application/merge-patch+json';

/**
 * Objects of any kind on a real server, as an admin sees and makes them. Anything but success throws an `ApiError`, unless
 * said otherwise.
 */
export class Objects {
  readonly api: ApiClient;
  readonly kinds: readonly OfferedResource[];

  private constructor(api: ApiClient, kinds: readonly OfferedResource[]) {
    this.api = api;
    this.kinds = kinds;
  }

  /** Asks once which kinds there are; make a new one after installing a CRD. */
  static async on(api: ApiClient): Promise<Objects> {
    return new Objects(api, await discover(api));
  }

  /**
   * Creates an object in its own namespace, status included: through /status where the kind has that subresource, else in
   * one piece as Velero does. Returns what the server made of it.
   */
  async create(object: JsonObject): Promise<JsonObject> {
    const { resource, namespace } = this.#locate(object);
    const created = await this.api.call('POST', resourcePath(resource, { namespace }), { body: object });
    if (object['status'] === undefined || !resource.subresources.includes('status')) return created;
    const name = stringAt(objectAt(created, 'metadata'), 'name');
    return await this.setStatus(resource, { namespace, name }, objectAt(object, 'status'));
  }

  /** Server-side apply: makes the object so, whether it is there or not. */
  async apply(object: JsonObject): Promise<JsonObject> {
    const { resource, namespace, name } = this.#locate(object);
    if (name === undefined) throw new Error(`a ${resource.kind} without a name cannot be applied`);
    return await this.api.call('PATCH', `${resourcePath(resource, { namespace, name })}?fieldManager=test&force=true`, {
      body: object,
      contentType: 'application/apply-patch+yaml',
    });
  }

  /** Undefined if it is not there. */
  async get(resource: Resource, ref: ObjectRef): Promise<JsonObject | undefined> {
    return await unlessNotFound(this.api.call('GET', resourcePath(resource, ref)));
  }

  /** All of a kind, or those of one namespace, whatever their number. */
  async list(resource: Resource, options: ListOptions = {}): Promise<JsonObject[]> {
    const found: JsonObject[] = [];
    let token: string | undefined;
    do {
      const query = new URLSearchParams({ limit: '500' });
      if (options.labelSelector !== undefined) query.set('labelSelector', options.labelSelector);
      if (token !== undefined) query.set('continue', token);
      const page = await this.api.call(
        'GET',
        `${resourcePath(resource, { namespace: options.namespace })}?${query.toString()}`,
      );
      if (Array.isArray(page['items'])) found.push(...page['items'].filter(isJsonObject));
      token = stringAt(objectAt(page, 'metadata'), 'continue');
    } while (token !== undefined);
    return found;
  }

  /** JSON merge patch; null takes a field away. */
  async patch(resource: Resource, ref: ObjectRef, patch: JsonObject): Promise<JsonObject> {
    return await this.api.call('PATCH', resourcePath(resource, ref), { body: patch, contentType: mergePatch });
  }

  /** Lays a status over the one that is there. */
  async setStatus(resource: Resource, ref: ObjectRef, status: JsonObject): Promise<JsonObject> {
    const separate = this.#offered(resource).subresources.includes('status');
    return await this.patch(resource, separate ? { ...ref, subresource: 'status' } : ref, { status });
  }

  /** Deletes an object, finalizers or not, as if their owners had done their part. Not being there is no error. */
  async delete(resource: Resource, ref: ObjectRef): Promise<void> {
    const answer = await unlessNotFound(this.api.call('DELETE', `${resourcePath(resource, ref)}?gracePeriodSeconds=0`));
    // An object that finalizers hold comes back marked as being deleted; one that is gone, as a Status or as it was.
    if (objectAt(answer ?? {}, 'metadata')['deletionTimestamp'] === undefined) return;
    await unlessNotFound(this.patch(resource, ref, { metadata: { finalizers: null } }));
  }

  /** As `delete`, for an object at hand. */
  async deleteObject(object: JsonObject): Promise<void> {
    const { resource, namespace, name } = this.#locate(object);
    await this.delete(resource, { namespace, name });
  }

  #locate(object: JsonObject): { resource: OfferedResource; namespace: string | undefined; name: string | undefined } {
    const resource = this.kinds.find(
      (offered) => offered.kind === object['kind'] && apiVersion(offered) === object['apiVersion'],
    );
    if (resource === undefined) {
      throw new Error(`the server does not serve ${String(object['apiVersion'])} ${String(object['kind'])}`);
    }
    const metadata = objectAt(object, 'metadata');
    return { resource, namespace: stringAt(metadata, 'namespace'), name: stringAt(metadata, 'name') };
  }

  #offered(resource: Resource): OfferedResource {
    const offered = this.kinds.find(
      (candidate) =>
        candidate.plural === resource.plural &&
        candidate.group === resource.group &&
        candidate.version === resource.version,
    );
    if (offered === undefined) throw new Error(`the server does not serve ${qualifiedName(resource)}`);
    return offered;
  }
}

export interface ListOptions {
  /** Default all. */
  readonly namespace?: string;
  readonly labelSelector?: string;
}

async function unlessNotFound(answer: Promise<JsonObject>): Promise<JsonObject | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}
