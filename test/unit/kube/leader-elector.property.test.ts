import fc from 'fast-check';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { LeaderElector } from '../../../src/kube/leader-elector.ts';
import { LeaseDouble } from '../../support/lease-double.ts';
import type { Fate } from '../../support/lease-double.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import type { ProcessClock } from '../../support/manual-clock.ts';

const silent = pino({ level: 'silent' });

/** One step of a story: time passes, then something happens to one of the processes. */
interface Step {
  readonly passMs: number;
  /** One of the three by number, or whoever leads then. */
  readonly who: number | 'leader';
  readonly what: 'nothing' | 'stop' | 'kill' | 'freeze' | 'thaw' | 'restart' | 'touch the lease';
}

interface Story {
  readonly steps: readonly Step[];
  /** What happens to each request in turn; after the last, requests are answered at once. */
  readonly fates: readonly Fate[];
  /** By how much each process's clock is off. */
  readonly skews: readonly number[];
  /** How long the work takes to settle after its signal aborted. */
  readonly settleMs: number;
  readonly random: readonly number[];
}

const latency = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.nat(500) },
  fc.nat(30_000),
);
const fate: fc.Arbitrary<Fate> = fc.record({
  there: latency,
  back: latency,
  end: fc.oneof(
    { weight: 6, arbitrary: fc.constant('answered' as const) },
    fc.constantFrom('lost', 'unanswered', 'ServerError', 'Throttled', 'Conflict', 'Forbidden'),
  ),
});
const step: fc.Arbitrary<Step> = fc.record({
  passMs: fc.oneof(fc.nat(2_500), fc.nat(20_000)),
  who: fc.oneof(fc.constant('leader' as const), fc.nat(2)),
  what: fc.oneof(
    { weight: 3, arbitrary: fc.constant('nothing' as const) },
    fc.constantFrom('stop', 'kill', 'freeze', 'thaw', 'restart', 'touch the lease'),
  ),
});
const story: fc.Arbitrary<Story> = fc.record({
  steps: fc.array(step, { minLength: 5, maxLength: 25 }),
  fates: fc.array(fate, { maxLength: 60 }),
  skews: fc.array(fc.integer({ min: -7_200_000, max: 7_200_000 }), { minLength: 3, maxLength: 3 }),
  settleMs: fc.oneof(fc.constant(0), fc.nat(5_000)),
  random: fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 1, maxLength: 7 }),
});

/** A process with an elector that runs again whenever its run has ended, as a pod that is restarted does. */
class Process {
  readonly clock: ProcessClock;
  readonly elector: LeaderElector;
  readonly #stop = new AbortController();
  readonly #settleMs: number;
  signal: AbortSignal | undefined;

  constructor(clock: ProcessClock, elector: LeaderElector, settleMs: number) {
    this.clock = clock;
    this.elector = elector;
    this.#settleMs = settleMs;
    void this.#live();
  }

  stop(): void {
    this.#stop.abort();
  }

  async #live(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.elector.run({
        signal: this.#stop.signal,
        lead: async (signal) => {
          this.signal = signal;
          await new Promise((resolve) => {
            signal.addEventListener('abort', resolve);
          });
          await this.clock.sleep(this.#settleMs);
        },
      });
    }
  }

  /** As the work sees it: its signal has not told it to stop, and it is running at all. */
  get unaborted(): boolean {
    return this.signal?.aborted === false && !this.clock.frozen;
  }
}

async function play({ steps, fates, skews, settleMs, random }: Story): Promise<number> {
  const world = new ManualClock();
  const lease = new LeaseDouble();
  let requests = 0;
  let rolls = 0;
  let born = 0;
  const start = (who: number): Process => {
    born += 1;
    const clock = world.process({ wallOffsetMs: skews[who] ?? 0, monotonicOffsetMs: 1_000_000 * born });
    const elector = new LeaderElector({
      client: lease.client(clock, () => fates[requests++] ?? {}),
      namespace: 'openshift-adp',
      name: 'nab-sync',
      identity: `process-${born}`,
      log: silent,
      clock,
      random: () => random[rolls++ % random.length] ?? 0,
    });
    return new Process(clock, elector, settleMs);
  };
  const processes = [start(0), start(1), start(2)];
  const all = [...processes];
  const check = (): void => {
    // The signals first: isLeading may abort one.
    expect(all.filter((process) => process.unaborted).length).toBeLessThanOrEqual(1);
    expect(all.filter((process) => process.elector.isLeading()).length).toBeLessThanOrEqual(1);
  };
  for (const { passMs, who, what } of steps) {
    await world.advance(passMs, check);
    const index = who === 'leader' ? processes.findIndex((process) => process.unaborted) : who;
    const process = processes[index];
    if (process === undefined) continue;
    if (what === 'stop') process.stop();
    if (what === 'kill') {
      process.clock.frozen = true;
      all.push((processes[index] = start(index)));
    }
    if (what === 'freeze') process.clock.frozen = true;
    if (what === 'thaw') process.clock.frozen = false;
    if (what === 'restart') {
      process.stop();
      all.push((processes[index] = start(index)));
    }
    if (what === 'touch the lease' && lease.lease !== undefined) lease.put({ ...lease.spec });
  }
  // Faults end, everybody who is frozen goes on, one fresh process is there: somebody must lead in the end.
  fates = [];
  all.push(start(0));
  await world.advance(60_000, check);
  expect(all.filter((process) => process.unaborted)).toHaveLength(1);
  return Number(lease.spec['leaseTransitions']);
}

describe('whatever happens to processes, clocks and requests', () => {
  it('two never lead at once, and in the end one does (field cases A10, D9, D10)', { timeout: 120_000 }, async () => {
    let takeOvers = 0;
    await fc.assert(
      fc.asyncProperty(story, async (told) => {
        takeOvers += await play(told);
      }),
      { numRuns: 200 },
    );
    // The stories must have held what they are about.
    expect(takeOvers).toBeGreaterThan(100);
  });
});
