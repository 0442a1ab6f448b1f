/**
 * `make soak MINUTES=30`: nab-sync through a long churn of namespaces, backups and broken connections. Prints what it holds
 * (memory, descriptors, sockets, timers, loop delay) at rest before and after; exits 1 when any of that grew, or when a NAB
 * is missing in the end. SEED repeats an order of events.
 */
import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Relay } from '../bench/relay.ts';
import { World } from '../bench/world.ts';
import { runScript, SetupError } from '../support/control-plane/setup-error.ts';
import type { NabSyncProcess } from '../support/nab-sync.ts';
import { Churn } from './churn.ts';
import { compareVitals, takeVitals, type Vitals } from './vitals.ts';

/** Idle connections are kept for 30 s, and caches and compiled code fill up in the first minutes. */
const restMs = 40_000;

const cutEveryMs = 20_000;
const pauseMs = 50;

await runScript(async () => {
  const minutes = numberFrom('MINUTES', 10);
  const seed = Math.floor(numberFrom('SEED', randomInt(1, 2 ** 31)));
  console.log(`soak: ${minutes} minutes, SEED=${seed}`);
  const world = await World.start();
  const relay = await Relay.start(world.controlPlane.server);
  try {
    const nabSync = await world.startNabSync({
      server: relay.url,
      // Resyncs and their metrics belong to what is soaked.
      env: { SYNC_PERIOD: '10s' },
    });
    const churn = new Churn(world, mulberry32(seed));
    await churn.begin();
    // What a process needs after a while it may have: the first part of the time does not count.
    const warmUpMs = Math.min(120_000, minutes * 60_000 * 0.2);
    await churnFor(churn, relay, warmUpMs);
    const start = await atRest(churn, nabSync);
    report('start', start, churn.steps);
    await churnFor(churn, relay, minutes * 60_000 - warmUpMs);
    const end = await atRest(churn, nabSync);
    report('end', end, churn.steps);
    const { lines, flat } = compareVitals(start, end);
    console.log(['', ...lines].join('\n'));
    const { exitCode } = await nabSync.stop();
    console.log(
      `\nsoak: ${churn.steps} steps, ${relay.traffic.connections} connections, ${flat ? 'all flat' : 'NOT flat'}, exit code ${String(exitCode)}`,
    );
    if (!flat || exitCode !== 0) process.exitCode = 1;
  } finally {
    relay.close();
    await world.stop();
  }
});

async function churnFor(churn: Churn, relay: Relay, ms: number): Promise<void> {
  const began = performance.now();
  let cutAt = began + cutEveryMs;
  while (performance.now() - began < ms) {
    await churn.step();
    if (performance.now() > cutAt) {
      relay.cut();
      cutAt = performance.now() + cutEveryMs;
    }
    await sleep(pauseMs);
  }
}

async function atRest(churn: Churn, nabSync: NabSyncProcess): Promise<Vitals> {
  await churn.untilSettled();
  await sleep(restMs);
  return await takeVitals(nabSync);
}

function report(when: string, vitals: Vitals, steps: number): void {
  const facts = Object.entries(vitals).map(([name, value]) => `${name} ${Number(value).toFixed(1)}`);
  console.log(`${when} (after ${steps} steps): ${facts.join(', ')}`);
}

function numberFrom(name: string, usual: number): number {
  const text = process.env[name];
  if (text === undefined || text === '') return usual;
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new SetupError(`${name} must be a positive number, not '${text}'`);
}

/** A small generator whose numbers are good enough for an order of events (Tommy Ettinger's mulberry32, public domain). */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
