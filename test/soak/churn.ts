import { objectAt, stringAt } from '../../src/kube/json.ts';
import { resourcePath } from '../../src/kube/resource.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { oadpNamespace, storedBackup } from '../bench/stored-backup.ts';
import type { World } from '../bench/world.ts';
import { eventually } from '../support/eventually.ts';

/** One tenant: his namespace, and his Backups by the name of the NAB that each belongs to. */
interface Tenant {
  readonly namespace: string;
  /** Names of the Velero Backups. */
  readonly backups: Map<string, string>;
  /** NABs that he has deleted. Doing that again and again would be met with back-off, and this is no test of that. */
  readonly deleted: Set<string>;
}

const tenantCount = 20;
const backupsEach = 12;

/**
 * Tenants who come and go. Their number stays the same while their names do not, so whatever is kept for a name that is gone
 * adds up.
 */
export class Churn {
  readonly #world: World;
  readonly #random: () => number;
  readonly #tenants: Tenant[] = [];
  #named = 0;
  #steps = 0;

  constructor(world: World, random: () => number) {
    this.#world = world;
    this.#random = random;
  }

  get steps(): number {
    return this.#steps;
  }

  async begin(): Promise<void> {
    while (this.#tenants.length < tenantCount) await this.#arrive();
  }

  /** One thing that happens in a cluster. */
  async step(): Promise<void> {
    this.#steps += 1;
    const tenant = this.#pick();
    switch (Math.floor(this.#random() * 6)) {
      case 0:
        await this.#leave(tenant);
        await this.#arrive();
        return;
      case 1:
        await this.#world.removeNamespace(tenant.namespace);
        await this.#world.addNamespace(tenant.namespace);
        return;
      case 2:
        await this.#expireOldest(tenant);
        await this.#backUp(tenant);
        return;
      case 3:
        await this.#deleteNab(tenant);
        return;
      case 4:
        await this.#finishDeleteRequest(tenant);
        return;
      default:
        await this.#stampLocation();
    }
  }

  /** Resolves when every Backup has its NAB with status, and there is no other; rejects after a minute. */
  async untilSettled(): Promise<void> {
    await eventually(() => {
      for (const { namespace, backups } of this.#tenants) {
        const { complete } = this.#world.observer.of(namespace);
        for (const name of backups.keys()) {
          if (!complete.has(`${namespace}/${name}`))
            throw new Error(`${namespace}/${name} is missing or has no status`);
        }
      }
      const expected = this.#tenants.reduce((sum, { backups }) => sum + backups.size, 0);
      const visible = this.#world.observer.of().visible.size;
      if (visible !== expected) throw new Error(`there are ${visible} NABs instead of ${expected}`);
    }, 90_000);
  }

  #pick(): Tenant {
    const tenant = this.#tenants[Math.floor(this.#random() * this.#tenants.length)];
    if (tenant === undefined) throw new Error('there are no tenants');
    return tenant;
  }

  #name(prefix: string): string {
    this.#named += 1;
    return `${prefix}-${this.#named.toString().padStart(6, '0')}`;
  }

  async #arrive(): Promise<void> {
    const tenant: Tenant = { namespace: this.#name('tenant'), backups: new Map(), deleted: new Set() };
    this.#tenants.push(tenant);
    await this.#world.addNamespace(tenant.namespace);
    for (let count = 0; count < backupsEach; count += 1) await this.#backUp(tenant);
  }

  async #leave(tenant: Tenant): Promise<void> {
    for (const name of [...tenant.backups.keys()]) await this.#removeBackup(tenant, name);
    tenant.backups.clear();
    await this.#world.removeNamespace(tenant.namespace);
    this.#tenants.splice(this.#tenants.indexOf(tenant), 1);
  }

  async #backUp(tenant: Tenant): Promise<void> {
    const name = this.#name('backup');
    const backup = storedBackup({ namespace: tenant.namespace, name });
    tenant.backups.set(name, stringAt(objectAt(backup, 'metadata'), 'name') ?? '');
    await this.#world.admin.call('POST', resourcePath(kinds.backups, { namespace: oadpNamespace }), backup);
  }

  /** Velero and the NAC take Backup and NAB away. */
  async #expireOldest(tenant: Tenant): Promise<void> {
    const [name] = tenant.backups.keys();
    if (name === undefined) return;
    await this.#removeBackup(tenant, name);
    await this.#world.objects.delete(kinds.nonAdminBackups, { namespace: tenant.namespace, name });
  }

  async #removeBackup(tenant: Tenant, name: string): Promise<void> {
    const { namespace, backups } = tenant;
    // A create that is under way would otherwise be done after everything is gone.
    const { observer } = this.#world;
    await observer.until(`${namespace}/${name} is complete`, 60_000, () =>
      observer.of(namespace).complete.has(`${namespace}/${name}`),
    );
    const backup = backups.get(name);
    backups.delete(name);
    await this.#world.admin.call('DELETE', resourcePath(kinds.backups, { namespace: oadpNamespace, name: backup }));
  }

  /** By the tenant, without deleteBackup: it is to come back. */
  async #deleteNab(tenant: Tenant): Promise<void> {
    const names = [...tenant.backups.keys()].filter((each) => !tenant.deleted.has(each));
    const name = names[Math.floor(this.#random() * names.length)];
    if (name === undefined) return;
    tenant.deleted.add(name);
    await this.#world.objects.delete(kinds.nonAdminBackups, { namespace: tenant.namespace, name });
  }

  /** A delete request that Velero has finished without success: it holds up the backup only while it is new. */
  async #finishDeleteRequest(tenant: Tenant): Promise<void> {
    const [backupName] = tenant.backups.values();
    const ref = { namespace: oadpNamespace, name: this.#name('request') };
    await this.#world.objects.create({
      apiVersion: 'velero.io/v1',
      kind: 'DeleteBackupRequest',
      metadata: ref,
      spec: { backupName },
    });
    await this.#world.objects.setStatus(kinds.deleteBackupRequests, ref, { phase: 'Processed', errors: ['not now'] });
    await this.#world.objects.delete(kinds.deleteBackupRequests, ref);
  }

  async #stampLocation(): Promise<void> {
    const lastSyncedTime = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z');
    const ref = { namespace: oadpNamespace, name: 'default' };
    await this.#world.objects.setStatus(kinds.backupStorageLocations, ref, { lastSyncedTime });
  }
}
