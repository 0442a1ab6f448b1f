/**
 * nab-sync beside the real non-admin controller (migtools/oadp-non-admin, built with `go build ./cmd` in its checkout):
 * `NAC_BINARY=/path/to/it make test-nac`. It watches the whole cluster, so this file has an API server of its own.
 */
import assert from 'node:assert/strict';
import { openSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { objectAt, stringAt } from '../../src/kube/json.ts';
import type { JsonObject, Resource } from '../../src/kube/resource.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { spawnBound } from '../support/control-plane/bound-process.ts';
import { ControlPlane } from '../support/control-plane/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { liveObjects } from '../support/gen/live-objects.ts';
import { renderManifests } from '../support/manifests.ts';
import { startNabSync, type NabSyncProcess } from '../support/nab-sync.ts';
import { createNamespace, deleteNamespace } from '../support/namespaces.ts';
import { Objects } from '../support/objects.ts';
import { serviceAccountToken } from '../support/service-account.ts';

const nacBinary = process.env['NAC_BINARY'] ?? '';

const oadpNamespace = 'openshift-adp';
const gen = liveObjects(oadpNamespace);
const finalizer = 'nonadminbackup.oadp.openshift.io/finalizer';

const veleroRestores: Resource = {
  group: 'velero.io',
  version: 'v1',
  plural: 'restores',
  kind: 'Restore',
  namespaced: true,
};

function nameOf(object: JsonObject): string {
  return stringAt(objectAt(object, 'metadata'), 'name') ?? '';
}

/** As `kubectl get nonadminbackups` shows it, with the finalizer that says that the NAC has been here. */
function summary(nab: JsonObject): Record<string, unknown> {
  const status = objectAt(nab, 'status');
  return {
    name: nameOf(nab),
    phase: status['phase'],
    veleroPhase: objectAt(objectAt(status, 'veleroBackup'), 'status')['phase'],
    finalizers: objectAt(nab, 'metadata')['finalizers'],
  };
}

function settled(name: string): Record<string, unknown> {
  return { name, phase: 'Created', veleroPhase: 'Completed', finalizers: [finalizer] };
}

describe.skipIf(nacBinary === '')('beside the real non-admin controller (needs NAC_BINARY)', () => {
  let controlPlane: ControlPlane;
  let objects: Objects;
  let directory: string;
  let kubeconfig: string;
  let nac: ReturnType<typeof spawnBound>;
  let nabSync: NabSyncProcess;
  let nacLog: number;

  beforeAll(async () => {
    controlPlane = await ControlPlane.start();
    objects = await Objects.on(controlPlane.admin);
    directory = await mkdtemp(join(tmpdir(), 'nab-sync-nac-'));
    await createNamespace(objects, oadpNamespace);
    for (const object of await renderManifests({ kubectl: controlPlane.binaries.kubectl, namespace: oadpNamespace })) {
      await objects.apply(object);
    }
    const token = await serviceAccountToken(controlPlane.admin, { namespace: oadpNamespace, name: 'nab-sync' });
    kubeconfig = join(directory, 'kubeconfig');
    await writeFile(kubeconfig, controlPlane.admin.kubeconfigFor({ token }), { mode: 0o600 });
    await writeFile(join(directory, 'admin.kubeconfig'), controlPlane.kubeconfig, { mode: 0o600 });
    await objects.create(gen.storageLocation());
    nacLog = openSync(join(directory, 'nac.log'), 'a');
  });

  afterAll(async () => {
    await controlPlane.stop();
    await rm(directory, { recursive: true, force: true });
  });

  beforeEach(async () => {
    nabSync = await startNabSync(['run'], { kubeconfig, oadpNamespace });
  });

  afterEach(async () => {
    nac.kill('SIGKILL');
    await nabSync.stop();
    await objects.delete(kinds.dataProtectionApplications, { namespace: oadpNamespace, name: 'dpa' });
  });

  /** Starts the NAC; it reads its settings from the DPA once. */
  async function startNac(nonAdmin: JsonObject): Promise<void> {
    await objects.create(gen.dataProtectionApplication(nonAdmin));
    nac = spawnBound(nacBinary, ['--metrics-bind-address=0', '--health-probe-bind-address=0'], {
      cwd: directory,
      env: { KUBECONFIG: join(directory, 'admin.kubeconfig'), WATCH_NAMESPACE: oadpNamespace, HOME: directory },
      output: nacLog,
    });
  }

  async function nabs(namespace: string): Promise<Record<string, unknown>[]> {
    return (await objects.list(kinds.nonAdminBackups, { namespace })).map(summary);
  }

  async function backupsOf(namespace: string): Promise<JsonObject[]> {
    const all = await objects.list(kinds.backups, { namespace: oadpNamespace });
    return all.filter((backup) => nameOf(backup).startsWith(`${namespace}-`));
  }

  /** As Velero does when it reads the bucket again. */
  function asReadAgain(backup: JsonObject): JsonObject {
    const { labels, annotations } = objectAt(backup, 'metadata');
    return { ...backup, metadata: { name: nameOf(backup), namespace: oadpNamespace, labels, annotations } };
  }

  async function neverBackedOff(namespace: string): Promise<void> {
    const phases = (await nabs(namespace)).map(({ phase }) => phase);
    expect(phases).not.toContain('BackingOff');
  }

  it('leaves fifty synced NABs Created and Completed, makes no second Velero Backup and sets its finalizer', async () => {
    await startNac({ backupSyncPeriod: '0s', garbageCollectionPeriod: '0s' });
    await createNamespace(objects, 'fifty');
    const names = Array.from({ length: 50 }, (_, index) => `backup-${index.toString().padStart(2, '0')}`);
    for (const name of names) await objects.create(gen.backup({ namespace: 'fifty', name }));
    const before = (await backupsOf('fifty')).map((backup) => objectAt(backup, 'metadata')['uid']);
    await eventually(async () => {
      await neverBackedOff('fifty');
      assert.deepEqual(await nabs('fifty'), names.map(settled));
    }, 40_000);
    const after = (await backupsOf('fifty')).map((backup) => objectAt(backup, 'metadata')['uid']);
    expect(after).toEqual(before);
  });

  it('restores from a synced NAB: a NonAdminRestore that names it becomes a Velero Restore of its Backup', async () => {
    await startNac({ backupSyncPeriod: '0s', garbageCollectionPeriod: '0s' });
    await createNamespace(objects, 'restored');
    const backup = gen.backup({ namespace: 'restored', name: 'daily' });
    await objects.create(backup);
    await eventually(async () => {
      assert.deepEqual(await nabs('restored'), [settled('daily')]);
    }, 30_000);
    await objects.create({
      apiVersion: 'oadp.openshift.io/v1alpha1',
      kind: 'NonAdminRestore',
      metadata: { namespace: 'restored', name: 'bring-it-back' },
      spec: { restoreSpec: { backupName: 'daily' } },
    });
    await eventually(async () => {
      const restores = await objects.list(veleroRestores, { namespace: oadpNamespace });
      assert.deepEqual(
        restores.map((restore) => objectAt(restore, 'spec')['backupName']),
        [nameOf(backup)],
      );
    }, 30_000);
  });

  it('brings a NAB back that was plainly deleted, once Velero has read its Backup again', async () => {
    await startNac({ backupSyncPeriod: '0s', garbageCollectionPeriod: '0s' });
    await createNamespace(objects, 'plain');
    const backup = gen.backup({ namespace: 'plain', name: 'daily' });
    await objects.create(backup);
    await eventually(async () => {
      assert.deepEqual(await nabs('plain'), [settled('daily')]);
    }, 30_000);
    // Only marked: taking the finalizer off is the NAC's part, after it has deleted the Backup.
    await controlPlane.admin.call('DELETE', '/apis/oadp.openshift.io/v1alpha1/namespaces/plain/nonadminbackups/daily');
    await eventually(async () => {
      assert.deepEqual(await backupsOf('plain'), []);
      assert.deepEqual(await nabs('plain'), []);
    }, 30_000);
    await objects.create(asReadAgain(backup));
    await eventually(async () => {
      await neverBackedOff('plain');
      assert.deepEqual(await nabs('plain'), [settled('daily')]);
    }, 30_000);
  });

  it('repairs a NAB for which the NAC gave up while its Backup was away', async () => {
    await startNac({ backupSyncPeriod: '0s', garbageCollectionPeriod: '0s' });
    await createNamespace(objects, 'away');
    const backup = gen.backup({ namespace: 'away', name: 'daily' });
    await objects.create(backup);
    await eventually(async () => {
      assert.deepEqual(await nabs('away'), [settled('daily')]);
    }, 30_000);
    await objects.delete(kinds.backups, { namespace: oadpNamespace, name: nameOf(backup) });
    // Any change makes the NAC look for the Backup.
    await objects.patch(
      kinds.nonAdminBackups,
      { namespace: 'away', name: 'daily' },
      { metadata: { labels: { look: 'now' } } },
    );
    await objects.patch(
      kinds.nonAdminBackups,
      { namespace: 'away', name: 'daily' },
      { spec: { backupSpec: { ttl: '1h0m0s' } } },
    );
    await eventually(async () => {
      assert.deepEqual(
        (await nabs('away')).map(({ phase }) => phase),
        ['BackingOff'],
      );
    }, 30_000);
    await objects.create(asReadAgain(backup));
    await eventually(async () => {
      assert.deepEqual(await nabs('away'), [settled('daily')]);
    }, 30_000);
  });

  it('lives beside the NAC’s own synchronizer: a namespace that is deleted and re-created has every NAB once', async () => {
    await startNac({ backupSyncPeriod: '1s', garbageCollectionPeriod: '0s' });
    await createNamespace(objects, 'both');
    const names = Array.from({ length: 20 }, (_, index) => `backup-${index.toString().padStart(2, '0')}`);
    for (const name of names) await objects.create(gen.backup({ namespace: 'both', name }));
    await eventually(async () => {
      assert.deepEqual(await nabs('both'), names.map(settled));
    }, 40_000);
    const backups = await backupsOf('both');
    await deleteNamespace(objects, 'both');
    // The NAC may have deleted Backups together with their NABs; Velero reads them again.
    const left = new Set((await backupsOf('both')).map(nameOf));
    for (const backup of backups) if (!left.has(nameOf(backup))) await objects.create(asReadAgain(backup));
    await createNamespace(objects, 'both');
    await eventually(async () => {
      await neverBackedOff('both');
      assert.deepEqual(await nabs('both'), names.map(settled));
    }, 40_000);
  });
});
