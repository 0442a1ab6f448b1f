import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isJsonObject, objectAt } from '../../../src/kube/json.ts';
import { resourcePath, type JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { ControlPlane } from '../../support/control-plane/control-plane.ts';
import { eventually } from '../../support/eventually.ts';
import { fromNow, liveObjects } from '../../support/gen/live-objects.ts';
import { minute } from '../../support/gen/api-objects.ts';
import { runNabSync, startNabSync } from '../../support/nab-sync.ts';
import { Objects } from '../../support/objects.ts';
import { eventsIn } from '../main-job/support/events.ts';
import { meddlingProxy } from '../main-job/support/meddling-proxy.ts';
import { onceReport } from '../main-job/support/reports.ts';

/**
 * A Backup that Velero's CRD takes and the NonAdminBackup's refuses (422): OADP and Velero are not always of one version.
 * Today's two agree in everything that either refuses, so this has a server of its own, on which the NAB's is made
 * to know only one data mover.
 */

const crdPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nonadminbackups.oadp.openshift.io';
const oadpNamespace = 'openshift-adp';
const gen = liveObjects(oadpNamespace);
let cluster: ControlPlane;
let objects: Objects;
let directory: string;
let kubeconfig: string;

async function setDataMovers(dataMovers: readonly string[] | undefined): Promise<void> {
  const crd = await cluster.admin.call('GET', crdPath);
  const versions = objectAt(crd, 'spec')['versions'];
  const [version] = Array.isArray(versions) ? versions.filter(isJsonObject) : [];
  const path = [
    'schema',
    'openAPIV3Schema',
    'properties',
    'spec',
    'properties',
    'backupSpec',
    'properties',
    'datamover',
  ];
  const datamover = path.reduce<JsonObject>(objectAt, version ?? {});
  expect(datamover).toMatchObject({ type: 'string' });
  if (dataMovers === undefined) delete datamover['enum'];
  else datamover['enum'] = dataMovers;
  await cluster.admin.call('PUT', crdPath, { body: crd });
  await eventually(async () => {
    const probe = gen.nonAdminBackup({
      namespace: 'default',
      name: 'probe',
      spec: { backupSpec: { datamover: 'of-tomorrow' } },
    });
    const path = `${resourcePath(kinds.nonAdminBackups, { namespace: 'default' })}?dryRun=All`;
    const { status } = await cluster.admin.request('POST', path, { body: probe });
    expect(status).toBe(dataMovers === undefined ? 201 : 422);
  }, 30_000);
}

beforeAll(async () => {
  cluster = await ControlPlane.start();
  objects = await Objects.on(cluster.admin);
  directory = await mkdtemp(join(tmpdir(), 'nab-sync-crd-'));
  kubeconfig = join(directory, 'kubeconfig');
  await writeFile(kubeconfig, cluster.kubeconfig, { mode: 0o600 });
  for (const name of [oadpNamespace, 'team-a', 'team-b']) {
    await objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  await setDataMovers(['velero']);
  await objects.create(gen.storageLocation());
  const backup = (namespace: string, name: string, age: number, spec: JsonObject = {}): JsonObject =>
    gen.backup({
      namespace,
      name,
      nacuuid: `${namespace}-${name}`,
      spec,
      status: { completionTimestamp: fromNow(-age * minute) },
    });
  await Promise.all(
    [
      // The newest, so that it is tried first.
      backup('team-a', 'newer', 1, { datamover: 'of-tomorrow' }),
      backup('team-a', 'daily', 2, { datamover: 'velero' }),
      backup('team-a', 'weekly', 3),
      backup('team-b', 'daily', 4),
    ].map((object) => objects.create(object)),
  );
}, 120_000);

afterAll(async () => {
  await cluster.stop();
  await rm(directory, { recursive: true, force: true });
});

async function names(namespace: string): Promise<unknown[]> {
  const nabs = await objects.list(kinds.nonAdminBackups, { namespace });
  return nabs.map((nab) => objectAt(nab, 'metadata')['name']);
}

describe('a Backup that the CRD of NABs refuses', () => {
  it('is reported with the field that is at fault, and its neighbours come back', async () => {
    const { exitCode, stdout } = await runNabSync(['once', '-o', 'json'], { kubeconfig, oadpNamespace });
    const report = onceReport.parse(JSON.parse(stdout));
    expect(exitCode).toBe(1);
    expect(report).toMatchObject({ outcome: 'Partial', reasons: { Missing: 3, Invalid: 1 } });
    expect(report.failures).toMatchObject([{ namespace: 'team-a', name: 'newer', reason: 'Invalid' }]);
    expect(report.failures[0]?.message).toContain('spec.backupSpec.datamover');
    expect(await names('team-a')).toEqual(['daily', 'weekly']);
    expect(await names('team-b')).toEqual(['daily']);
  });

  it('is tried by the controller once, again when the Backup changes, and comes back when CRD and namespace have', async () => {
    let creates = 0;
    const proxy = await meddlingProxy(kubeconfig, ({ method, path }) => {
      if (method === 'POST' && path.endsWith('/team-a/nonadminbackups')) creates += 1;
      return undefined;
    });
    const through = join(directory, 'through');
    await writeFile(through, proxy.kubeconfig, { mode: 0o600 });
    const controller = await startNabSync(['run', '--sync-period', '300ms'], { kubeconfig: through, oadpNamespace });
    const passes = (): number => controller.stderr.split('pass over all namespaces done').length - 1;
    const somePasses = async (): Promise<void> => {
      const before = passes();
      await eventually(() => {
        expect(passes()).toBeGreaterThan(before + 4);
      });
    };
    try {
      await eventually(() => {
        expect(creates).toBe(1);
      });
      await somePasses();
      expect(creates).toBe(1);
      const touch = { metadata: { annotations: { touched: 'yes' } } };
      await objects.patch(kinds.backups, { namespace: oadpNamespace, name: 'team-a-newer' }, touch);
      await eventually(() => {
        expect(creates).toBe(2);
      });
      await somePasses();
      expect(creates).toBe(2);
      const invalid = (await eventsIn(objects, 'team-a')).filter(({ reason }) => reason === 'Invalid');
      expect(invalid).toMatchObject([{ type: 'Warning', involvedObject: { kind: 'Namespace', name: 'team-a' } }]);
      expect(invalid[0]?.message).toContain('"newer"');

      await setDataMovers(undefined);
      await objects.patch(kinds.namespaces, { name: 'team-a' }, touch);
      await eventually(async () => {
        expect(await names('team-a')).toEqual(['daily', 'newer', 'weekly']);
      });
      expect((await controller.stop()).stderr).not.toMatch(/"level":"(error|fatal)"/);
    } finally {
      await controller.stop();
      await proxy.close();
    }
  });
});
