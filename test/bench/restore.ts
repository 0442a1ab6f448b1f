import type { BenchOptions } from './options.ts';
import { bareLoop, type BareLoopTask } from './bare-loop.ts';
import { ProcessMeter } from './process-meter.ts';
import type { Results } from './results.ts';
import { median } from './statistics.ts';
import type { World } from './world.ts';

const candidates = [8, 16, 32, 64];

/**
 * Restore rate: all NABs missing, nab-sync started cold. Beside it the bare loop at its best concurrency, in turn with
 * nab-sync, so that both meet the same machine.
 */
export async function measureRestore(world: World, options: BenchOptions, results: Results): Promise<void> {
  const kubeconfig = await world.kubeconfigPath();
  const count = world.places.length;
  const part = 'restore';

  const bare = async (task: Omit<BareLoopTask, 'kubeconfig'>): Promise<number> => {
    const { seconds } = await bareLoop({ kubeconfig, ...task });
    await world.observer.untilVisible(count);
    await world.clear();
    return seconds;
  };
  const best = async (writes: BareLoopTask['writes']): Promise<number> => {
    let fastest = { concurrency: Number.NaN, seconds: Number.POSITIVE_INFINITY };
    for (const concurrency of candidates) {
      const seconds = await bare({ writes, concurrency });
      results.add({
        part,
        name: `bare loop, ${writes}, ${concurrency} at once`,
        unit: 'NABs/s',
        value: count / seconds,
      });
      if (seconds < fastest.seconds) fastest = { concurrency, seconds };
    }
    return fastest.concurrency;
  };
  const bestCreate = await best('create');
  const bestAll = await best('all');

  // Other ways to do the same, that nab-sync could take.
  const variants = [
    ['statuses after all creates', { writes: 'statusesLast', concurrency: bestAll }],
    ['on one HTTP/2 connection', { writes: 'all', concurrency: bestAll, http2Connections: 1 }],
    ['on four HTTP/2 connections', { writes: 'all', concurrency: bestAll, http2Connections: 4 }],
  ] as const;
  for (const [name, task] of variants) {
    const value = count / (await bare(task));
    results.add({ part, name: `bare loop, all, ${bestAll} at once, ${name}`, unit: 'NABs/s', value });
  }

  const bareCreate: number[] = [];
  const bareAll: number[] = [];
  const visible: number[] = [];
  const complete: number[] = [];
  const cpu: number[] = [];
  for (let run = 0; run < options.runs; run += 1) {
    bareCreate.push(await bare({ writes: 'create', concurrency: bestCreate }));
    bareAll.push(await bare({ writes: 'all', concurrency: bestAll }));
    const measured = await restoreOnce(world, count);
    visible.push(measured.visible);
    complete.push(measured.complete);
    cpu.push(measured.cpuSeconds);
  }
  results.addMedian(visible, {
    part,
    name: `${count} NABs visible, from process start`,
    unit: 's',
    limit: { name: `bare GET + create, ${bestCreate} at once`, value: median(bareCreate) },
    target: { of: 'ratio', atMost: 1.25 },
  });
  results.addMedian(
    complete.map((seconds) => count / seconds),
    {
      part,
      name: `create + status rate, from process start`,
      unit: 'NABs/s',
      limit: { name: `bare loop, ${bestAll} at once`, value: count / median(bareAll) },
      target: { of: 'ratio', atLeast: 0.9 },
    },
  );
  results.addMedian(complete, {
    part,
    name: `${count} NABs with status, from process start`,
    unit: 's',
    limit: { name: `bare loop, ${bestAll} at once`, value: median(bareAll) },
  });
  results.addMedian(cpu, { part, name: 'CPU of nab-sync', unit: 's' });
}

interface Restored {
  /** Seconds from the start of the process. */
  readonly visible: number;
  readonly complete: number;
  readonly cpuSeconds: number;
}

async function restoreOnce(world: World, count: number): Promise<Restored> {
  const started = performance.now();
  const nabSync = await world.startNabSync();
  const visibleAt = await world.observer.untilVisible(count);
  const completeAt = await world.observer.untilComplete(count);
  const cpuSeconds = await new ProcessMeter(nabSync.pid).cpuSeconds();
  await nabSync.stop();
  await world.clear();
  return { visible: (visibleAt - started) / 1000, complete: (completeAt - started) / 1000, cpuSeconds };
}
