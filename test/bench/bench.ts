/**
 * `make bench`: how fast nab-sync is, each figure beside its limit from the same run. Prints a table and writes
 * bench-results/DATE.json; progress goes to stderr. options.ts says what the environment can choose.
 */
import { runScript } from '../support/control-plane/setup-error.ts';
import { measureColdStart } from './cold-start.ts';
import { benchOptions, type BenchOptions, type Part } from './options.ts';
import { measurePeer } from './peer.ts';
import { measureReappearance } from './reappearance.ts';
import { measureRestore } from './restore.ts';
import { Results } from './results.ts';
import { grow, ScaleMeasurement } from './scale.ts';
import { measureSteadyState } from './steady-state.ts';
import { places } from './stored-backup.ts';
import { World } from './world.ts';

async function inWorld(options: BenchOptions, work: (world: World) => Promise<void>): Promise<void> {
  const world = await World.start(options.extraEnvironment);
  try {
    await work(world);
  } finally {
    await world.stop();
  }
}

await runScript(async () => {
  const options = benchOptions(process.env);
  const results = new Results();
  const chosen = (...names: Part[]): boolean => names.some((name) => options.parts.includes(name));

  if (chosen('cold')) {
    await inWorld(options, async (world) => {
      await world.add(places('team', 20, 1));
      await measureColdStart(world, options, results);
    });
  }
  if (chosen('restore', 'reappearance')) {
    await inWorld(options, async (world) => {
      await world.add(places('team', options.restore.backups, options.restore.namespaces));
      if (chosen('restore')) await measureRestore(world, options, results);
      if (chosen('reappearance')) await measureReappearance(world, options, results);
    });
  }
  if (chosen('scale', 'steady')) {
    await inWorld(options, async (world) => {
      const scale = new ScaleMeasurement(world, options, results);
      if (chosen('scale')) await scale.measure();
      const sizes = new Set([
        ...(chosen('scale') ? options.scaleSteps : []),
        ...(chosen('steady') ? [options.steadyBackups] : []),
      ]);
      for (const size of [...sizes].sort((a, b) => a - b)) {
        await grow(world, size);
        await scale.fill();
        if (chosen('scale') && options.scaleSteps.includes(size)) await scale.measure();
        if (chosen('steady') && size === options.steadyBackups) await measureSteadyState(world, options, results);
      }
      if (chosen('scale')) scale.judgeGrowth();
    });
  }
  if (chosen('peer') && options.nacBinary !== undefined) await measurePeer(options.nacBinary, options, results);

  console.log(results.table());
  const { cpu, cores, memoryGiB, node, commit, loadBefore, loadAfter } = results.machine();
  console.log(
    `\n${cpu}, ${cores} cores, ${memoryGiB} GiB, node ${node}, ${commit}; load average ${loadBefore.toFixed(1)} before, ${loadAfter.toFixed(1)} after`,
  );
  console.log(`written to ${await results.save('bench-results')}`);
  const { missed } = results;
  if (missed.length > 0) console.log(`${missed.length} target(s) missed`);
});
