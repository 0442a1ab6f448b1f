import { once } from 'node:events';
import { spawnBound } from '../support/control-plane/bound-process.ts';
import { eventually } from '../support/eventually.ts';
import type { BenchOptions } from './options.ts';
import { Relay } from './relay.ts';
import type { Results } from './results.ts';
import { median } from './statistics.ts';
import type { World } from './world.ts';

/** One HTTPS request by Node and nothing else: what no program that runs on it can be faster than. */
const bareRequest = `require('node:https').get(process.argv[1], { rejectUnauthorized: false }, (answer) => answer.resume())`;

/** From the start of the process to its first request and to the first NAB that a tenant sees. */
export async function measureColdStart(world: World, options: BenchOptions, results: Results): Promise<void> {
  const part = 'cold';
  const bare: number[] = [];
  const firstRequest: number[] = [];
  const firstNab: number[] = [];
  for (let run = 0; run < options.runs; run += 1) {
    bare.push(await bareFirstRequest(world));
    const relay = await Relay.start(world.controlPlane.server);
    const started = performance.now();
    const nabSync = await world.startNabSync({ server: relay.url });
    const visibleAt = await world.observer.untilVisible(1);
    firstRequest.push((relay.firstRequestAt ?? Number.NaN) - started);
    firstNab.push(visibleAt - started);
    await nabSync.stop();
    relay.close();
    await world.clear();
  }
  const limit = { name: 'node and one request', value: median(bare) };
  results.addMedian(firstRequest, {
    part,
    name: 'process start to first request',
    unit: 'ms',
    limit,
    target: { of: 'value', atMost: 300 },
  });
  results.addMedian(firstNab, { part, name: 'process start to first NAB visible', unit: 'ms', limit });
}

async function bareFirstRequest(world: World): Promise<number> {
  const relay = await Relay.start(world.controlPlane.server);
  const started = performance.now();
  const child = spawnBound(process.execPath, ['-e', bareRequest, relay.url], { cwd: world.directory, output: 'pipe' });
  await once(child, 'exit');
  const at = await eventually(() => {
    if (relay.firstRequestAt === undefined) throw new Error('no request came');
    return relay.firstRequestAt;
  });
  relay.close();
  return at - started;
}
