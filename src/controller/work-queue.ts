import PQueue from 'p-queue';
import { retryDelay } from '../kube/retry-delay.ts';

/** When a key wants to be worked on again, apart from when something happens to it. */
export interface NextLook {
  /** It failed: again after its back-off, and not before `retryAfterMs`. */
  readonly retry?: { readonly retryAfterMs: number | undefined } | undefined;
  /** Again after so long. */
  readonly againInMs?: number | undefined;
}

export interface WorkQueueOptions {
  readonly concurrency: number;
  /** Works on a key. A rejection is a fault of ours: it is told to `onError` and the key is retried. */
  readonly work: (key: string, priority: number) => Promise<NextLook>;
  readonly onError: (key: string, error: unknown) => void;
  readonly observer?: QueueObserver;
  readonly random?: () => number;
}

/** For metrics. */
interface QueueObserver {
  queueAdded(): void;
  queueRetried(): void;
  queueDepth(depth: number): void;
  queueWaited(seconds: number): void;
}

interface Waiting {
  readonly priority: number;
  readonly since: number;
}

/** A key that is to be enqueued at a time, in ms of `performance.now()`. */
interface Due {
  readonly timer: NodeJS.Timeout;
  readonly dueMs: number;
  priority: number;
}

const backoffBaseMs = 1000;
const backoffCapMs = 60_000;

/** After a failure, whatever happens to the key, it is not worked on again before that: events may not undo back-off. */
const minimumGapMs = 1000;

/** The longest that a timer can be set for; beyond it, it would fire at once. */
const longestDelayMs = 2 ** 31 - 1;

/** How long work may go on before timers and sockets get their turn. */
const turnMs = 10;

/**
 * A queue of keys, never of events: a key that is added while it waits is there once, and one that is added while it
 * is worked on is worked on again afterwards. A key is never worked on twice at once. Its bound is the number of
 * different keys.
 *
 * Higher priorities go first; 0 is for what nothing happened to. Failures back off per key, so one key cannot hold up
 * another.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #queue: PQueue;
  readonly #waiting = new Map<string, Waiting>();
  /** Keys that are worked on; the value says whether, and with which priority, to work on them again. */
  readonly #running = new Map<string, { again: number | undefined }>();
  /** Keys that are enqueued by themselves at a time. */
  readonly #timers = new Map<string, Due>();
  readonly #attempts = new Map<string, number>();
  /** Until when a key that failed is left alone, in ms of `performance.now()`. */
  readonly #quietUntil = new Map<string, number>();
  #stopped = false;
  #turnBegan = 0;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#queue = new PQueue({ concurrency: options.concurrency });
  }

  /** Number of keys that wait to be worked on. */
  get depth(): number {
    return this.#waiting.size;
  }

  /** How long the key that has waited longest has done so, in milliseconds; 0 where none waits. */
  get longestWaitMs(): number {
    // Keys stand in the order in which they came.
    const [oldest] = this.#waiting.values();
    return oldest === undefined ? 0 : performance.now() - oldest.since;
  }

  /** Whether no key waits or is worked on; keys in back-off do not count. */
  get idle(): boolean {
    return this.#waiting.size === 0 && this.#running.size === 0;
  }

  /** Has the key worked on soon. */
  add(key: string, priority: number): void {
    if (this.#stopped) return;
    const running = this.#running.get(key);
    if (running !== undefined) {
      running.again = Math.max(running.again ?? 0, priority);
      return;
    }
    const quietMs = (this.#quietUntil.get(key) ?? 0) - performance.now();
    if (quietMs > 0) {
      // A resync leaves a key to its back-off; an event only shortens it to the minimum.
      if (priority > 0) this.#later(key, quietMs, priority);
      return;
    }
    if (priority === 0 && this.#attempts.has(key) && this.#timers.has(key)) return;
    this.#enqueue(key, priority);
  }

  /** Whatever made keys fail is over: those in back-off are worked on now, and their next failure counts as their first. */
  retryNow(): void {
    if (this.#stopped) return;
    for (const key of [...this.#attempts.keys()]) {
      this.#attempts.delete(key);
      this.#quietUntil.delete(key);
      const due = this.#timers.get(key);
      if (due !== undefined) this.#enqueue(key, due.priority);
    }
  }

  /** No key is begun any more. Resolves when those that are worked on are done. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const key of [...this.#timers.keys()]) this.#cancelTimer(key);
    this.#waiting.clear();
    this.#queue.clear();
    await this.#queue.onIdle();
  }

  #enqueue(key: string, priority: number): void {
    this.#cancelTimer(key);
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) {
      if (priority <= waiting.priority) return;
      this.#waiting.set(key, { ...waiting, priority });
      this.#queue.setPriority(key, priority);
      return;
    }
    this.#waiting.set(key, { priority, since: performance.now() });
    this.#options.observer?.queueAdded();
    this.#options.observer?.queueDepth(this.#waiting.size);
    // The task itself never rejects, but for being cleared by `stop`.
    this.#queue.add(() => this.#run(key), { id: key, priority }).catch(() => undefined);
  }

  async #run(key: string): Promise<void> {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) return;
    this.#waiting.delete(key);
    const running: { again: number | undefined } = { again: undefined };
    this.#running.set(key, running);
    this.#options.observer?.queueDepth(this.#waiting.size);
    this.#options.observer?.queueWaited((performance.now() - waiting.since) / 1000);
    await this.#breathe();
    if (this.#stopped) {
      this.#running.delete(key);
      return;
    }
    let next: NextLook;
    try {
      next = await this.#options.work(key, waiting.priority);
    } catch (error) {
      this.#options.onError(key, error);
      next = { retry: { retryAfterMs: undefined } };
    }
    this.#running.delete(key);
    this.#plan(key, next);
    if (running.again !== undefined) this.add(key, running.again);
  }

  /** The one place where a result becomes forget, back off, or again later. */
  #plan(key: string, { retry, againInMs }: NextLook): void {
    if (this.#stopped) return;
    const delays = againInMs === undefined ? [] : [againInMs];
    if (retry === undefined) {
      this.#attempts.delete(key);
      this.#quietUntil.delete(key);
    } else {
      const attempt = this.#attempts.get(key) ?? 0;
      this.#attempts.set(key, attempt + 1);
      this.#quietUntil.set(key, performance.now() + minimumGapMs);
      this.#options.observer?.queueRetried();
      const random = this.#options.random ?? Math.random;
      const { retryAfterMs } = retry;
      delays.push(retryDelay({ attempt, retryAfterMs, baseMs: backoffBaseMs, capMs: backoffCapMs, random }));
    }
    if (delays.length > 0) this.#later(key, Math.min(...delays), 0);
  }

  /** Enqueues the key after a delay, or earlier where it was already to be; as urgently as was ever asked for. */
  #later(key: string, delayMs: number, priority: number): void {
    const dueMs = performance.now() + delayMs;
    const earlier = this.#timers.get(key);
    if (earlier !== undefined && earlier.dueMs <= dueMs) {
      earlier.priority = Math.max(earlier.priority, priority);
      return;
    }
    this.#cancelTimer(key);
    const timer = setTimeout(
      () => {
        this.#timers.delete(key);
        this.#quietUntil.delete(key);
        this.#enqueue(key, due.priority);
      },
      Math.min(delayMs, longestDelayMs),
    );
    const due: Due = { timer, dueMs, priority: Math.max(earlier?.priority ?? 0, priority) };
    this.#timers.set(key, due);
  }

  #cancelTimer(key: string): void {
    clearTimeout(this.#timers.get(key)?.timer);
    this.#timers.delete(key);
  }

  async #breathe(): Promise<void> {
    if (performance.now() - this.#turnBegan < turnMs) return;
    await new Promise((resolve) => setImmediate(resolve));
    this.#turnBegan = performance.now();
  }
}
