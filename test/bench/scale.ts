import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { resourcePath, type Resource } from '../../src/kube/resource.ts';
import { backups, nonAdminBackups } from '../../src/oadp/kinds.ts';
import { nacLabelSelector } from '../../src/oadp/labels.ts';
import { decideTime, type DecideTime } from './decide-time.ts';
import { untilReady } from './metrics-page.ts';
import type { BenchOptions } from './options.ts';
import { ProcessMeter, toMiB } from './process-meter.ts';
import type { Results } from './results.ts';
import { median } from './statistics.ts';
import { oadpNamespace, places } from './stored-backup.ts';
import type { World } from './world.ts';

const part = 'scale';

/** How long after the last write memory is called steady. */
const settleMs = 10_000;

const perNamespace = 50;

/** Times that are a tenth of a second: one alone would be noise. */
const decideRuns = 5;

/** Adds Backups until there are `count`, without NABs. */
export async function grow(world: World, count: number): Promise<void> {
  const missing = count - world.places.length;
  if (missing > 0) await world.add(places(`tenant-${count}`, missing, Math.ceil(missing / perNamespace)));
}

interface Sized {
  readonly count: number;
  readonly syncedMs: number;
  readonly steadyBytes: number;
}

/** What the number of Backups costs, by number, and whether it grows with the number only. */
export class ScaleMeasurement {
  readonly #world: World;
  readonly #options: BenchOptions;
  readonly #results: Results;
  readonly #sizes: Sized[] = [];

  constructor(world: World, options: BenchOptions, results: Results) {
    this.#world = world;
    this.#options = options;
    this.#results = results;
  }

  /** All NABs that are missing are written by nab-sync; memory is at its highest then. */
  async fill(): Promise<void> {
    const { observer } = this.#world;
    const count = this.#world.places.length;
    const missing = count - observer.of().complete.size;
    if (missing === 0) return;
    const started = performance.now();
    const nabSync = await this.#world.startNabSync();
    const completeAt = await observer.untilComplete(count, undefined, 3_600_000);
    const { peak } = await new ProcessMeter(nabSync.pid).memory();
    const name = (text: string): string => `${count} backups, ${missing} of them restored: ${text}`;
    const seconds = (completeAt - started) / 1000;
    this.#results.add({ part, name: name('rate with status'), unit: 'NABs/s', value: missing / seconds });
    this.#results.add({ part, name: name('peak memory'), unit: 'MiB', value: toMiB(peak) });
    await nabSync.stop();
  }

  /** With all NABs there but those of one namespace. */
  async measure(): Promise<void> {
    const count = this.#world.places.length;
    const limits: number[] = [];
    const firstNab: number[] = [];
    const synced: number[] = [];
    const steady: number[] = [];
    const peaks: number[] = [];
    for (let run = 0; run < this.#options.runs; run += 1) {
      limits.push(await this.#bareLists());
      const measured = await this.#startOnce(count);
      if (measured.firstNabMs !== undefined) firstNab.push(measured.firstNabMs);
      synced.push(measured.syncedMs);
      steady.push(measured.steadyBytes);
      peaks.push(measured.peakBytes);
    }
    const name = (text: string): string => `${count} backups and NABs: ${text}`;
    const limit = { name: 'both lists, bare', value: median(limits) };
    this.#results.addMedian(synced, { part, name: name('start to synced'), unit: 'ms', limit });
    if (count > 0) {
      this.#results.addMedian(firstNab, { part, name: name('start to first NAB'), unit: 'ms', limit });
    }
    const bound = memoryBound(count);
    this.#results.addMedian(steady.map(toMiB), {
      part,
      name: name('steady memory'),
      unit: 'MiB',
      ...(bound === undefined ? {} : { target: { of: 'value', atMost: bound } }),
    });
    this.#results.addMedian(peaks.map(toMiB), {
      part,
      name: name('peak memory since start'),
      unit: 'MiB',
      ...(bound === undefined ? {} : { target: { of: 'value', atMost: bound } }),
    });
    this.#sizes.push({ count, syncedMs: median(synced), steadyBytes: median(steady) });
  }

  /** Compares the largest size with the one before it, each beyond what no backup at all costs. */
  judgeGrowth(): void {
    const [empty, ...sizes] = this.#sizes;
    const [smaller, larger] = sizes.slice(-2);
    if (empty?.count !== 0 || smaller === undefined || larger === undefined) return;
    const decideSeconds = this.#decide(sizes.map(({ count }) => count));
    const growth = (what: string, unit: string, of: (size: Sized) => number): void => {
      const each = (size: Sized): number => (of(size) - of(empty)) / size.count;
      this.#results.add({
        part,
        name: `${what} per backup at ${larger.count}`,
        unit,
        value: each(larger),
        limit: { name: `at ${smaller.count}`, value: each(smaller) },
        target: { of: 'ratio', atMost: 1.2 },
      });
    };
    growth('start to synced', 'ms', ({ syncedMs }) => syncedMs);
    growth('steady memory', 'bytes', ({ steadyBytes }) => steadyBytes);
    growth('time to decide', 'µs', ({ count }) => (decideSeconds.get(count) ?? 0) * 1e6);
  }

  async #startOnce(count: number): Promise<{
    firstNabMs: number | undefined;
    syncedMs: number;
    steadyBytes: number;
    peakBytes: number;
  }> {
    const { observer } = this.#world;
    const [namespace] = this.#world.namespaces;
    if (namespace !== undefined) {
      await this.#world.emptyNamespace(namespace);
      await observer.untilGone(namespace);
    }
    const left = observer.of().visible.size;
    const started = performance.now();
    const nabSync = await this.#world.startNabSync();
    const [syncedAt, firstAt] = await Promise.all([
      untilReady(nabSync, 300_000).then(() => performance.now()),
      count === 0 ? undefined : observer.untilVisible(left + 1, undefined, 300_000),
    ]);
    await observer.untilComplete(count, undefined, 300_000);
    await sleep(settleMs);
    const memory = await new ProcessMeter(nabSync.pid).memory();
    await nabSync.stop();
    return {
      firstNabMs: firstAt === undefined ? undefined : firstAt - started,
      syncedMs: syncedAt - started,
      steadyBytes: memory.resident,
      peakBytes: memory.peak,
    };
  }

  /** Milliseconds to page through Backups and NABs and parse them, with nothing kept. */
  async #bareLists(): Promise<number> {
    const began = performance.now();
    await Promise.all([
      this.#bareList(backups, { labelSelector: nacLabelSelector, namespace: oadpNamespace }),
      this.#bareList(nonAdminBackups, {}),
    ]);
    return performance.now() - began;
  }

  async #bareList(
    resource: Resource,
    { labelSelector, namespace }: { labelSelector?: string; namespace?: string },
  ): Promise<void> {
    let token: string | undefined;
    do {
      const query = new URLSearchParams({ limit: '500' });
      if (labelSelector !== undefined) query.set('labelSelector', labelSelector);
      if (token !== undefined) query.set('continue', token);
      const page = await this.#world.admin.call('GET', `${resourcePath(resource, { namespace })}?${query.toString()}`);
      token = listMetadata.parse(page).metadata.continue;
    } while (token !== undefined && token !== '');
  }

  /** Median seconds to decide for all, by number of backups; each size in turn, so that what else goes on strikes all alike. */
  #decide(counts: readonly number[]): Map<number, number> {
    // The first calls are compiled while they run; a controller decides thousands of times.
    for (let warmUp = 0; warmUp < 3; warmUp += 1) decideTime(2000, false);
    const times = new Map(counts.map((count): [number, DecideTime[]] => [count, []]));
    for (let run = 0; run < Math.max(decideRuns, this.#options.runs); run += 1) {
      for (const [count, of] of times) of.push(decideTime(count, false));
    }
    for (const [count, of] of times) {
      const add = (text: string, what: keyof DecideTime): void => {
        this.#results.addMedian(
          of.map((time) => time[what] * 1000),
          { part, name: `${count} backups: ${text}, no I/O`, unit: 'ms' },
        );
      };
      add('reading objects into records', 'project');
      add('indexing', 'index');
      add('deciding for all', 'decide');
    }
    return new Map([...times].map(([count, of]) => [count, median(of.map(({ decide }) => decide))]));
  }
}

const listMetadata = z.object({ metadata: z.object({ continue: z.string().optional() }) });

/** MiB; the targets are for two sizes. */
function memoryBound(count: number): number | undefined {
  return new Map([
    [10_000, 120],
    [50_000, 300],
  ]).get(count);
}
