import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../../src/kube/resource.ts';
import { backups, dataProtectionApplications } from '../../src/oadp/kinds.ts';
import { nacLabelSelector } from '../../src/oadp/labels.ts';
import { spawnBound } from '../support/control-plane/bound-process.ts';
import { liveObjects } from '../support/gen/live-objects.ts';
import { bareLoop } from './bare-loop.ts';
import type { BenchOptions } from './options.ts';
import type { Results } from './results.ts';
import { median } from './statistics.ts';
import { oadpNamespace, places } from './stored-backup.ts';
import { World } from './world.ts';

const part = 'peer';

/**
 * Requests in flight of the bare loop: as many as nab-sync has, and as many as it was fastest with, or within a few percent of
 * it, wherever it was tried.
 */
const bareConcurrencies = [16, 64] as const;

/**
 * The non-admin controller on the same input: how fast its own synchronizer is, and how many Backups its garbage collector
 * deletes before their NABs are there, alone and with nab-sync beside it.
 */
export async function measurePeer(nacBinary: string, options: BenchOptions, results: Results): Promise<void> {
  const count = options.restore.backups;
  const rate = await inFreshWorld(options, async (world) => {
    const ours = await timeToComplete(world, count, () => world.startNabSync());
    await world.clear();
    const theirs = await timeToComplete(world, count, () =>
      startNac(world, nacBinary, { backupSyncPeriod: '2m0s', garbageCollectionPeriod: '0s' }),
    );
    return { ours: count / ours, theirs: count / theirs };
  });
  results.add({
    part,
    name: `${count} NABs with status, from process start`,
    unit: 'NABs/s',
    value: rate.ours,
    limit: { name: 'the NAC’s synchronizer', value: rate.theirs },
    target: { of: 'ratio', atLeast: 12 },
  });

  const lostBeside = (rescuer?: Rescuer): Promise<number> =>
    inFreshWorld(options, (world) => lost(world, nacBinary, count, rescuer));
  const what = `of ${count} Backups without NAB, deleted by the NAC`;
  results.add({ part, name: `${what} alone`, unit: '', value: await lostBeside() });
  const besides = [
    { name: 'nab-sync', rescuer: (world: World): Promise<Running> => world.startNabSync(), lost: [] as number[] },
    ...bareConcurrencies.map((concurrency) => ({
      name: `bare GET + create, ${concurrency} in flight`,
      rescuer: (world: World): Promise<Running> => startBareLoop(world, concurrency),
      lost: [] as number[],
    })),
  ];
  for (let run = 0; run < options.runs; run += 1) {
    for (const beside of besides) beside.lost.push(await lostBeside(beside.rescuer));
  }
  const [ours, likeOurs, ...others] = besides;
  if (ours === undefined || likeOurs === undefined) return;
  results.addMedian(ours.lost, {
    part,
    name: `${what}, both started at once`,
    unit: '',
    limit: { name: likeOurs.name, value: median(likeOurs.lost) },
    target: { of: 'value', atMost: 59 },
  });
  for (const other of others) results.addMedian(other.lost, { part, name: `${what} beside ${other.name}`, unit: '' });
}

interface Running {
  stop(): Promise<unknown>;
}

/** Starts what is to be faster than the collector. */
type Rescuer = (world: World) => Promise<Running>;

/** Begins when its process has started and listed, as nab-sync does. */
async function startBareLoop(world: World, concurrency: number): Promise<Running> {
  const done = bareLoop({ kubeconfig: await world.kubeconfigPath(), writes: 'create', concurrency });
  // Looked at when it is stopped.
  done.catch(() => undefined);
  return { stop: () => done };
}

async function inFreshWorld<T>(options: BenchOptions, work: (world: World) => Promise<T>): Promise<T> {
  const world = await World.start(options.extraEnvironment);
  try {
    await world.add(places('team', options.restore.backups, options.restore.namespaces));
    return await work(world);
  } finally {
    await world.stop();
  }
}

/** Seconds. */
async function timeToComplete(world: World, count: number, start: () => Promise<Running>): Promise<number> {
  const began = performance.now();
  const running = await start();
  const completeAt = await world.observer.untilComplete(count, undefined, 1_200_000);
  await running.stop();
  return (completeAt - began) / 1000;
}

/** How many Backups are gone when every one that is left has its NAB. */
async function lost(world: World, nacBinary: string, count: number, rescuer?: Rescuer): Promise<number> {
  // As OADP sets them where nobody says otherwise.
  const nac = await startNac(world, nacBinary, { backupSyncPeriod: '2m0s', garbageCollectionPeriod: '24h0m0s' });
  const running = await rescuer?.(world);
  try {
    const deadline = performance.now() + 1_200_000;
    for (;;) {
      const before = await backupsLeft(world);
      await sleep(10_000);
      const left = await backupsLeft(world);
      if (left === before && world.observer.of().visible.size >= left) return count - left;
      if (performance.now() > deadline) throw new Error(`${left} Backups are left, but not all have their NAB`);
    }
  } finally {
    await nac.stop();
    await running?.stop();
  }
}

async function backupsLeft(world: World): Promise<number> {
  return (await world.objects.list(backups, { namespace: oadpNamespace, labelSelector: nacLabelSelector })).length;
}

/** It reads its settings from the DPA, at its start. */
async function startNac(world: World, nacBinary: string, nonAdmin: JsonObject): Promise<Running> {
  const kubeconfig = join(world.directory, 'admin.kubeconfig');
  await writeFile(kubeconfig, world.controlPlane.kubeconfig, { mode: 0o600 });
  await world.objects.create(liveObjects(oadpNamespace).dataProtectionApplication(nonAdmin));
  const log = openSync(join(world.directory, 'nac.log'), 'a');
  const child = spawnBound(nacBinary, ['--metrics-bind-address=0', '--health-probe-bind-address=0'], {
    cwd: world.directory,
    env: { KUBECONFIG: kubeconfig, WATCH_NAMESPACE: oadpNamespace, HOME: world.directory },
    output: log,
  });
  closeSync(log);
  return {
    stop: async () => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      await world.objects.delete(dataProtectionApplications, { namespace: oadpNamespace, name: 'dpa' });
    },
  };
}
