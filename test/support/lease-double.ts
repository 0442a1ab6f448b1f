import type { LeaseClient } from '../../src/kube/leader-elector.ts';
import { KubeError } from '../../src/kube/errors.ts';
import type { KubeErrorCode } from '../../src/kube/errors.ts';
import { isJsonObject, objectAt } from '../../src/kube/json.ts';
import type { JsonObject } from '../../src/kube/resource.ts';
import type { ProcessClock } from './manual-clock.ts';

/** What happens to one request on its way. All times in milliseconds. */
export interface Fate {
  /** On the way there. The server carries the request out after that, also when nobody waits for it any more. */
  readonly there?: number;
  /** On the way back. */
  readonly back?: number;
  /** `lost`: never arrives. `unanswered`: is carried out, but the answer never comes. Else: the error that comes back. */
  readonly end?: 'answered' | 'lost' | 'unanswered' | KubeErrorCode;
}

export type Verb = 'get' | 'create' | 'update';

/**
 * One Lease, which is changed only in the version that was read. Not an API server: just that one promise of it, which
 * leader election rests on. The integration test holds the elector to the real thing.
 */
export class LeaseDouble {
  lease: JsonObject | undefined;
  readonly requests: { readonly at: number; readonly verb: Verb }[] = [];
  #version = 0;

  get spec(): JsonObject {
    return objectAt(this.lease ?? {}, 'spec');
  }

  /** A client as one process has it. */
  client(clock: ProcessClock, fate: (verb: Verb) => Fate = () => ({})): LeaseClient {
    const send = async (verb: Verb, act: () => JsonObject): Promise<JsonObject> => {
      this.requests.push({ at: clock.monotonic(), verb });
      const { there = 0, back = 0, end = 'answered' } = fate(verb);
      const { network } = clock.world;
      if (there > 0) await network.sleep(there);
      if (end === 'lost') return await new Promise(() => undefined);
      if (end !== 'answered' && end !== 'unanswered') throw error(end, verb);
      const answer = act();
      if (end === 'unanswered') return await new Promise(() => undefined);
      if (back > 0) await network.sleep(back);
      // An answer that comes while the process is frozen is read when it goes on.
      if (clock.frozen) await clock.sleep(0);
      return answer;
    };
    return {
      get: () => send('get', () => this.#get()),
      create: (...[, , body]) => send('create', () => this.#create(body)),
      update: (...[, , body]) => send('update', () => this.#update(body)),
    };
  }

  /** Puts the Lease as somebody else wrote it. */
  put(spec: JsonObject): void {
    this.#store({ metadata: { name: 'nab-sync' }, spec });
  }

  #get(): JsonObject {
    if (this.lease === undefined) throw error('NotFound', 'get');
    return structuredClone(this.lease);
  }

  #create(body: JsonObject): JsonObject {
    if (this.lease !== undefined) throw error('AlreadyExists', 'create');
    return this.#store(body);
  }

  #update(body: JsonObject): JsonObject {
    if (this.lease === undefined) throw error('NotFound', 'update');
    if (objectAt(body, 'metadata')['resourceVersion'] !== objectAt(this.lease, 'metadata')['resourceVersion']) {
      throw error('Conflict', 'update');
    }
    return this.#store(body);
  }

  #store(body: JsonObject): JsonObject {
    this.#version += 1;
    const stored: unknown = structuredClone({
      ...body,
      metadata: { ...objectAt(body, 'metadata'), resourceVersion: String(this.#version) },
    });
    if (!isJsonObject(stored)) throw new TypeError('not an object');
    this.lease = stored;
    return structuredClone(stored);
  }
}

function error(code: KubeErrorCode, verb: string): KubeError {
  return new KubeError({
    code,
    verb,
    resource: 'leases.coordination.k8s.io',
    namespace: 'openshift-adp',
    message: code,
  });
}
