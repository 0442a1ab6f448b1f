import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { objectAt, stringAt } from '../../src/kube/json.ts';
import { qualifiedName } from '../../src/kube/resource.ts';
import type { Resource } from '../../src/kube/resource.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { loadCrds } from '../support/control-plane/crd-files.ts';
import { installCrds } from '../support/control-plane/install-crds.ts';
import { eventually } from '../support/eventually.ts';
import { faultBudget } from './budget.ts';
import { Replica } from './replica.ts';
import { Restore } from './restore.ts';
import { Stage } from './stage.ts';

/** Field case D16: kinds that are taken away, with all that is of them, and come back. */
let stage: Stage;
let restore: Restore;
let replica: Replica;

/** A kind that is not there is looked for every 15 s at the least. */
const foundAgainMs = 60_000;

beforeAll(async () => {
  stage = await Stage.open();
});

afterAll(async () => {
  await stage.close();
});

afterEach(async () => {
  await replica.close();
  await stage.reset();
});

function path(kind: Resource): string {
  return `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${qualifiedName(kind)}`;
}

async function remove(kind: Resource): Promise<void> {
  const { admin } = stage.controlPlane;
  await admin.call('DELETE', path(kind));
  await eventually(async () => {
    expect((await admin.request('GET', path(kind))).status).toBe(404);
  }, 60_000);
}

async function install(kind: Resource): Promise<void> {
  const crds = await loadCrds();
  const missing = crds.filter((crd) => stringAt(objectAt(crd, 'metadata'), 'name') === qualifiedName(kind));
  expect(missing).toHaveLength(1);
  await installCrds(stage.controlPlane.admin, missing);
}

async function startInSync(): Promise<void> {
  restore = new Restore(stage);
  await restore.prepare({ tenants: 3, backups: 4 });
  replica = await Replica.create(stage, { args: ['--no-leader-elect'] });
  await replica.start();
  await restore.untilRight(60_000);
}

describe('a kind that is removed and installed again (field case D16)', () => {
  it('NonAdminBackups: all come back by themselves', async () => {
    await startInSync();
    await remove(kinds.nonAdminBackups);
    await install(kinds.nonAdminBackups);
    await restore.untilRight(foundAgainMs);
    expect(replica.unexpectedExits).toEqual([]);
  });

  const others = [
    ['Backups', kinds.backups],
    ['storage locations', kinds.backupStorageLocations],
    ['NABSLs', kinds.nonAdminBackupStorageLocations],
    ['delete requests', kinds.deleteBackupRequests],
  ] as const;
  it.each(faultBudget().long ? others : others.slice(0, 1))(
    '%s: nothing is deleted meanwhile, and work goes on afterwards',
    async (_, kind) => {
      await startInSync();
      const before = await stage.objects.list(kinds.nonAdminBackups);
      const kept = await stage.objects.list(kind);
      await remove(kind);
      await install(kind);
      expect(await stage.objects.list(kinds.nonAdminBackups)).toEqual(before);
      for (const object of kept) await stage.objects.create(withoutServerFields(object));
      await restore.deleteNab('team-0', 'nab-0');
      await restore.addBackup('team-1');
      await restore.untilRight(foundAgainMs);
      expect(replica.unexpectedExits).toEqual([]);
    },
  );
});

function withoutServerFields(object: Record<string, unknown>): Record<string, unknown> {
  const { uid: _uid, resourceVersion: _version, managedFields: _fields, ...metadata } = objectAt(object, 'metadata');
  return { ...object, metadata };
}
