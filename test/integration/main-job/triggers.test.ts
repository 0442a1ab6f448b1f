import { beforeAll, describe, expect, it } from 'vitest';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import type { JsonObject, Resource } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { day, hour, minute } from '../../support/gen/api-objects.ts';
import { fromNow } from '../../support/gen/live-objects.ts';
import { startNamespaceDeletion } from '../../support/namespaces.ts';
import { mainJob, untilTheEndOfTheFile, type Controller } from './support/main-job.ts';
import { byName, expectedNab } from './support/nabs.ts';
import { planReport } from './support/reports.ts';

/**
 * What happens to the cluster while the controller runs, and what must come of it. There is no interval here (SYNC_PERIOD=0), so
 * that whatever comes back does so because of the event, and not because somebody looked again.
 */
const job = await mainJob();
const { gen, objects, oadpNamespace } = job;
let controller: Controller;

beforeAll(async () => {
  await objects.create(gen.storageLocation());
  controller = await job.controller(['--namespace-selector=tenant!=no'], { SYNC_PERIOD: '0' }, untilTheEndOfTheFile);
  await controller.firstPass();
});

type Shape = Omit<Parameters<typeof gen.backup>[0], 'namespace'>;

async function makeBackup(namespace: string, shape: Shape = {}): Promise<JsonObject> {
  return await objects.create(gen.backup({ namespace, ...shape }));
}

function nameOf(object: JsonObject): string {
  return stringAt(objectAt(object, 'metadata'), 'name') ?? '';
}

function refOf(object: JsonObject): { namespace: string; name: string } {
  const { namespace, name } = objectAt(object, 'metadata');
  return { namespace: String(namespace), name: String(name) };
}

/** Lays a change over an object of the OADP namespace; returns the object. */
async function change(resource: Resource, name: string, patch: JsonObject): Promise<JsonObject> {
  return await objects.patch(resource, { namespace: oadpNamespace, name }, patch);
}

/** Waits until the namespace has exactly the NABs of these Backups, complete. */
async function comeBack(namespace: string, backups: readonly JsonObject[], nabslName?: string): Promise<void> {
  const due = backups.map((backup) => expectedNab(backup, nabslName)).sort(byName);
  await eventually(async () => {
    expect(await job.nabs(namespace)).toEqual(due);
  });
}

let markers = 0;

/** Waits until the controller has taken in all Backups made so far: they reach it in the order in which they were made. */
async function caughtUp(): Promise<void> {
  markers += 1;
  const namespace = await job.createTenant(`marker-${markers}`);
  await comeBack(namespace, [await makeBackup(namespace)]);
}

/** Waits until the controller has decided so about the one Backup of the namespace; no NAB may be there. */
async function staysAway(namespace: string, reason: string): Promise<void> {
  await controller.line('namespace reconciled', { namespace, changed: { [reason]: 1 } });
  expect(await job.nabs(namespace)).toEqual([]);
}

/** A finished Backup with a request to delete it that the controller knows of: the two reach it on different watches. */
async function backupBeingDeleted(
  namespace: string,
  name: string,
): Promise<{ readonly request: JsonObject; readonly backup: JsonObject }> {
  const backupName = `${name}-backup`;
  await makeBackup(namespace, { nacuuid: backupName, status: { phase: 'InProgress' } });
  await staysAway(namespace, 'NotFinished');
  const request = await objects.create(gen.deleteRequest({ name, backupName }));
  await staysAway(namespace, 'BeingDeleted');
  const backup = await change(kinds.backups, backupName, { status: gen.backup({ namespace })['status'] });
  await caughtUp();
  expect(await job.nabs(namespace)).toEqual([]);
  return { request, backup };
}

describe('a namespace', () => {
  it('that is deleted and made anew has all its NABs again, at once', async () => {
    const count = 20;
    const namespace = await job.createTenant('phoenix');
    const backups = await Promise.all(
      Array.from({ length: count }, (_, n) => makeBackup(namespace, { name: `b${n}` })),
    );
    await comeBack(namespace, backups);

    await job.deleteTenant('phoenix');
    expect(await job.nabs(namespace)).toEqual([]);
    await job.createTenant('phoenix');
    const made = performance.now();
    await eventually(
      async () => {
        expect(await objects.list(kinds.nonAdminBackups, { namespace })).toHaveLength(count);
      },
      10_000,
      10,
    );
    const seen = performance.now();
    await comeBack(namespace, backups);
    console.log(
      `re-created namespace: ${count} NABs there after ${(seen - made).toFixed(0)} ms, complete after ${(performance.now() - made).toFixed(0)} ms`,
    );
  });

  it('that never was gets its NABs when it is made', async () => {
    const namespace = job.tenant('later');
    const backup = await makeBackup(namespace);
    await staysAway(namespace, 'NamespaceMissing');
    await job.createTenant('later');
    await comeBack(namespace, [backup]);
  });

  it('that is being deleted gets nothing, and no failed attempt either', async () => {
    const namespace = await job.createTenant('going');
    await startNamespaceDeletion(objects, namespace);
    await makeBackup(namespace);
    await staysAway(namespace, 'NamespaceTerminating');
    await job.deleteTenant('going');
  });

  it('gets its NABs when it is labelled so that the selector takes it', async () => {
    const namespace = await job.createTenant('opted-out', { tenant: 'no' });
    const backup = await makeBackup(namespace);
    await staysAway(namespace, 'NamespaceNotSelected');
    await objects.patch(kinds.namespaces, { name: namespace }, { metadata: { labels: { tenant: null } } });
    await comeBack(namespace, [backup]);
  });
});

describe('a Backup', () => {
  it('that finishes later has its NAB when it does', async () => {
    const namespace = await job.createTenant('finishes');
    const running = await makeBackup(namespace, { status: { phase: 'InProgress', completionTimestamp: undefined } });
    await staysAway(namespace, 'NotFinished');
    const done = await change(kinds.backups, nameOf(running), {
      status: { phase: 'Completed', completionTimestamp: fromNow(0) },
    });
    await comeBack(namespace, [done]);
  });

  it('that Velero reads again from the bucket has its NAB again, after a plain delete took both (field case A6)', async () => {
    const namespace = await job.createTenant('reread');
    const backup = await makeBackup(namespace);
    await comeBack(namespace, [backup]);
    // In this order, as the NAC does it on the deletion of a NAB.
    await objects.deleteObject(backup);
    await objects.delete(kinds.nonAdminBackups, { namespace, name: 'daily' });
    await caughtUp();
    expect(await job.nabs(namespace)).toEqual([]);
    await comeBack(namespace, [await makeBackup(namespace, { nacuuid: nameOf(backup) })]);
  });

  it('that goes away takes no NAB with it, and mends the one that said meanwhile that it was missing', async () => {
    const namespace = await job.createTenant('away');
    const backup = await makeBackup(namespace);
    await comeBack(namespace, [backup]);
    await objects.deleteObject(backup);
    const ref = { namespace, name: 'daily' };
    const lost = { type: 'Accepted', status: 'False', reason: 'VeleroBackupNotFound', message: 'not found' };
    await objects.setStatus(kinds.nonAdminBackups, ref, {
      phase: 'BackingOff',
      conditions: [{ ...lost, lastTransitionTime: fromNow(0) }],
    });
    await caughtUp();
    expect(await objects.get(kinds.nonAdminBackups, ref)).toMatchObject({ status: { phase: 'BackingOff' } });
    const again = await makeBackup(namespace, { nacuuid: nameOf(backup) });
    await comeBack(namespace, [again]);
  });

  it('gets its NAB when the DeleteBackupRequest for it is through and it is still there', async () => {
    const namespace = await job.createTenant('locked');
    const { request, backup } = await backupBeingDeleted(namespace, 'locked');
    await objects.setStatus(kinds.deleteBackupRequests, refOf(request), { phase: 'Processed', errors: ['locked'] });
    await comeBack(namespace, [backup]);
  });

  it('gets its NAB when the DeleteBackupRequest for it is taken back', async () => {
    const namespace = await job.createTenant('spared');
    const { request, backup } = await backupBeingDeleted(namespace, 'spared');
    await objects.deleteObject(request);
    await comeBack(namespace, [backup]);
  });

  it('that is forged into shape later is believed from then on only', async () => {
    const namespace = await job.createTenant('forged');
    const backup = await makeBackup(namespace, { spec: { includedNamespaces: ['*'] } });
    await caughtUp();
    expect(await job.nabs(namespace)).toEqual([]);
    const mended = await change(kinds.backups, nameOf(backup), { spec: { includedNamespaces: [namespace] } });
    await comeBack(namespace, [mended]);
  });

  it('a newer one of the same name does not take the place of the NAB that is there', async () => {
    const namespace = await job.createTenant('newer');
    const first = await makeBackup(namespace, { status: { completionTimestamp: fromNow(-2 * day) } });
    await comeBack(namespace, [first]);
    await makeBackup(namespace);
    await controller.line('namespace reconciled', { namespace, changed: { NameTaken: 1 } });
    await comeBack(namespace, [first]);
  });
});

describe('a storage location', () => {
  it('brings its backups back when it becomes a default one', async () => {
    const namespace = await job.createTenant('promoted');
    await objects.create(gen.storageLocation({ name: 'promoted', spec: { default: false } }));
    const backup = await makeBackup(namespace, { spec: { storageLocation: 'promoted' } });
    await caughtUp();
    expect(await job.nabs(namespace)).toEqual([]);
    await change(kinds.backupStorageLocations, 'promoted', { spec: { default: true } });
    await comeBack(namespace, [backup]);
  });

  it('brings them back when it is made after them', async () => {
    const namespace = await job.createTenant('located');
    const backup = await makeBackup(namespace, { spec: { storageLocation: 'located' } });
    await caughtUp();
    expect(await job.nabs(namespace)).toEqual([]);
    await objects.create(gen.storageLocation({ name: 'located' }));
    await comeBack(namespace, [backup]);
  });

  it('brings expired ones back when it becomes read-only, as for disaster recovery', async () => {
    const namespace = await job.createTenant('recovered');
    await objects.create(gen.storageLocation({ name: 'recovered' }));
    const backup = await makeBackup(namespace, {
      spec: { storageLocation: 'recovered' },
      status: { expiration: fromNow(-minute) },
    });
    await staysAway(namespace, 'Expired');
    await change(kinds.backupStorageLocations, 'recovered', { spec: { accessMode: 'ReadOnly' } });
    await comeBack(namespace, [backup]);
  });

  it('of a tenant brings them back when its NABSL is made after it', async () => {
    const namespace = await job.createTenant('owner');
    await objects.create(gen.ownedStorageLocation({ namespace, name: 'owned' }));
    const backup = await makeBackup(namespace, { spec: { storageLocation: 'owned' } });
    await caughtUp();
    expect(await job.nabs(namespace)).toEqual([]);
    await objects.create(gen.nonAdminStorageLocation({ namespace, nacuuid: 'owned' }));
    await comeBack(namespace, [backup], 'bucket');
  });

  it('of a tenant has no say once its NABSL is gone', async () => {
    const namespace = await job.createTenant('disowned');
    await objects.create(gen.ownedStorageLocation({ namespace, name: 'disowned' }));
    const nabsl = await objects.create(gen.nonAdminStorageLocation({ namespace, nacuuid: 'disowned' }));
    const first = await makeBackup(namespace, { spec: { storageLocation: 'disowned' } });
    await comeBack(namespace, [first], 'bucket');
    await objects.deleteObject(nabsl);
    await makeBackup(namespace, { name: 'late', spec: { storageLocation: 'disowned' } });
    await caughtUp();
    await comeBack(namespace, [first], 'bucket');
  });

  it('that Velero is still reading is waited for, and decided about as soon as it is through', async () => {
    const namespace = await job.createTenant('reading');
    const name = 'reading';
    await objects.create(gen.storageLocation({ name, status: { lastSyncedTime: fromNow(-hour) } }));
    const inReading = (completed: number): Shape => ({
      spec: { storageLocation: name },
      status: { completionTimestamp: fromNow(completed) },
    });
    await makeBackup(namespace, inReading(-2 * day));
    await staysAway(namespace, 'LocationSyncing');
    // In random order: the newer backup of the same name comes last, and had the older one been taken, too late.
    const newer = await makeBackup(namespace, inReading(-day));
    await objects.setStatus(
      kinds.backupStorageLocations,
      { namespace: oadpNamespace, name },
      {
        lastSyncedTime: fromNow(minute),
      },
    );
    await comeBack(namespace, [newer]);
  });
});

describe('a NAB', () => {
  it('that is removed while its Backup stays comes back', async () => {
    const namespace = await job.createTenant('removed');
    const backups = [await makeBackup(namespace), await makeBackup(namespace, { name: 'weekly' })];
    await comeBack(namespace, backups);
    await objects.delete(kinds.nonAdminBackups, { namespace, name: 'daily' });
    await comeBack(namespace, backups);
  });

  it('that stood in the way gives it free when it goes', async () => {
    const namespace = await job.createTenant('in-the-way');
    await objects.create(gen.nonAdminBackup({ namespace, nacuuid: 'of-another-backup' }));
    const backup = await makeBackup(namespace);
    await controller.line('namespace reconciled', { namespace, changed: { NameTaken: 1 } });
    await objects.delete(kinds.nonAdminBackups, { namespace, name: 'daily' });
    await comeBack(namespace, [backup]);
  });
});

describe('at the end of all that', () => {
  it('there was one pass, at the start: nothing of it came from an interval', () => {
    const log = controller.log();
    expect(log.filter(({ msg }) => msg === 'pass over all namespaces done')).toHaveLength(1);
    expect(log).toContainEqual(expect.objectContaining({ msg: 'sync period in force', syncPeriod: 'off' }));
  });

  it('nothing failed, and nothing is left to be done', async () => {
    expect(controller.log().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
    expect(controller.log().filter(({ outcome }) => outcome === 'failed')).toEqual([]);
    const { counts } = await job.json(planReport, ['plan', '--namespace-selector=tenant!=no']);
    expect(counts).toMatchObject({ create: 0, repair: 0, waiting: 0 });
  });
});
