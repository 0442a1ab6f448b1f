import type { KubeClient, RequestInfo } from '../../kube/client.ts';
import { systemClock } from '../../kube/clock.ts';
import { KubeError } from '../../kube/errors.ts';
import { leaseResource, readLease } from '../../kube/lease-record.ts';
import { PageSize } from '../../kube/page-size.ts';
import { listAll } from '../../kube/pager.ts';
import { apiVersion, qualifiedName, type JsonObject, type ObjectRef, type Resource } from '../../kube/resource.ts';
import {
  backupStorageLocations,
  dataProtectionApplications,
  namespaces,
  nonAdminBackupStorageLocations,
} from '../../oadp/kinds.ts';
import { toNamespaceRecord } from '../../oadp/namespace.ts';
import { nameAt, textAt, valueAt } from '../../oadp/read.ts';
import { toLocationOwnerRecord, toStorageLocationRecord } from '../../oadp/storage-location.ts';
import { toDpaRecord } from '../../settings/dpa.ts';
import { makeClient } from '../clients.ts';
import type { CommandContext } from '../context.ts';
import { rights, type Right } from '../rights.ts';
import { leaseName } from '../sync-setup.ts';
import { configMapResource, readStatus, statusConfigMapName } from '../sync-status.ts';
import type { Findings } from './findings.ts';
import { judge } from './judge.ts';
import type { CheckResult } from './verdict.ts';

const selfSubjectAccessReview: Resource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectaccessreviews',
  kind: 'SelfSubjectAccessReview',
  namespaced: false,
};

const selfSubjectReview: Resource = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'selfsubjectreviews',
  kind: 'SelfSubjectReview',
  namespaced: false,
};

/** Codes that say something about the cluster; with any other, there is nobody to ask. */
const telling: ReadonlySet<string> = new Set(['Forbidden', 'KindNotInstalled', 'NotFound', 'Malformed', 'TooLarge']);

function tells(error: unknown): error is KubeError {
  return error instanceof KubeError && telling.has(error.code);
}

/** The difference of the clocks, from the answer that took the least time. */
class ClockDifference {
  #seconds = Infinity;
  aheadMs: number | undefined;

  observe({ date, seconds }: RequestInfo): void {
    const serverTime = Date.parse(date ?? '');
    if (Number.isNaN(serverTime) || seconds >= this.#seconds) return;
    this.#seconds = seconds;
    // The server tells whole seconds, so on average it is half of one later.
    this.aheadMs = serverTime + 500 - (Date.now() - (seconds * 1000) / 2);
  }
}

/** Asks one thing after another of the cluster, and remembers what it would not answer. */
class Gatherer {
  readonly #client: KubeClient;
  readonly #context: CommandContext;
  readonly unread = new Map<string, KubeError>();

  constructor(context: CommandContext, client: KubeClient) {
    this.#context = context;
    this.#client = client;
  }

  async isAllowed({ verb, resource, subresource, objectName, scope }: Right): Promise<boolean> {
    const resourceAttributes = {
      verb,
      group: resource.group,
      resource: resource.plural,
      ...(subresource !== undefined && { subresource }),
      ...(objectName !== undefined && { name: objectName }),
      ...(scope === 'oadp' && { namespace: this.#context.settings.oadpNamespace.value }),
    };
    const review = await this.#ask(selfSubjectAccessReview, { spec: { resourceAttributes } });
    return valueAt(review, 'status', 'allowed') === true;
  }

  async user(): Promise<string | undefined> {
    try {
      return nameAt(await this.#ask(selfSubjectReview, {}), 'status', 'userInfo', 'username');
    } catch (error) {
      // Older servers do not have it.
      if (tells(error)) return undefined;
      throw error;
    }
  }

  /** All objects of a kind; undefined where they cannot be had. */
  async list(resource: Resource): Promise<readonly JsonObject[] | undefined> {
    const { settings, signal } = this.#context;
    const items: JsonObject[] = [];
    try {
      await listAll({
        client: this.#client,
        resource,
        namespace: resource.namespaced && isInOadpNamespace(resource) ? settings.oadpNamespace.value : undefined,
        pageSize: new PageSize(),
        pageCapBytes: 16 * 1024 * 1024,
        onItems: (page) => items.push(...page),
        onRestart: () => (items.length = 0),
        firstPageTries: 4,
        signal,
        clock: systemClock,
        random: Math.random,
      });
      return items;
    } catch (error) {
      this.#note(resource, error);
      return undefined;
    }
  }

  /** Whether a kind can be listed, without reading all of it. */
  async probe(resource: Resource): Promise<void> {
    const { settings, signal } = this.#context;
    const namespace = isInOadpNamespace(resource) ? settings.oadpNamespace.value : undefined;
    try {
      await this.#client.listPage(resource, { namespace, limit: 1, signal });
    } catch (error) {
      this.#note(resource, error);
    }
  }

  /** `none` where it is not there, undefined where it cannot be read. */
  async get(resource: Resource, name: string): Promise<JsonObject | 'none' | undefined> {
    const { settings, signal } = this.#context;
    const ref: ObjectRef = { namespace: settings.oadpNamespace.value, name };
    try {
      return await this.#client.get(resource, ref, { signal });
    } catch (error) {
      if (error instanceof KubeError && error.code === 'NotFound') return 'none';
      this.#note(resource, error);
      return undefined;
    }
  }

  async #ask(resource: Resource, content: JsonObject): Promise<JsonObject> {
    const body = { apiVersion: apiVersion(resource), kind: resource.kind, ...content };
    return await this.#client.create(resource, {}, body, { signal: this.#context.signal });
  }

  #note(resource: Resource, error: unknown): void {
    if (!tells(error)) throw error;
    this.unread.set(qualifiedName(resource), error);
  }
}

/** Whether nab-sync looks at a kind in the OADP namespace only. */
function isInOadpNamespace(resource: Resource): boolean {
  return rights.some((right) => right.resource === resource && right.verb === 'list' && right.scope === 'oadp');
}

/** Kinds that are read for what is in them; of the others it only counts that they can be. */
const readInFull: readonly Resource[] = [
  namespaces,
  dataProtectionApplications,
  backupStorageLocations,
  nonAdminBackupStorageLocations,
];

function keyed<R>(
  objects: readonly JsonObject[] | undefined,
  key: (object: JsonObject) => string,
  project: (object: JsonObject) => R,
): ReadonlyMap<string, R> | undefined {
  return objects && new Map(objects.map((object) => [key(object), project(object)]));
}

async function gather(context: CommandContext, client: KubeClient, clock: ClockDifference): Promise<Findings> {
  const { settings } = context;
  const gatherer = new Gatherer(context, client);
  const user = await gatherer.user();
  const allowed = await Promise.all(rights.map((right) => gatherer.isAllowed(right)));
  const probed = rights.flatMap(({ verb, resource }) =>
    verb === 'list' && !readInFull.includes(resource) ? [resource] : [],
  );
  const [allNamespaces, dpas, locations, owners, lease, status] = await Promise.all([
    gatherer.list(namespaces),
    gatherer.list(dataProtectionApplications),
    gatherer.list(backupStorageLocations),
    gatherer.list(nonAdminBackupStorageLocations),
    gatherer.get(leaseResource, leaseName),
    gatherer.get(configMapResource, statusConfigMapName),
    ...probed.map((resource) => gatherer.probe(resource)),
  ]);
  const now = Date.now();
  return {
    settings,
    now,
    user,
    denied: rights.filter((_, index) => allowed[index] !== true),
    unread: gatherer.unread,
    namespaces: keyed(
      allNamespaces,
      (object) => textAt(object, 'metadata', 'name') ?? '',
      (object) => toNamespaceRecord(object, settings.namespaceSelector.value.matches),
    ),
    dpas: dpas?.flatMap((object) => toDpaRecord(object) ?? []),
    locations: locations?.map(toStorageLocationRecord),
    owners: keyed(
      owners,
      (object) => `${textAt(object, 'metadata', 'namespace') ?? ''}/${textAt(object, 'metadata', 'name') ?? ''}`,
      toLocationOwnerRecord,
    ),
    lease: lease === undefined || lease === 'none' ? lease : readLease(lease),
    status: status === undefined || status === 'none' ? status : readStatus(status, now).status,
    serverAheadMs: clock.aheadMs,
  };
}

/** Looks at everything that nab-sync needs, writing nothing. Rejects with KubeError where there is nobody to ask. */
export async function checkInstall(context: CommandContext): Promise<CheckResult[]> {
  const clock = new ClockDifference();
  const metrics = {
    ...context.metrics,
    request: (info: RequestInfo): void => {
      clock.observe(info);
    },
  };
  const client = makeClient({ ...context, metrics });
  try {
    return judge(await gather(context, client, clock));
  } finally {
    await client.close();
  }
}
