import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import { Reflector, type ReflectorState } from '../kube/reflector.ts';
import { qualifiedName } from '../kube/resource.ts';
import { Store } from '../kube/store.ts';
import { syncRequests } from '../oadp/kinds.ts';
import type { KnownRequests } from '../requests/request-writer.ts';
import { toSyncRequestRecord, type SyncRequestRecord } from '../requests/sync-request.ts';
import { namespacedKey } from '../sync/cluster-state.ts';

export interface SyncRequestSourceOptions {
  readonly client: KubeClient;
  readonly log: Logger;
  readonly onReflectorState: (state: ReflectorState) => void;
}

/**
 * The requests for a sync, wherever they are. Nothing waits for them: without their CRD, or the right to read them, there
 * are none, and all else goes on.
 */
export class SyncRequestSource implements KnownRequests {
  readonly store: Store<SyncRequestRecord>;
  readonly learn: KnownRequests['learn'];
  readonly #reflector: Reflector<SyncRequestRecord>;

  constructor({ client, log, onReflectorState }: SyncRequestSourceOptions) {
    this.store = new Store<SyncRequestRecord>({
      onListenerError: (error, key) => {
        log.error({ err: error, key }, 'sync request not taken in; it is looked at again soon');
      },
    });
    this.#reflector = new Reflector<SyncRequestRecord>({
      client,
      resource: syncRequests,
      key: (object) => {
        const request = toSyncRequestRecord(object);
        return request === undefined ? undefined : namespacedKey(request.namespace, request.name);
      },
      project: toSyncRequestRecord,
      store: this.store,
      log,
    });
    this.learn = (key, record, resourceVersion) => {
      this.#reflector.learn(key, record, resourceVersion);
    };
    let off = false;
    this.#reflector.onState((state) => {
      if (state.phase === 'kindNotInstalled' && !off) {
        const kind = qualifiedName(syncRequests);
        log.info({ kind }, 'sync requests are off until their kind is installed (manifests/crd)');
      }
      off = state.phase === 'kindNotInstalled';
      onReflectorState(state);
    });
  }

  /** Follows them until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#reflector.run(signal);
  }
}
