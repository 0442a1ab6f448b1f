import { pino } from 'pino';
import { KubeError, type KubeErrorCode } from '../../../../src/kube/errors.ts';
import { objectAt } from '../../../../src/kube/json.ts';
import type { JsonObject, ObjectRef } from '../../../../src/kube/resource.ts';
import { Store } from '../../../../src/kube/store.ts';
import { toBackupRecord } from '../../../../src/oadp/backup.ts';
import { RequestDesk, type RequestDeskOptions } from '../../../../src/requests/request-desk.ts';
import type { Retention } from '../../../../src/requests/retention.ts';
import { toSyncRequestRecord, type SyncRequestRecord } from '../../../../src/requests/sync-request.ts';
import { namespacedKey } from '../../../../src/sync/cluster-state.ts';
import type { ItemResult } from '../../../../src/sync/namespace-pass.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { veleroBackup } from '../../../support/gen/api-objects.ts';
import { scene, usualPolicy, type SceneObjects } from '../../sync/support/scene.ts';
import { requestObject, type RequestShape } from './sync-requests.ts';

export interface DeskOptions {
  readonly scene?: SceneObjects;
  readonly retention?: Retention;
  /** Namespaces, by label selector, that a list answers with. */
  readonly selected?: Readonly<Record<string, readonly string[]>>;
  /** What the next writes and lists run into, in order; undefined lets one through. */
  readonly faults?: (KubeErrorCode | undefined)[];
  /** Reconciles end by themselves as soon as they are asked for; default true. */
  readonly reconciles?: boolean;
  readonly isLeading?: () => boolean;
}

/** One write to a request, as `Running team-a/request`. */
export type Write = string;

/**
 * A desk over requests in memory: its writes come back through the store as a watch would bring them, and reconciles are
 * whatever the test says they are.
 */
export class DeskWorld {
  readonly clock = new ManualClock();
  readonly store = new Store<SyncRequestRecord>();
  readonly writes: Write[] = [];
  /** Namespaces that were enqueued, in order. */
  readonly enqueued: string[] = [];
  /** Phases of the answers that were told of. */
  readonly told: string[] = [];
  readonly objects = new Map<string, JsonObject>();
  stop = new AbortController();
  /** What reconciles report, by namespace; nothing where it is left out. */
  readonly items = new Map<string, readonly ItemResult[]>();
  desk: RequestDesk;
  #answering: Promise<void>;
  readonly #others: Promise<void>[] = [];
  readonly #options: DeskOptions;
  readonly #deskOptions: RequestDeskOptions;
  #version = 100;

  constructor(requests: readonly RequestShape[] = [], options: DeskOptions = {}) {
    this.#options = options;
    for (const request of requests) this.make(request);
    const { state } = scene(options.scene ?? {});
    this.#deskOptions = {
      client: {
        update: (_, ref, body) => this.#write(ref, body),
        delete: (_, ref, uid) => this.#delete(ref, uid),
        listPage: async (_, options) => {
          await Promise.resolve();
          this.#fault('list');
          const names = this.#options.selected?.[options?.labelSelector ?? ''] ?? [];
          return { items: names.map((name) => ({ metadata: { name } })), resourceVersion: '1', bytes: 1 };
        },
      },
      requests: {
        store: this.store,
        learn: (key, record) => {
          this.store.set(key, record);
        },
      },
      policy: usualPolicy,
      state,
      onAnswered: (phase) => {
        this.told.push(phase);
      },
      enqueue: (namespaces) => {
        this.enqueued.push(...namespaces);
        if (options.reconciles !== false) for (const namespace of namespaces) this.reconcileSoon(namespace);
      },
      retention: options.retention ?? { kept: 3, ttlMs: 0 },
      log: pino({ level: 'silent' }),
      clock: this.clock.process(),
      random: () => 0,
      stop: this.stop.signal,
      isLeading: options.isLeading,
    };
    this.desk = new RequestDesk(this.#deskOptions);
    this.#answering = this.desk.run();
  }

  /** Somebody makes a request, or changes one. */
  make(shape: RequestShape): void {
    const object = requestObject(shape);
    this.#put(object);
  }

  /** Somebody removes one. */
  remove(namespace: string, name: string): void {
    const key = namespacedKey(namespace, name);
    this.objects.delete(key);
    this.store.delete(key);
  }

  /** Another process leads from here on. */
  async nextLeader(): Promise<void> {
    await this.close();
    this.stop = new AbortController();
    this.desk = new RequestDesk({ ...this.#deskOptions, stop: this.stop.signal });
    this.#answering = this.desk.run();
  }

  /** The nab-sync of another OADP works on the same requests, for as long as this one; its reconciles are over at once. */
  beside(oadpNamespace: string, objects: SceneObjects): void {
    const desk: RequestDesk = new RequestDesk({
      ...this.#deskOptions,
      policy: { ...usualPolicy, oadpNamespace },
      state: scene(objects).state,
      enqueue: (namespaces) => {
        for (const namespace of namespaces) {
          queueMicrotask(() => {
            desk.begin(namespace)({ namespace, items: [], retry: undefined, againInMs: undefined });
          });
        }
      },
    });
    this.#others.push(desk.run());
  }

  /** The time as leader ends; resolves when nothing of the desk runs any more. */
  async close(): Promise<void> {
    this.stop.abort();
    await Promise.all([this.#answering, ...this.#others]);
  }

  reconcileSoon(namespace: string): void {
    queueMicrotask(() => {
      this.reconcile(namespace);
    });
  }

  reconcile(namespace: string): void {
    const hand = this.desk.begin(namespace);
    hand({ namespace, items: this.items.get(namespace) ?? [], retry: undefined, againInMs: undefined });
  }

  status(namespace: string, name: string): JsonObject {
    return objectAt(this.objects.get(namespacedKey(namespace, name)) ?? {}, 'status');
  }

  phases(): Record<string, unknown> {
    return Object.fromEntries([...this.objects].map(([key, object]) => [key, objectAt(object, 'status')['phase']]));
  }

  #put(object: JsonObject): void {
    const record = toSyncRequestRecord(object);
    if (record === undefined) throw new Error('not a request');
    const key = namespacedKey(record.namespace, record.name);
    this.objects.set(key, object);
    this.store.set(key, record);
  }

  async #write(ref: ObjectRef, body: JsonObject): Promise<JsonObject> {
    await Promise.resolve();
    this.#fault('update');
    const key = namespacedKey(ref.namespace ?? '', ref.name ?? '');
    const present = this.objects.get(key);
    if (present === undefined) throw failure('update', 'NotFound');
    const { resourceVersion } = objectAt(present, 'metadata');
    if (objectAt(body, 'metadata')['resourceVersion'] !== resourceVersion) throw failure('update', 'Conflict');
    this.#version += 1;
    const metadata = { ...objectAt(present, 'metadata'), resourceVersion: String(this.#version) };
    const written = { ...present, metadata, status: body['status'] };
    this.writes.push(`${String(objectAt(body, 'status')['phase'])} ${key}`);
    this.objects.set(key, written);
    return written;
  }

  async #delete({ namespace = '', name = '' }: ObjectRef, uid: string): Promise<void> {
    await Promise.resolve();
    this.#fault('delete');
    const key = namespacedKey(namespace, name);
    if (objectAt(this.objects.get(key) ?? {}, 'metadata')['uid'] !== uid) throw failure('delete', 'Conflict');
    this.writes.push(`deleted ${key}`);
    this.remove(namespace, name);
  }

  #fault(verb: string): void {
    const code = this.#options.faults?.shift();
    if (code !== undefined) throw failure(verb, code);
  }
}

function failure(verb: string, code: KubeErrorCode): KubeError {
  return new KubeError({ code, verb, resource: 'nonadminbackupsyncrequests.sync.oadp.openshift.io', message: code });
}

/** What became of a backup of team-a. */
export function item(outcome: ItemResult['outcome'], reason: ItemResult['reason'], name = 'daily'): ItemResult {
  const backup = toBackupRecord(veleroBackup({ nacuuid: `id-of-${name}`, name }));
  return { backup, outcome, reason, message: 'what happened' };
}
