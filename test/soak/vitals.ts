import { setTimeout as sleep } from 'node:timers/promises';
import { metricsOf } from '../bench/metrics-page.ts';
import { ProcessMeter, toMiB } from '../bench/process-meter.ts';
import type { NabSyncProcess } from '../support/nab-sync.ts';

/** What must not grow with time. */
export interface Vitals {
  readonly residentMiB: number;
  readonly heapMiB: number;
  readonly descriptors: number;
  readonly sockets: number;
  readonly timers: number;
  /** Everything that keeps Node's loop alive, timers included. */
  readonly resources: number;
  readonly loopDelayMs: number;
}

/** How much more than at the start is still called flat: a share of it, and a bit that comes and goes. */
interface Allowance {
  readonly share: number;
  readonly plus: number;
}

const allowances: Readonly<Record<keyof Vitals, Allowance>> = {
  // Pages that V8 and malloc hold back for later differ from one moment to the next.
  residentMiB: { share: 0.1, plus: 10 },
  // V8 collects when the heap has grown by half (main.ts), so at rest up to that may be garbage; a leak goes on beyond it.
  heapMiB: { share: 0.5, plus: 3 },
  descriptors: { share: 0, plus: 4 },
  sockets: { share: 0, plus: 4 },
  timers: { share: 0, plus: 5 },
  resources: { share: 0, plus: 10 },
  // p99 since the last look; a busy machine counts more here than the program does.
  loopDelayMs: { share: 0, plus: 40 },
};

const looks = 8;
const lookEveryMs = 1500;

/**
 * The least of several looks, since garbage that waits for its collection, a connection that is about to be closed and the
 * look itself all make it more. For a process at rest.
 */
export async function takeVitals(nabSync: NabSyncProcess): Promise<Vitals> {
  const taken: Vitals[] = [];
  for (let look = 0; look < looks; look += 1) {
    taken.push(await takeOnce(nabSync));
    await sleep(lookEveryMs);
  }
  const least = (name: keyof Vitals): number => Math.min(...taken.map((vitals) => vitals[name]));
  return {
    residentMiB: least('residentMiB'),
    heapMiB: least('heapMiB'),
    descriptors: least('descriptors'),
    sockets: least('sockets'),
    timers: least('timers'),
    resources: least('resources'),
    loopDelayMs: least('loopDelayMs'),
  };
}

async function takeOnce(nabSync: NabSyncProcess): Promise<Vitals> {
  const meter = new ProcessMeter(nabSync.pid);
  const [memory, descriptors, metrics] = [await meter.memory(), await meter.descriptors(), await metricsOf(nabSync)];
  return {
    residentMiB: toMiB(memory.resident),
    heapMiB: toMiB(metrics.sum('nodejs_heap_size_used_bytes')),
    descriptors: descriptors.open,
    sockets: descriptors.sockets,
    timers: metrics.sum('nodejs_active_resources', ({ type }) => type === 'Timeout'),
    resources: metrics.sum('nodejs_active_resources_total'),
    loopDelayMs: metrics.sum('nodejs_eventloop_lag_p99_seconds') * 1000,
  };
}

/** A line for each: start, end, what is allowed, and whether it held. */
export function compareVitals(
  start: Vitals,
  end: Vitals,
): { readonly lines: readonly string[]; readonly flat: boolean } {
  const rows = Object.entries(allowances).map(([name, { share, plus }]) => {
    const [before, after] = [valueOf(start, name), valueOf(end, name)];
    const bound = before * (1 + share) + plus;
    return { name, before, after, bound, held: after <= bound };
  });
  const lines = rows.map(
    ({ name, before, after, bound, held }) =>
      `${name.padEnd(12)} ${show(before)} -> ${show(after)}   at most ${show(bound)}   ${held ? 'flat' : 'GREW'}`,
  );
  return { lines, flat: rows.every(({ held }) => held) };
}

function valueOf(vitals: Vitals, name: string): number {
  return new Map<string, number>(Object.entries(vitals)).get(name) ?? Number.NaN;
}

function show(value: number): string {
  return value.toFixed(1).padStart(8);
}
