import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isJsonObject, objectAt, stringAt } from '../../../src/kube/json.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { ControlPlane } from '../../support/control-plane/control-plane.ts';
import { loadCrds, loadOwnCrds } from '../../support/control-plane/crd-files.ts';
import { installCrds } from '../../support/control-plane/install-crds.ts';
import { eventually } from '../../support/eventually.ts';
import { liveObjects } from '../../support/gen/live-objects.ts';
import { runNabSync, startNabSync, type NabSyncExit } from '../../support/nab-sync.ts';
import { createNamespace } from '../../support/namespaces.ts';
import { Objects } from '../../support/objects.ts';
import { follow, type Controller } from './support/main-job.ts';
import { bareNab, expectedNab } from './support/nabs.ts';
import { page } from './support/scrape.ts';

/** A server of its own, since CRDs are missing here: first all, then those of OADP. An existing cluster has none to spare. */
const onOwnServer = describe.skipIf(process.env['USE_EXISTING_CLUSTER'] === 'true');
const oadpNamespace = 'openshift-adp';
const gen = liveObjects(oadpNamespace);

onOwnServer('an API server without the kinds', () => {
  let controlPlane: ControlPlane;
  let directory: string;
  let kubeconfig: string;
  let crds: JsonObject[];
  let controller: Controller;

  beforeAll(async () => {
    controlPlane = await ControlPlane.start({ crds: false });
    crds = await loadCrds();
    directory = await mkdtemp(join(tmpdir(), 'nab-sync-'));
    kubeconfig = join(directory, 'kubeconfig');
    await writeFile(kubeconfig, controlPlane.kubeconfig, { mode: 0o600 });
    await createNamespace(await Objects.on(controlPlane.admin), oadpNamespace);
    controller = follow(await startNabSync(['run', '--no-leader-elect'], { kubeconfig, oadpNamespace }));
  });

  afterAll(async () => {
    await controller.stop();
    await controlPlane.stop();
    await rm(directory, { recursive: true, force: true });
  });

  const run = (...args: string[]): Promise<NabSyncExit> => runNabSync(args, { kubeconfig, oadpNamespace });

  it.each([['plan'], ['once'], ['explain', 'team/daily']])(
    'is told in one line that names a kind and what to install: %s',
    async (...args) => {
      const { exitCode, stdout, stderr } = await run(...args);
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
      const told = stderr.split('\n').filter((line) => line.startsWith('nab-sync: '));
      expect(told).toHaveLength(1);
      expect(told[0]).toMatch(
        /the CustomResourceDefinition \S+\.(velero\.io|oadp\.openshift\.io) is missing: install OADP/,
      );
      expect(stderr).not.toMatch(/\n\s+at /);
    },
  );

  it('is what check finds: each kind, whether it can be done without, and what to install', async () => {
    const { exitCode, stdout } = await run('check');
    expect(exitCode).toBe(1);
    const needed = Object.values(kinds).filter(
      (kind) => kind.group !== '' && kind !== kinds.dataProtectionApplications && kind !== kinds.syncRequests,
    );
    for (const { plural, group, version } of needed) {
      expect(stdout).toMatch(new RegExp(`^kinds +FAIL +.*does not serve ${plural}\\.${group} ${version}, `, 'm'));
    }
    expect(stdout).toMatch(/^kinds +WARN +.*does not serve dataprotectionapplications\.oadp\.openshift\.io /m);
    expect(stdout).toMatch(/^kinds +WARN +.*does not serve nonadminbackupsyncrequests\..*\n +→ apply manifests\/crd/m);
    expect(stdout).toContain('→ install OADP');
    expect(stdout).toMatch(
      /^storage-locations +WARN +not known, since backupstoragelocations\.velero\.io could not be read$/m,
    );
  });

  it('keeps the controller waiting: alive, not ready, and it says for what', async () => {
    const names = Object.values(kinds).filter(({ group }) => group !== '');
    for (const { plural, group } of names) {
      await controller.line('reflector changed phase', { resource: `${plural}.${group}`, phase: 'kindNotInstalled' });
    }
    expect(await page(controller, '/livez')).toMatchObject({ status: 200 });
    const ready = await page(controller, '/readyz');
    expect(ready.status).toBe(503);
    expect(ready.body).toMatch(/^\[-\]synced failed: .*: \S+\.(velero|openshift)\.io: kindNotInstalled/m);
    expect(controller.stderr).not.toMatch(/\n\s+at /);
  });

  it('is worked on without a restart as soon as they are there, fields that nobody knows yet included', async () => {
    await installCrds(controlPlane.admin, crds.map(withUnknownFields));
    const objects = await Objects.on(controlPlane.admin);
    await createNamespace(objects, 'team');
    await objects.create(gen.storageLocation());
    const future = { retention: { locked: true, days: 7, tags: ['a', null, { b: 1.5 }] } };
    const backup = await objects.create(
      gen.backup({
        namespace: 'team',
        spec: { ...future, hooks: { future } },
        status: { future },
        metadata: { finalizers: ['future.io/finalizer'] },
      }),
    );
    expect(objectAt(backup, 'spec')).toMatchObject(future);
    const nab = await eventually(
      async () => {
        const found = await objects.get(kinds.nonAdminBackups, { namespace: 'team', name: 'daily' });
        expect(stringAt(objectAt(found ?? {}, 'status'), 'phase')).toBe('Created');
        return found ?? {};
      },
      // A kind that is missing is looked for every 15 seconds at the latest.
      40_000,
    );
    expect(bareNab(nab)).toEqual(expectedNab(backup));
    expect(await page(controller, '/readyz')).toMatchObject({ status: 200 });
  });

  it('its own kind apart, without which all else works: requests are answered once it is there', async () => {
    const off = 'sync requests are off until their kind is installed (manifests/crd)';
    expect(controller.log().filter(({ msg }) => msg === off)).toHaveLength(1);
    const asked = await run('request', '-n', 'team');
    expect(asked.exitCode).toBe(1);
    expect(asked.stderr).toMatch(
      /^nab-sync: .*CustomResourceDefinition nonadminbackupsyncrequests\.sync\.oadp\.openshift\.io is missing: install manifests\/crd\n$/,
    );
    await installCrds(controlPlane.admin, await loadOwnCrds());
    const { exitCode, stdout, stderr } = await run('request', '-n', 'team', '--wait', '-o', 'json');
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(stdout)).toMatchObject({ status: { phase: 'Succeeded', counts: { seen: 1, present: 1 } } });
  });

  it('names one kind that is missing among others that are there', async () => {
    await controlPlane.admin.call(
      'DELETE',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nonadminbackupstoragelocations.oadp.openshift.io',
    );
    await eventually(async () => {
      const { exitCode, stderr } = await run('plan');
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(
        /^nab-sync: .*CustomResourceDefinition nonadminbackupstoragelocations\.oadp\.openshift\.io is missing: install OADP with non-admin backups enabled\n$/,
      );
    }, 20_000);
  });
});

/** The CRD as a later version may have it: with fields in Backups and NABs that this program has never heard of. */
function withUnknownFields(crd: JsonObject): JsonObject {
  const name = stringAt(objectAt(crd, 'metadata'), 'name');
  if (name !== 'backups.velero.io' && name !== 'nonadminbackups.oadp.openshift.io') return crd;
  const changed: unknown = JSON.parse(JSON.stringify(crd), (key: string, value: unknown) =>
    ['spec', 'status', 'backupSpec', 'hooks'].includes(key) && isSchema(value)
      ? { ...value, 'x-kubernetes-preserve-unknown-fields': true }
      : value,
  );
  return isJsonObject(changed) ? changed : crd;
}

function isSchema(value: unknown): value is JsonObject {
  return isJsonObject(value) && 'properties' in value && 'type' in value;
}
