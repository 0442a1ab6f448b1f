import { resourcePath } from '../../src/kube/resource.ts';
import { toBackupRecord } from '../../src/oadp/backup.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { nonAdminBackupFor } from '../../src/oadp/non-admin-backup.ts';
import { originOf } from '../../src/sync/decide.ts';
import { inParallel } from './in-parallel.ts';
import type { BenchOptions } from './options.ts';
import { PooledApi } from './pooled-api.ts';
import type { Figure, Results } from './results.ts';
import { quantile } from './statistics.ts';
import { oadpNamespace, places } from './stored-backup.ts';
import type { World } from './world.ts';

const part = 'reappearance';
const prefix = 'phoenix';
const namespace = `${prefix}-0000`;

/** Milliseconds from the call that creates the namespace to the event of its last NAB. */
interface Round {
  readonly visible: number;
  readonly complete: number;
}

/**
 * A namespace with backups is taken away and created anew: how soon its NABs are visible, and complete. Idle, and while
 * all other NABs of the world are being restored from a cold start.
 */
export async function measureReappearance(world: World, options: BenchOptions, results: Results): Promise<void> {
  const { rounds, backups } = options.reappearance;
  const others = world.places.length;
  await world.add(places(prefix, backups, 1));
  const bare = await bareRounds(world, Math.min(rounds, 50), backups);

  const nabSync = await world.startNabSync();
  await world.observer.untilComplete(others + backups);
  const idle: Round[] = [];
  for (let round = 0; round < rounds; round += 1) idle.push(await reappear(world, backups));
  await nabSync.stop();
  await world.clear();

  const loaded: Round[] = [];
  while (loaded.length < rounds) {
    const busy = await world.startNabSync();
    // Under way: the first rounds must not fall into the start of the process.
    await world.observer.untilVisible(1);
    while (world.observer.of().complete.size < others && loaded.length < rounds)
      loaded.push(await reappear(world, backups));
    await busy.stop();
    await world.clear();
  }

  const limit = (share: number): NonNullable<Figure['limit']> => ({
    name: 'bare loop, idle',
    value: quantile(bare, share),
  });
  const tell = (state: string, measured: readonly Round[], atMost: number): void => {
    for (const [name, share] of Object.entries({ p50: 0.5, p95: 0.95, p99: 0.99 })) {
      results.add({
        part,
        name: `${state}: ${backups} NABs visible, ${name} of ${measured.length}`,
        unit: 'ms',
        value: quantile(
          measured.map(({ visible }) => visible),
          share,
        ),
        limit: limit(share),
        ...(share === 0.99 ? { target: { of: 'value', atMost } } : {}),
      });
    }
    for (const [name, share] of Object.entries({ p50: 0.5, p95: 0.95, p99: 0.99 })) {
      results.add({
        part,
        name: `${state}: ${backups} NABs with status, ${name}`,
        unit: 'ms',
        value: quantile(
          measured.map(({ complete }) => complete),
          share,
        ),
      });
    }
  };
  tell('idle', idle, 300);
  tell(`during a restore of ${others}`, loaded, 1500);
}

async function reappear(world: World, backups: number): Promise<Round> {
  await world.removeNamespace(namespace);
  const began = performance.now();
  await world.addNamespace(namespace);
  const visibleAt = await world.observer.untilVisible(backups, namespace, 60_000);
  const completeAt = await world.observer.untilComplete(backups, namespace, 60_000);
  return { visible: visibleAt - began, complete: completeAt - began };
}

/** The same without nab-sync: the namespace, then live GET + create of all at once. Milliseconds, one a round. */
async function bareRounds(world: World, rounds: number, backups: number): Promise<number[]> {
  const api = await PooledApi.open({ kubeconfig: world.kubeconfig, connections: 16 });
  const path = resourcePath(kinds.backups, { namespace: oadpNamespace });
  const listed = await world.objects.list(kinds.backups, { namespace: oadpNamespace });
  const stored = listed.filter((backup) => toBackupRecord(backup).claim.namespace === namespace);
  const measured: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await world.removeNamespace(namespace);
    const began = performance.now();
    await world.addNamespace(namespace);
    await inParallel(stored, 16, async (backup) => {
      const record = toBackupRecord(backup);
      const live = await api.call('GET', `${path}/${record.name}`);
      const body = nonAdminBackupFor(live, originOf(record), undefined);
      await api.call('POST', resourcePath(kinds.nonAdminBackups, { namespace }), body);
    });
    measured.push((await world.observer.untilVisible(backups, namespace)) - began);
  }
  await world.clear();
  await api.close();
  return measured;
}
