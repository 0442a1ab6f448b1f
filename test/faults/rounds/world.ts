import { setTimeout as sleep } from 'node:timers/promises';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import { resourcePath } from '../../../src/kube/resource.ts';
import type { JsonObject, Resource } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { backupNotFound, day, hour, minute } from '../../support/gen/api-objects.ts';
import { fromNow } from '../../support/gen/live-objects.ts';
import type { LiveObjects } from '../../support/gen/live-objects.ts';
import type { Objects } from '../../support/objects.ts';
import { oadpNamespace } from '../stage.ts';
import type { Stage } from '../stage.ts';
import { persist, persistUnless } from '../persist.ts';
import type { BackupSpec, NabSpec, Scenario, WorldAction } from './scenario.ts';

/** A backup of the world, whether it is there at present or not. */
interface KnownBackup {
  readonly spec: BackupSpec;
  /** Name of the Velero Backup. */
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly location: string;
  /** The same however often Velero reads it from the bucket. */
  readonly times: { readonly start: string; readonly completion: string; readonly expiration: string };
  finished: boolean;
}

/** A NAB that nab-sync did not create. */
export interface PremadeNab {
  readonly kind: NabSpec['kind'];
  readonly object: JsonObject;
}

const comesBack: ReadonlySet<BackupSpec['kind']> = new Set<BackupSpec['kind']>([
  'completed',
  'partiallyFailed',
  'failed',
  'settling',
  'expiredReadOnly',
  'inProgress',
]);

const events: Resource = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

/** How long the API server may go on to admit creates into a namespace after it was marked as being deleted. */
const admissionLagMs = 200;

/**
 * The tenants, their backups and what happens to them in a round. It keeps book of what can ever have been due, for
 * nab-sync deletes nothing: a NAB that was right when it was created stays.
 */
export class World {
  readonly #objects: Objects;
  readonly #gen: LiveObjects;
  readonly #scenario: Scenario;
  readonly #backups: KnownBackup[] = [];
  /** `LOCATION of NAMESPACE`, for all that ever were. */
  readonly #owned = new Set<string>();
  /** By uid. */
  readonly premade = new Map<string, PremadeNab>();

  constructor({ objects, gen }: Pick<Stage, 'objects' | 'gen'>, scenario: Scenario) {
    this.#objects = objects;
    this.#gen = gen;
    this.#scenario = scenario;
  }

  async build(): Promise<void> {
    const { tenants, backups, bulk, nabs } = this.#scenario;
    const settled = { lastSyncedTime: fromNow(hour) };
    await Promise.all([
      this.#make(this.#gen.storageLocation({ status: settled })),
      this.#make(this.#gen.storageLocation({ name: 'archive', spec: { accessMode: 'ReadOnly' }, status: settled })),
      this.#make(this.#gen.storageLocation({ name: 'slow', status: { lastSyncedTime: fromNow(-hour) } })),
      this.#make(this.#gen.storageLocation({ name: 'foreign', spec: { default: false }, status: settled })),
      ...tenants.map(async ({ exists }, tenant) => {
        const namespace = this.#tenant(tenant);
        await this.#make(this.#gen.ownedStorageLocation({ namespace, status: settled }));
        this.#owned.add(`${bucketOf(namespace)} of ${namespace}`);
        if (exists) await this.#createNamespace(namespace);
      }),
    ]);
    const specs = Array.from({ length: bulk }, (): BackupSpec => ({
      kind: 'completed',
      tenant: 0,
      name: 'daily',
      own: false,
      age: 100,
    }));
    for (const spec of backups) this.#know(spec);
    for (const [index, spec] of specs.entries()) this.#know(spec, `bulk-${index}`);
    // NABs first: a backup that is there before its NAB would be re-created before the test has made it.
    for (const spec of nabs) await this.#makeNab(spec);
    await Promise.all(this.#backups.map((backup) => this.#makeBackup(backup)));
  }

  /** Does it, however long the servers are away. */
  async perform(action: WorldAction): Promise<void> {
    switch (action.do) {
      case 'recreateNamespace':
        await this.#deleteNamespace(this.#tenant(action.tenant));
        await this.#createNamespace(this.#tenant(action.tenant));
        return;
      case 'deleteNamespace':
        await this.#deleteNamespace(this.#tenant(action.tenant));
        return;
      case 'createNamespace':
        await this.#createNamespace(this.#tenant(action.tenant));
        return;
      case 'deleteNab': {
        const { namespace, name } = this.#backup(action.backup);
        await persist(() => this.#objects.delete(kinds.nonAdminBackups, { namespace, name }));
        return;
      }
      case 'userMakesNab':
        await this.#makeNab({ kind: 'users', backup: action.backup });
        return;
      case 'addBackup':
        await this.#makeBackup(this.#know(action.spec));
        return;
      case 'finishBackup':
        await this.#finish(this.#backup(action.backup));
        return;
      case 'deleteBackup':
        await persist(() => this.#objects.delete(kinds.backups, inOadp(this.#backup(action.backup).id)));
        return;
      case 'rereadBackup': {
        const backup = this.#backup(action.backup);
        await persist(() => this.#objects.delete(kinds.backups, inOadp(backup.id)));
        await this.#makeBackup(backup);
        return;
      }
      case 'requestDeletion': {
        const { id } = this.#backup(action.backup);
        await this.#make(this.#gen.deleteRequest({ name: `delete-${id}`, backupName: id }));
        return;
      }
      case 'reownLocation':
        await this.#reown(this.#tenant(action.tenant), this.#tenant(action.to));
        return;
      case 'dropOwner':
        await this.#dropOwner(this.#tenant(action.tenant));
        return;
      case 'restoreOwner':
        await this.#makeOwner(this.#tenant(action.tenant), bucketOf(this.#tenant(action.tenant)));
        return;
      case 'replaceOwner':
        await this.#dropOwner(this.#tenant(action.tenant));
        await this.#makeOwner(this.#tenant(action.tenant), `${bucketOf(this.#tenant(action.tenant))}-new`);
        return;
      case 'stampLocations':
        await persistUnless([404], () =>
          this.#objects.setStatus(kinds.backupStorageLocations, inOadp('slow'), { lastSyncedTime: fromNow(hour) }),
        );
        return;
    }
  }

  /** Whether a NAB with this sync label can ever have been due under that name. */
  canHaveBeenDue(label: string, namespace: string, name: string): boolean {
    return this.#backups.some(
      (backup) =>
        backup.id === label &&
        backup.namespace === namespace &&
        backup.name === name &&
        (comesBack.has(backup.spec.kind) || backup.spec.kind === 'otherTenants') &&
        backup.finished &&
        (!backup.location.endsWith(bucketSuffix) || this.#owned.has(`${backup.location} of ${namespace}`)),
    );
  }

  #tenant(index: number): string {
    return `team-${index % this.#scenario.tenants.length}`;
  }

  #backup(index: number): KnownBackup {
    const backup = this.#backups[index % this.#backups.length];
    if (backup === undefined) throw new Error('the world has no backups');
    return backup;
  }

  #know(spec: BackupSpec, bulkName?: string): KnownBackup {
    const number = this.#backups.length;
    const tenant = this.#tenant(spec.tenant);
    const special: Partial<Record<BackupSpec['kind'], Partial<KnownBackup>>> = {
      settling: { location: 'slow' },
      expiredReadOnly: { location: 'archive' },
      otherTenants: { location: bucketOf(this.#tenant(spec.tenant + 1)) },
      copiedNacuuid: { name: `stolen-${number}` },
      protectedNamespace: { namespace: 'kube-system' },
      oadpNamespace: { namespace: oadpNamespace },
      unknownLocation: { location: 'nowhere' },
      unwatchedLocation: { location: 'foreign' },
      illegalName: { name: 'Daily_BACKUP' },
    };
    const backup: KnownBackup = {
      spec,
      id: `${tenant}-${bulkName ?? spec.name}-${number}`,
      namespace: tenant,
      name: bulkName ?? spec.name,
      location: spec.own ? bucketOf(tenant) : 'default',
      times: {
        start: fromNow(-spec.age * minute - minute),
        completion: fromNow(-spec.age * minute),
        expiration: fromNow(spec.kind === 'expired' || spec.kind === 'expiredReadOnly' ? -minute : 29 * day),
      },
      finished: spec.kind !== 'inProgress',
      ...special[spec.kind],
    };
    this.#backups.push(backup);
    return backup;
  }

  #object(backup: KnownBackup): JsonObject {
    const { spec, id, namespace, name, location, times, finished } = backup;
    const { kind } = spec;
    const number = this.#backups.indexOf(backup);
    const phases: Partial<Record<BackupSpec['kind'], string>> = {
      partiallyFailed: 'PartiallyFailed',
      failed: 'Failed',
      failedValidation: 'FailedValidation',
      deleting: 'Deleting',
    };
    const stored = finished && kind !== 'failedValidation';
    return this.#gen.backup({
      // Another's: any but its own.
      nacuuid: kind === 'copiedNacuuid' ? this.#backup(number + 1).id : id,
      namespace,
      name,
      metadata: { name: id },
      labels: { 'velero.io/storage-location': location },
      annotations: kind === 'noOrigin' ? { 'openshift.io/oadp-nab-origin-namespace': undefined } : {},
      spec: {
        storageLocation: location,
        includedNamespaces: kind === 'foreignContent' ? [namespace, 'another'] : [namespace],
      },
      status: {
        phase: finished ? (phases[kind] ?? 'Completed') : 'InProgress',
        startTimestamp: times.start,
        completionTimestamp: stored ? times.completion : undefined,
        expiration: times.expiration,
      },
    });
  }

  async #makeBackup(backup: KnownBackup): Promise<void> {
    if (backup.spec.kind === 'deletionRequested') {
      // Before the Backup, so that it is never due.
      await this.#make(this.#gen.deleteRequest({ name: `delete-${backup.id}`, backupName: backup.id }));
    }
    await this.#make(this.#object(backup));
  }

  async #finish(backup: KnownBackup): Promise<void> {
    if (backup.spec.kind !== 'inProgress') return;
    backup.finished = true;
    await persistUnless([404], () =>
      this.#objects.setStatus(kinds.backups, inOadp(backup.id), objectAt(this.#object(backup), 'status')),
    );
  }

  async #makeNab({ kind: wanted, backup }: NabSpec): Promise<void> {
    const { spec, id, namespace, name } = this.#backup(backup);
    if (!namespace.startsWith('team-') || spec.kind === 'illegalName') return;
    // Only of a backup that is due can there be a NAB that was re-created earlier.
    const kind = comesBack.has(spec.kind) && spec.kind !== 'inProgress' ? wanted : 'users';
    const synced = { syncedFrom: id, nacuuid: id };
    const shapes = {
      users: { nacuuid: `users-${this.premade.size}` },
      fresh: { nacuuid: undefined, status: { phase: 'New', conditions: undefined } },
      bare: synced,
      stale: { ...synced, status: { phase: 'BackingOff', conditions: [backupNotFound] } },
    };
    const { status, ...object } = this.#gen.nonAdminBackup({ namespace, name, ...shapes[kind] });
    const made = await this.#make(kind === 'bare' ? object : { ...object, status });
    const uid = stringAt(objectAt(made ?? {}, 'metadata'), 'uid');
    if (made !== undefined && uid !== undefined) this.premade.set(uid, { kind, object: made });
  }

  async #reown(tenant: string, to: string): Promise<void> {
    this.#owned.add(`${bucketOf(tenant)} of ${to}`);
    const patch = {
      metadata: {
        labels: { 'openshift.io/oadp-nabsl-origin-nacuuid': bucketOf(to) },
        annotations: { 'openshift.io/oadp-nabsl-origin-namespace': to },
      },
    };
    await persistUnless([404], () =>
      this.#objects.patch(kinds.backupStorageLocations, inOadp(bucketOf(tenant)), patch),
    );
  }

  async #makeOwner(namespace: string, nacuuid: string): Promise<void> {
    await this.#make(this.#gen.nonAdminStorageLocation({ namespace, nacuuid }));
  }

  async #dropOwner(namespace: string): Promise<void> {
    await persist(() => this.#objects.delete(kinds.nonAdminBackupStorageLocations, { namespace, name: 'bucket' }));
  }

  async #createNamespace(name: string): Promise<void> {
    await this.#make({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await this.#makeOwner(name, bucketOf(name));
  }

  /** Undefined where it is there already or cannot be: its namespace is missing or going away. */
  async #make(object: JsonObject): Promise<JsonObject | undefined> {
    let mine = false;
    return await persistUnless([403, 404, 409], async () => {
      // A first try may have got as far as the object without its status.
      if (mine) await this.#objects.deleteObject(object);
      mine = await this.#isMissing(object);
      return await this.#objects.create(object);
    });
  }

  async #isMissing(object: JsonObject): Promise<boolean> {
    const metadata = objectAt(object, 'metadata');
    const kind = this.#objects.kinds.find((offered) => offered.kind === object['kind']);
    if (kind === undefined) throw new Error(`the server does not serve ${String(object['kind'])}`);
    const ref = { namespace: stringAt(metadata, 'namespace'), name: stringAt(metadata, 'name') };
    return (await this.#objects.get(kind, ref)) === undefined;
  }

  /** As the support's `deleteNamespace`, but for the kinds of a round only, and through any outage. */
  async #deleteNamespace(name: string): Promise<void> {
    const path = resourcePath(kinds.namespaces, { name });
    for (;;) {
      const there = await persist(() => this.#objects.get(kinds.namespaces, { name }));
      if (there === undefined) return;
      await persistUnless([404, 409], () => this.#objects.api.call('DELETE', path));
      await sleep(admissionLagMs);
      for (const kind of [kinds.nonAdminBackups, kinds.nonAdminBackupStorageLocations, events]) {
        for (const object of await persist(() => this.#objects.list(kind, { namespace: name }))) {
          const ref = { namespace: name, name: stringAt(objectAt(object, 'metadata'), 'name') };
          await persist(() => this.#objects.delete(kind, ref));
        }
      }
      // An etcd that was put back meanwhile may have the namespace as it was before: then all of this begins anew.
      await persistUnless([404, 409], async () => {
        const marked = await this.#objects.get(kinds.namespaces, { name });
        if (objectAt(marked ?? {}, 'metadata')['deletionTimestamp'] === undefined) return;
        await this.#objects.api.call('PUT', `${path}/finalize`, { body: { ...marked, spec: { finalizers: [] } } });
      });
    }
  }
}

const bucketSuffix = '-bucket-1';

function bucketOf(tenant: string): string {
  return `${tenant}${bucketSuffix}`;
}

function inOadp(name: string): { namespace: string; name: string } {
  return { namespace: oadpNamespace, name };
}
