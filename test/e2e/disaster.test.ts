import { setTimeout as sleep } from 'node:timers/promises';
import shuffle from 'lodash/shuffle.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { objectAt, stringAt } from '../../src/kube/json.ts';
import type { JsonObject } from '../../src/kube/resource.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { mainJob, untilTheEndOfTheFile, type Controller } from '../integration/main-job/support/main-job.ts';
import { byName, expectedNab } from '../integration/main-job/support/nabs.ts';
import { planReport } from '../integration/main-job/support/reports.ts';
import { eventually } from '../support/eventually.ts';
import { day, hour } from '../support/gen/api-objects.ts';
import { fromNow } from '../support/gen/live-objects.ts';

/**
 * The whole story: a cluster is lost with everything in it, another one is set up in its place, Velero reads the buckets in
 * whatever order, and the tenants' namespaces come back one by one, while the controller runs through all of it.
 */
const job = await mainJob();
const { gen, objects } = job;
const names = ['red', 'green', 'blue'];
const perTenant = 6;
let controller: Controller;

/** What lies in the buckets: for each name an old backup and the one that replaced it. */
interface Bucket {
  readonly location: (lastSyncedTime: string | undefined) => JsonObject;
  readonly stored: readonly { readonly newer: JsonObject; readonly older: JsonObject }[];
}

const buckets: Bucket[] = [];
/** Those that have to be there in the end, each with the NABSL that its NAB has to name. */
const due: { readonly nacuuid: string; readonly nabslName: string | undefined }[] = [];

beforeAll(async () => {
  const adminsStored: Bucket['stored'][number][] = [];
  for (const [index, name] of names.entries()) {
    const namespace = job.tenant(name);
    // Blue has a bucket of his own.
    const own = name === 'blue';
    const location = own ? `${namespace}-own` : 'default';
    const stored = Array.from({ length: perTenant }, (_, number) => {
      const make = (age: number, version: number): JsonObject =>
        gen.backup({
          namespace,
          name: `backup-${number}`,
          nacuuid: `${namespace}-${number}-${version}`,
          spec: { storageLocation: location, includedResources: [`of-${index}-${number}-${version}`] },
          status: { completionTimestamp: fromNow(-age) },
        });
      due.push({ nacuuid: `${namespace}-${number}-1`, nabslName: own ? 'bucket' : undefined });
      // The names do not tell which is newer.
      return { newer: make(day, 1), older: make(number % 2 === 0 ? 2 * day : 3 * day, number % 2 === 0 ? 0 : 2) };
    });
    if (!own) {
      adminsStored.push(...stored);
      continue;
    }
    buckets.push({
      location: (lastSyncedTime) => gen.ownedStorageLocation({ namespace, name: location, status: { lastSyncedTime } }),
      stored,
    });
  }
  buckets.push({
    location: (lastSyncedTime) => gen.storageLocation({ status: { lastSyncedTime } }),
    stored: adminsStored,
  });
  controller = await job.controller([], { SYNC_PERIOD: '0' }, untilTheEndOfTheFile);
  await controller.firstPass();
}, 60_000);

/** Velero reads a bucket: Backups in any order, and at the end the time at which it was through. */
async function veleroReads({ location, stored }: Bucket): Promise<void> {
  const made = await objects.create(location(fromNow(-hour)));
  for (const backup of shuffle(stored.flatMap(({ newer, older }) => [newer, older]))) {
    await objects.create(backup);
    await sleep(Math.random() * 20);
  }
  const { namespace, name } = objectAt(made, 'metadata');
  await objects.setStatus(
    kinds.backupStorageLocations,
    { namespace: String(namespace), name: String(name) },
    // A second later than any of the Backups: their times are whole seconds.
    { lastSyncedTime: fromNow(1000) },
  );
}

async function tenantsComeBack(): Promise<void> {
  for (const name of shuffle(names)) {
    await sleep(Math.random() * 300);
    await job.createTenant(name);
    if (name === 'blue') {
      const namespace = job.tenant(name);
      await sleep(Math.random() * 300);
      await objects.create(gen.nonAdminStorageLocation({ namespace, nacuuid: `${namespace}-own` }));
    }
  }
}

async function everythingIsBack(): Promise<void> {
  const backups = await objects.list(kinds.backups, { namespace: job.oadpNamespace });
  const expected = due.map(({ nacuuid, nabslName }) => {
    const backup = backups.find((each) => stringAt(objectAt(each, 'metadata'), 'name') === nacuuid);
    return expectedNab(backup ?? {}, nabslName);
  });
  await eventually(async () => {
    expect(await job.nabs(...names.map((name) => job.tenant(name)))).toEqual(expected.sort(byName));
  }, 20_000);
}

async function everythingIsLost(): Promise<void> {
  await Promise.all(names.map((name) => job.deleteTenant(name)));
  for (const kind of [kinds.backups, kinds.backupStorageLocations]) {
    const lost = await objects.list(kind, { namespace: job.oadpNamespace });
    await Promise.all(lost.map((object) => objects.deleteObject(object)));
  }
}

describe('a cluster that is lost and set up anew', () => {
  it.each([1, 2])('has every tenant’s newest backups back, whatever came first: %i', async () => {
    await Promise.all([...buckets.map(veleroReads), tenantsComeBack()]);
    const through = performance.now();
    await everythingIsBack();
    console.log(`complete ${(performance.now() - through).toFixed(0)} ms after the last namespace and bucket`);
    const { counts } = await job.json(planReport, ['plan']);
    expect(counts).toEqual({ create: 0, repair: 0, none: 18, skip: 18, waiting: 0, conflict: 0 });

    await everythingIsLost();
    expect(await job.nabs(...names.map((name) => job.tenant(name)))).toEqual([]);
  });

  it('was served by one process, without a failure', () => {
    expect(controller.log().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
    expect(controller.log().filter(({ outcome }) => outcome === 'failed')).toEqual([]);
  });
});
