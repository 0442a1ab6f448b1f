/**
 * `make demo`: the main job, shown on a real API server, step by step. Every sentence that claims something is checked;
 * the first that does not hold ends the demo with exit code 1.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { styleText } from 'node:util';
import { z } from 'zod';
import type { JsonObject } from '../../src/kube/resource.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { ControlPlane } from '../support/control-plane/control-plane.ts';
import { runScript } from '../support/control-plane/setup-error.ts';
import { eventually } from '../support/eventually.ts';
import { day, hour } from '../support/gen/api-objects.ts';
import { fromNow, liveObjects } from '../support/gen/live-objects.ts';
import { renderManifests } from '../support/manifests.ts';
import { runNabSync, startNabSync } from '../support/nab-sync.ts';
import { createNamespace, deleteNamespace } from '../support/namespaces.ts';
import { Objects } from '../support/objects.ts';
import { serviceAccountToken } from '../support/service-account.ts';
import { getTable } from '../support/table.ts';
import { tenantKubeconfig } from '../support/tenant-rights.ts';

const oadpNamespace = 'openshift-adp';
const gen = liveObjects(oadpNamespace);

/** What the tenants made before the disaster, and what is to be seen of it afterwards. */
const world: JsonObject[] = [
  gen.storageLocation(),
  gen.ownedStorageLocation({ namespace: 'team-b' }),
  gen.backup({ namespace: 'team-a', name: 'daily-1', status: { completionTimestamp: fromNow(-2 * day) } }),
  gen.backup({ namespace: 'team-a', name: 'daily-2' }),
  gen.backup({ namespace: 'team-a', name: 'weekly', status: { phase: 'PartiallyFailed', errors: 1 } }),
  gen.backup({ namespace: 'team-a', name: 'running', status: { phase: 'InProgress', completionTimestamp: undefined } }),
  gen.backup({ namespace: 'team-a', name: 'expired', status: { expiration: fromNow(-hour) } }),
  gen.backup({ namespace: 'team-b', name: 'shop', spec: { storageLocation: 'team-b-bucket-1' } }),
  gen.backup({ namespace: 'team-b', name: 'shop-db', spec: { storageLocation: 'team-b-bucket-1' } }),
  // Team B has edited the metadata in its own bucket, so that a backup seems to come from team A.
  gen.backup({ namespace: 'team-a', name: 'forged', spec: { storageLocation: 'team-b-bucket-1' } }),
];
const expected = {
  'team-a': ['daily-1', 'daily-2', 'weekly'],
  'team-b': ['shop', 'shop-db'],
};
const staysAway = {
  'team-a/expired': 'Expired',
  'team-a/forged': 'StorageLocationOwnerMismatch',
  'team-a/running': 'NotFinished',
};

const nabList = z.array(
  z.object({
    metadata: z.object({ name: z.string() }),
    status: z
      .object({ phase: z.string(), veleroBackup: z.object({ status: z.object({ phase: z.string() }) }) })
      .optional(),
  }),
);

/** One request, and its answer. */
const answered = z.tuple([
  z.object({
    status: z.object({
      counts: z.record(z.string(), z.int()),
      skipped: z.array(z.object({ name: z.string(), reason: z.string() })),
    }),
  }),
]);

const plan = z.object({
  decisions: z.array(z.object({ namespace: z.string(), name: z.string(), action: z.string(), reason: z.string() })),
});

function say(text: string): void {
  console.log(`\n${styleText('bold', text)}`);
}

function show(text: string): void {
  console.log(text.trimEnd().replaceAll(/^/gm, '    '));
}

function ms(milliseconds: number): string {
  return `${milliseconds.toFixed(0)} ms`;
}

/** The names of a tenant's NABs; with `complete` of those that have their final status. */
async function nabsOf(objects: Objects, namespace: string, complete = false): Promise<string[]> {
  const nabs = nabList.parse(await objects.list(kinds.nonAdminBackups, { namespace }));
  return nabs
    .filter(({ status }) => !complete || status?.phase === 'Created')
    .map(({ metadata }) => metadata.name)
    .sort();
}

/** Waits for exactly these NABs and returns how many milliseconds after `began` they were there. */
async function timeUntil(
  objects: Objects,
  began: number,
  namespace: string,
  names: string[],
  complete = false,
): Promise<number> {
  const check = async (): Promise<void> => {
    assert.deepEqual(await nabsOf(objects, namespace, complete), names);
  };
  await eventually(check, 20_000, 10);
  return performance.now() - began;
}

async function demo(controlPlane: ControlPlane, directory: string): Promise<void> {
  const { admin, binaries } = controlPlane;
  const objects = await Objects.on(admin);

  say('Two tenants have backups; a disaster has taken their NonAdminBackups.');
  await createNamespace(objects, oadpNamespace);
  for (const namespace of Object.keys(expected)) await createNamespace(objects, namespace);
  await objects.create(gen.nonAdminStorageLocation({ namespace: 'team-b' }));
  for (const object of world) await objects.create(object);
  show(`team-a: 3 finished backups, 1 still running, 1 expired
team-b: 2 finished backups in a bucket of its own, and 1 that it forged to come from team-a`);

  say('nab-sync is installed from manifests/base and started as its ServiceAccount.');
  for (const object of await renderManifests({ kubectl: binaries.kubectl, namespace: oadpNamespace })) {
    await objects.apply(object);
  }
  const token = await serviceAccountToken(admin, { namespace: oadpNamespace, name: 'nab-sync' });
  const kubeconfig = join(directory, 'kubeconfig');
  await writeFile(kubeconfig, admin.kubeconfigFor({ token, namespace: oadpNamespace }), { mode: 0o600 });
  const started = performance.now();
  const controller = await startNabSync(['run', '--log-format', 'json'], { kubeconfig, oadpNamespace });
  for (const [namespace, names] of Object.entries(expected)) await timeUntil(objects, started, namespace, names, true);
  show(
    `all 5 NonAdminBackups are there, with status, ${ms(performance.now() - started)} after the process was started`,
  );

  say('kubectl get nonadminbackups -A');
  show(await getTable(admin, kinds.nonAdminBackups));

  say('Disaster: namespace team-a is deleted with all that is in it, and created again.');
  await deleteNamespace(objects, 'team-a');
  assert.deepEqual(await nabsOf(objects, 'team-a'), [], 'NonAdminBackups were left in a namespace that is gone');
  const recreated = performance.now();
  await createNamespace(objects, 'team-a');
  const visible = await timeUntil(objects, recreated, 'team-a', expected['team-a']);
  const complete = await timeUntil(objects, recreated, 'team-a', expected['team-a'], true);
  show(`all 3 NonAdminBackups are visible again ${ms(visible)} after that, and complete after ${ms(complete)}`);

  say('kubectl get nonadminbackups -n team-a');
  show(await getTable(admin, kinds.nonAdminBackups, 'team-a'));

  say('Team A asks for a sync of its namespace, with its own rights: nab-sync request -n team-a --wait');
  const tenant = join(directory, 'tenant.kubeconfig');
  await writeFile(tenant, await tenantKubeconfig(objects, binaries.kubectl, 'team-a'), { mode: 0o600 });
  const asked = await runNabSync(['request', '-n', 'team-a', '--wait'], { kubeconfig: tenant, oadpNamespace });
  assert.equal(asked.exitCode, 0, asked.stderr);
  show(asked.stdout);
  const [{ status }] = answered.parse(await objects.list(kinds.syncRequests, { namespace: 'team-a' }));
  assert.deepEqual({ ...status.counts }, { ...status.counts, seen: 5, present: 3, skipped: 2, failed: 0 });
  assert.deepEqual(
    status.skipped.map(({ name, reason }) => `${name} ${reason}`),
    ['expired Expired', 'running NotFinished'],
  );
  assert.doesNotMatch(asked.stdout, /forged|team-b/);

  say('kubectl get nonadminbackupsyncrequests -n team-a');
  show(await getTable(admin, kinds.syncRequests, 'team-a'));

  say('Why did the others stay away? nab-sync plan');
  const options = { kubeconfig, oadpNamespace };
  const table = await runNabSync(['plan'], options);
  assert.equal(table.exitCode, 0, table.stderr);
  show(table.stdout);
  const { stdout } = await runNabSync(['plan', '--output', 'json'], options);
  const { decisions } = plan.parse(JSON.parse(stdout));
  const away = decisions.filter(({ action }) => action !== 'none');
  assert.deepEqual(
    Object.fromEntries(away.map(({ namespace, name, reason }) => [`${namespace}/${name}`, reason])),
    staysAway,
  );
  assert.equal(decisions.length, world.length - 2, 'a backup is missing in the plan');

  say('And nothing is anywhere else.');
  const everywhere = nabList.parse(await objects.list(kinds.nonAdminBackups));
  assert.equal(everywhere.length, Object.values(expected).flat().length);
  show(`${everywhere.length} NonAdminBackups on the whole cluster, all expected; the forged one came to nobody`);

  say('SIGTERM');
  const { exitCode, stderr } = await controller.stop();
  assert.equal(exitCode, 0, stderr);
  show('nab-sync stopped with exit code 0');
}

await runScript(async () => {
  say('A real kube-apiserver and etcd are started; the first time they are built, which takes some minutes.');
  const began = performance.now();
  const controlPlane = await ControlPlane.start();
  show(`ready after ${((performance.now() - began) / 1000).toFixed(1)} s`);
  const directory = await mkdtemp(join(tmpdir(), 'nab-sync-demo-'));
  try {
    await demo(controlPlane, directory);
  } finally {
    await controlPlane.stop();
    await rm(directory, { recursive: true, force: true });
  }
  say('Done: every claim above was checked.');
});
