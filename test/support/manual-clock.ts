import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/kube/clock.ts';

interface Sleeper {
  readonly due: number;
  readonly process: ProcessClock;
  readonly wake: () => void;
}

/**
 * Time that a test moves by hand. Each process under test gets a clock of its own from `process()`: the same pace, another
 * time of day and another zero, and it can be frozen like a process that got a SIGSTOP.
 */
export class ManualClock {
  #now = 0;
  readonly #sleepers = new Set<Sleeper>();
  /** What lies between the processes: never frozen. */
  readonly network = this.process();

  get now(): number {
    return this.#now;
  }

  /** How many sleep now: zero at the end of a test means that nothing was left running. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  process(options: { wallOffsetMs?: number; monotonicOffsetMs?: number } = {}): ProcessClock {
    return new ProcessClock(this, options.wallOffsetMs ?? 0, options.monotonicOffsetMs ?? 0);
  }

  /** Moves on by `ms`, stopping at each moment at which somebody wakes; `onStep` is called when all has settled there. */
  async advance(ms: number, onStep: () => void = () => undefined): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await turn();
      onStep();
      const next = this.#next(end);
      if (next === undefined) break;
      this.#now = Math.max(this.#now, next.due);
      this.#sleepers.delete(next);
      next.wake();
    }
    this.#now = end;
    await turn();
    onStep();
  }

  sleep(process: ProcessClock, ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) {
        resolve();
        return;
      }
      const wake = (): void => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      const onAbort = (): void => {
        this.#sleepers.delete(sleeper);
        resolve();
      };
      const sleeper: Sleeper = { due: this.#now + Math.max(0, ms), process, wake };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#sleepers.add(sleeper);
    });
  }

  /** Of those that are due together the one that fell asleep last wakes first: a timer may run later than it should. */
  #next(end: number): Sleeper | undefined {
    let next: Sleeper | undefined;
    for (const sleeper of this.#sleepers) {
      if (sleeper.due > end || sleeper.process.frozen) continue;
      if (next === undefined || Math.max(sleeper.due, this.#now) <= Math.max(next.due, this.#now)) next = sleeper;
    }
    return next;
  }
}

/** The clock of one process. */
export class ProcessClock implements Clock {
  /** While true nothing of this process wakes; time goes on all the same. */
  frozen = false;
  readonly world: ManualClock;
  readonly #wallOffsetMs: number;
  readonly #monotonicOffsetMs: number;

  constructor(world: ManualClock, wallOffsetMs: number, monotonicOffsetMs: number) {
    this.world = world;
    this.#wallOffsetMs = wallOffsetMs;
    this.#monotonicOffsetMs = monotonicOffsetMs;
  }

  now(): number {
    return Date.UTC(2026, 0, 1) + this.world.now + this.#wallOffsetMs;
  }

  monotonic(): number {
    return this.world.now + this.#monotonicOffsetMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.world.sleep(this, ms, signal);
  }
}
