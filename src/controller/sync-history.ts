import isEqual from 'lodash/isEqual.js';
import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import { Complaints } from '../kube/complaints.ts';
import { KubeError } from '../kube/errors.ts';
import type { JsonObject } from '../kube/resource.ts';
import {
  afterPass,
  configMapResource,
  continued,
  neverSynced,
  readStatus,
  statusConfigMap,
  statusConfigMapName,
  statusData,
  type EndedPass,
  type SyncStatus,
} from './sync-status.ts';

export interface SyncHistoryOptions {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'update'>;
  readonly oadpNamespace: string;
  readonly log: Logger;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Told of the status whenever it changes, whether it could be kept or not. */
  readonly onStatus: (status: SyncStatus) => void;
}

/** How often a write begins anew because somebody else wrote in between. */
const tries = 3;

/**
 * Keeps how the passes went in a ConfigMap of the OADP namespace, so that it survives restarts. Nothing waits for it and
 * nothing depends on it: what cannot be kept is told in the log, and kept with the next pass.
 *
 * One for each time as leader: in between, another replica writes.
 */
export class SyncHistory {
  readonly #options: SyncHistoryOptions;
  #status: SyncStatus = neverSynced;
  /** What an earlier process left has been taken over. */
  #opened = false;
  #unsaved = false;
  #working: Promise<void> | undefined;
  readonly #complaints: Complaints;

  constructor(options: SyncHistoryOptions) {
    this.#options = options;
    this.#complaints = new Complaints(options.log);
  }

  /** Takes over what an earlier process left, without making anybody wait. */
  open(): void {
    this.#working ??= this.#work();
  }

  /** A pass is over. At most one write comes of it. */
  add(pass: EndedPass): void {
    this.#set(afterPass(this.#status, pass));
    this.#unsaved = true;
    this.#working ??= this.#work();
  }

  /** Resolves when all is written that can be, within the deadlines of a few requests. */
  async close(): Promise<void> {
    await this.#working;
  }

  #set(status: SyncStatus): void {
    this.#status = status;
    this.#options.onStatus(status);
  }

  /** Never rejects. */
  async #work(): Promise<void> {
    do {
      try {
        await this.#save();
        this.#complaints.end();
      } catch (error) {
        this.#complaints.tell(error, 'status of the passes not kept', { configMap: statusConfigMapName });
      }
    } while (this.#unsaved);
    this.#working = undefined;
  }

  async #save(): Promise<void> {
    for (let left = tries; ; left -= 1) {
      const present = await this.#present();
      this.#takeOver(present);
      const save = this.#unsaved;
      this.#unsaved = false;
      if (!save) return;
      try {
        await this.#write(present);
        return;
      } catch (error) {
        if (left === 1 || !isLostRace(error)) throw error;
        this.#unsaved = true;
      }
    }
  }

  async #present(): Promise<JsonObject | undefined> {
    const { client, oadpNamespace } = this.#options;
    try {
      return await client.get(configMapResource, { namespace: oadpNamespace, name: statusConfigMapName });
    } catch (error) {
      if (error instanceof KubeError && error.code === 'NotFound') return undefined;
      // The pass is told of with the next one.
      this.#unsaved = false;
      throw error;
    }
  }

  #takeOver(present: JsonObject | undefined): void {
    if (this.#opened) return;
    this.#opened = true;
    if (present === undefined) return;
    const { log, now } = this.#options;
    const { status, unreadable } = readStatus(present, now());
    if (unreadable.length > 0) {
      log.warn({ configMap: statusConfigMapName, unreadable }, 'kept status is unreadable in part; it is written anew');
    }
    this.#set(continued(status, this.#status));
  }

  async #write(present: JsonObject | undefined): Promise<void> {
    const { client, oadpNamespace } = this.#options;
    const body = statusConfigMap(this.#status, oadpNamespace, present);
    if (present === undefined) {
      await client.create(configMapResource, { namespace: oadpNamespace }, body);
    } else if (!isEqual(present['data'], statusData(this.#status))) {
      await client.update(configMapResource, { namespace: oadpNamespace, name: statusConfigMapName }, body);
    }
  }
}

function isLostRace(error: unknown): boolean {
  return error instanceof KubeError && ['Conflict', 'AlreadyExists', 'NotFound'].includes(error.code);
}
