import { setImmediate as turn } from 'node:timers/promises';
import { KubeError, type KubeErrorCode, type KubeErrorFacts } from '../../../../src/kube/errors.ts';
import { qualifiedName, type JsonObject, type ObjectRef, type Resource } from '../../../../src/kube/resource.ts';
import { nameAt, objectAt, textAt } from '../../../../src/oadp/read.ts';
import type { NabClient } from '../../../../src/sync/namespace-pass.ts';

/** One request, short enough to be compared as a whole: `get backups.velero.io/team-a-daily-1`. */
export interface Call {
  readonly verb: 'get' | 'create' | 'update';
  /** `backups.velero.io` */
  readonly resource: string;
  /** Of the object; in a create, of the body. */
  readonly name: string;
  readonly ref: ObjectRef;
  readonly body: JsonObject | undefined;
}

/** Answers a request, or leaves it to the usual answer by returning undefined. */
export type Answer = (call: Call) => JsonObject | undefined | Promise<JsonObject | undefined>;

export interface ScriptedClient extends NabClient {
  readonly calls: readonly Call[];
  /** `verb name` of each request, in order, with `/status` where it is one. */
  readonly said: () => string[];
  /** The most requests that were under way at a time. */
  readonly mostAtOnce: () => number;
  readonly count: (verb: Call['verb']) => number;
}

/**
 * A client that answers as the test says. The usual answers are those of a server on which nothing is in the way: a get of
 * a Backup finds the given one, a get of a NAB finds none, what is created or updated comes back with a uid and a version.
 */
export function scriptedClient(backups: readonly JsonObject[], answer: Answer = () => undefined): ScriptedClient {
  const calls: Call[] = [];
  let underWay = 0;
  let most = 0;
  const ask = async (call: Call): Promise<JsonObject> => {
    calls.push(call);
    underWay += 1;
    most = Math.max(most, underWay);
    try {
      await turn();
      return (await answer(call)) ?? usual(call);
    } finally {
      underWay -= 1;
    }
  };
  const written = new Map<string, JsonObject>();
  const usual = ({ verb, resource, name, body = {} }: Call): JsonObject => {
    if (verb !== 'get') {
      const before = verb === 'update' ? (written.get(name) ?? {}) : {};
      const metadata = { ...objectAt(before, 'metadata'), ...objectAt(body, 'metadata') };
      const stamped = { uid: `uid-of-${name}`, ...metadata, resourceVersion: String(calls.length) };
      const now = { ...before, ...body, metadata: stamped };
      written.set(name, now);
      return now;
    }
    const found = backups.find((backup) => nameAt(backup, 'metadata', 'name') === name);
    if (resource === 'backups.velero.io' && found !== undefined) return found;
    throw kubeError('NotFound', { verb, resource });
  };
  const call = (verb: Call['verb'], resource: Resource, ref: ObjectRef, body?: JsonObject): Promise<JsonObject> =>
    ask({
      verb,
      resource: qualifiedName(resource),
      name: ref.name ?? textAt(body, 'metadata', 'name') ?? '',
      ref,
      body,
    });
  return {
    calls,
    get: (resource, ref) => call('get', resource, ref),
    create: (resource, ref, body) => call('create', resource, ref, body),
    update: (resource, ref, body) => call('update', resource, ref, body),
    said: () =>
      calls.map(
        ({ verb, name, ref }) => `${verb} ${name}${ref.subresource === undefined ? '' : `/${ref.subresource}`}`,
      ),
    mostAtOnce: () => most,
    count: (verb) => calls.filter((made) => made.verb === verb).length,
  };
}

/** An error as the client makes it. */
export function kubeError(code: KubeErrorCode, facts: Partial<KubeErrorFacts> = {}): KubeError {
  return new KubeError({
    verb: 'create',
    resource: 'nonadminbackups.oadp.openshift.io',
    message: `the server says ${code}`,
    ...facts,
    code,
  });
}

/** Rejects a request the way the client does. */
export function failing({ verb, resource }: Call, code: KubeErrorCode, facts: Partial<KubeErrorFacts> = {}): never {
  throw kubeError(code, { verb, resource, ...facts });
}
