import partition from 'lodash/partition.js';
import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import { Reflector, SyncTimeoutError, type ReflectorOptions, type ReflectorState } from '../kube/reflector.ts';
import { qualifiedName, type JsonObject, type Resource } from '../kube/resource.ts';
import { Store, type ChangeListener } from '../kube/store.ts';
import { toBackupRecord, type BackupRecord } from '../oadp/backup.ts';
import { toDeleteRequestRecord, type DeleteRequestRecord } from '../oadp/delete-request.ts';
import {
  backups,
  backupStorageLocations,
  deleteBackupRequests,
  namespaces,
  nonAdminBackups,
  nonAdminBackupStorageLocations,
} from '../oadp/kinds.ts';
import { nacLabelSelector } from '../oadp/labels.ts';
import { toNamespaceRecord, type LabelPredicate, type NamespaceRecord } from '../oadp/namespace.ts';
import { toNonAdminBackupRecord, type NonAdminBackupRecord } from '../oadp/non-admin-backup.ts';
import { nameAt } from '../oadp/read.ts';
import {
  isAdmins,
  toLocationOwnerRecord,
  toStorageLocationRecord,
  type LocationOwnerRecord,
  type StorageLocationRecord,
} from '../oadp/storage-location.ts';
import { ClusterState, namespacedKey } from '../sync/cluster-state.ts';
import type { PassContext } from '../sync/namespace-pass.ts';
import type { SyncPolicy } from '../sync/world.ts';

export interface ClusterCacheOptions {
  readonly client: KubeClient;
  readonly policy: SyncPolicy;
  readonly namespaceSelector: LabelPredicate;
  readonly log: Logger;
  /** Told of namespaces for which the decisions may have changed, and of the kind that changed. */
  readonly onDirty: (namespaces: Iterable<string>, resource: Resource) => void;
  readonly onReflectorState: (resource: string, state: ReflectorState) => void;
}

/** Any reflector, whatever its records. */
type AnyReflector = Pick<Reflector<unknown>, 'listOnce' | 'run' | 'waitForSync' | 'state' | 'hasSynced' | 'staleForMs'>;

/** How old knowledge of a kind may be to be decided upon; more than a watch or two that break. */
const staleAllowedMs = 30_000;

/** How often the log is reminded of what the start waits for. */
const syncReminderMs = 30_000;

function byName(object: JsonObject): string | undefined {
  return nameAt(object, 'metadata', 'name');
}

function byNamespaceAndName(object: JsonObject): string | undefined {
  const namespace = nameAt(object, 'metadata', 'namespace');
  const name = nameAt(object, 'metadata', 'name');
  return namespace === undefined || name === undefined ? undefined : namespacedKey(namespace, name);
}

/**
 * The six kinds that the decisions rest on, kept as slim records: the stores, what fills them, and the state built on
 * them. `listAll` fills them once; `run` keeps them up to date.
 */
export class ClusterCache {
  readonly #options: ClusterCacheOptions;
  /** By kind, as `backups.velero.io`. */
  readonly #reflectors = new Map<string, AnyReflector>();
  /** Where the answers to our own requests go. */
  readonly nonAdminBackups: PassContext['nonAdminBackups'];
  readonly state: ClusterState;
  readonly #storageLocations: Store<StorageLocationRecord>;

  constructor(options: ClusterCacheOptions) {
    this.#options = options;
    const { policy, namespaceSelector } = options;
    const stores = {
      backups: this.#store<BackupRecord>(),
      storageLocations: this.#store<StorageLocationRecord>(),
      locationOwners: this.#store<LocationOwnerRecord>(),
      deleteRequests: this.#store<DeleteRequestRecord>(),
      namespaces: this.#store<NamespaceRecord>(),
      nonAdminBackups: this.#store<NonAdminBackupRecord>(),
    };
    const state = new ClusterState(stores, policy);
    this.#storageLocations = stores.storageLocations;
    this.state = state;
    const inOadpNamespace = { namespace: policy.oadpNamespace, key: byName };

    this.#onChange(backupStorageLocations, stores.storageLocations, (...change) =>
      state.storageLocationChanged(...change),
    );
    this.#onChange(nonAdminBackupStorageLocations, stores.locationOwners, (key) => state.locationOwnerChanged(key));
    this.#onChange(deleteBackupRequests, stores.deleteRequests, (...change) => state.deleteRequestChanged(...change));
    this.#onChange(namespaces, stores.namespaces, (key) => state.namespaceChanged(key));
    this.#onChange(nonAdminBackups, stores.nonAdminBackups, (key) => state.nonAdminBackupChanged(key));
    this.#onChange(backups, stores.backups, (...change) => state.backupChanged(...change));
    this.#reflect({
      resource: namespaces,
      key: byName,
      project: (object) => toNamespaceRecord(object, namespaceSelector),
      store: stores.namespaces,
    });
    this.#reflect({
      resource: backupStorageLocations,
      ...inOadpNamespace,
      project: toStorageLocationRecord,
      store: stores.storageLocations,
    });
    this.#reflect({
      resource: nonAdminBackupStorageLocations,
      key: byNamespaceAndName,
      project: toLocationOwnerRecord,
      store: stores.locationOwners,
    });
    this.#reflect({
      resource: deleteBackupRequests,
      ...inOadpNamespace,
      project: toDeleteRequestRecord,
      store: stores.deleteRequests,
    });
    this.#reflect({
      resource: backups,
      ...inOadpNamespace,
      labelSelector: nacLabelSelector,
      project: toBackupRecord,
      store: stores.backups,
    });
    const nabs = this.#reflect({
      resource: nonAdminBackups,
      key: byNamespaceAndName,
      project: toNonAdminBackupRecord,
      store: stores.nonAdminBackups,
    });
    this.nonAdminBackups = {
      set: (key, record, resourceVersion) => {
        nabs.learn(key, record, resourceVersion);
      },
      delete: (key) => {
        stores.nonAdminBackups.delete(key);
      },
    };
  }

  /** The admin's storage locations whose backups count: the default ones, and those that the settings name. */
  get adminLocations(): readonly StorageLocationRecord[] {
    const { storageLocations } = this.#options.policy;
    return [...this.#storageLocations.values()].filter((location) => isAdmins(location, storageLocations));
  }

  /** Whether every kind has been listed once. Before that nothing may be decided. */
  get hasSynced(): boolean {
    return [...this.#reflectors.values()].every(({ hasSynced }) => hasSynced);
  }

  /** Whether a first list is still being read. */
  get isListing(): boolean {
    return [...this.#reflectors.values()].some(({ state }) => state.phase === 'syncing');
  }

  /**
   * Which kind is too far behind the server for a decision, and why; undefined where none is. What is known of a kind
   * that cannot be read any more says nothing about what is there: it is neither there nor gone (field case D3).
   */
  get stale(): string | undefined {
    const kind = this.staleKind;
    const state = this.#reflectors.get(kind ?? '')?.state;
    if (kind === undefined || state === undefined) return undefined;
    return `${kind}: ${state.phase}${state.reason === undefined ? '' : `, ${state.reason}`}`;
  }

  /** The kind that `stale` is about, as `backups.velero.io`. */
  get staleKind(): string | undefined {
    for (const [kind, { staleForMs }] of this.#reflectors) if (staleForMs > staleAllowedMs) return kind;
    return undefined;
  }

  /**
   * Resolves when every kind has been listed once. What is still in the way is told to the log now and then. Rejects
   * with KubeError `Aborted` on the signal.
   */
  async waitForSync(signal: AbortSignal): Promise<void> {
    while (!this.hasSynced) {
      try {
        await Promise.all(
          [...this.#reflectors.values()].map((reflector) =>
            reflector.waitForSync({ signal, timeoutMs: syncReminderMs }),
          ),
        );
      } catch (error) {
        if (!(error instanceof SyncTimeoutError)) throw error;
        this.#options.log.warn({ detail: error.message }, 'still waiting for the first lists');
      }
    }
  }

  /**
   * Lists every kind once, locations before all others: a location that says that Velero is through with its bucket must
   * not be younger than the Backups. Rejects with the first KubeError.
   */
  async listAll(signal: AbortSignal, onListed: (listed: number, all: number) => void): Promise<void> {
    let listed = 0;
    const list = async (reflector: AnyReflector): Promise<void> => {
      await reflector.listOnce(signal);
      listed += 1;
      onListed(listed, this.#reflectors.size);
    };
    const [locations, others] = partition(
      [...this.#reflectors],
      ([resource]) => resource === qualifiedName(backupStorageLocations),
    );
    for (const [, reflector] of locations) await list(reflector);
    await Promise.all(others.map(([, reflector]) => list(reflector)));
  }

  /** Lists and watches every kind until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#reflectors.values()].map((reflector) => reflector.run(signal)));
  }

  #store<R>(): Store<R> {
    return new Store<R>({
      onListenerError: (error, key) => {
        this.#options.log.error({ err: error, key }, 'change not taken in; the next resync takes it in');
      },
    });
  }

  #onChange<R>(
    resource: Resource,
    store: Store<R>,
    affected: (...change: Parameters<ChangeListener<R>>) => Iterable<string>,
  ): void {
    store.onChange((...change) => {
      this.#options.onDirty(affected(...change), resource);
    });
  }

  #reflect<R>(options: Omit<ReflectorOptions<R>, 'client' | 'log'>): Reflector<R> {
    const { client, log, onReflectorState } = this.#options;
    const reflector = new Reflector<R>({ ...options, client, log });
    const resource = qualifiedName(options.resource);
    reflector.onState((state) => {
      onReflectorState(resource, state);
    });
    this.#reflectors.set(resource, reflector);
    return reflector;
  }
}
