import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { WorkQueue, type NextLook } from '../../../src/controller/work-queue.ts';

/** Work on keys that the test lets end, with what should come next. */
interface Bench {
  readonly queue: WorkQueue;
  /** Keys in the order in which work on them began, each with its priority. */
  readonly begun: (readonly [key: string, priority: number])[];
  /** Keys that are worked on now. */
  readonly running: () => string[];
  /** Ends the work on a key. */
  readonly end: (key: string, next?: NextLook) => Promise<void>;
  /** As `end`, by a fault. */
  readonly fail: (key: string, error: Error) => Promise<void>;
  readonly errors: (readonly [key: string, error: unknown])[];
  readonly observed: string[];
}

/** Lets time pass, and all that is due then run. */
async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  // Work begins behind a real turn of the event loop, in which sockets get their chance.
  await turn();
  await turn();
}

const settled = (): Promise<void> => pass(0);

function bench(options: { concurrency?: number } = {}): Bench {
  const begun: (readonly [string, number])[] = [];
  const errors: (readonly [string, unknown])[] = [];
  const observed: string[] = [];
  const open = new Map<string, PromiseWithResolvers<NextLook>>();
  const observer: NonNullable<ConstructorParameters<typeof WorkQueue>[0]['observer']> = {
    queueAdded: () => observed.push('added'),
    queueRetried: () => observed.push('retried'),
    queueDepth: (depth) => observed.push(`depth ${String(depth)}`),
    queueWaited: (seconds) => observed.push(`waited ${String(seconds)}`),
  };
  const queue = new WorkQueue({
    concurrency: options.concurrency ?? 2,
    work: (key, priority) => {
      begun.push([key, priority]);
      if (open.has(key)) throw new Error(`${key} is worked on twice at once`);
      const work = Promise.withResolvers<NextLook>();
      open.set(key, work);
      return work.promise;
    },
    onError: (key, error) => errors.push([key, error]),
    observer,
    random: () => 0,
  });
  const take = (key: string): PromiseWithResolvers<NextLook> => {
    const work = open.get(key);
    if (work === undefined) throw new Error(`${key} is not worked on`);
    open.delete(key);
    return work;
  };
  return {
    queue,
    begun,
    errors,
    observed,
    running: () => [...open.keys()],
    end: async (key, next = {}) => {
      take(key).resolve(next);
      await settled();
    },
    fail: async (key, error) => {
      take(key).reject(error);
      await settled();
    },
  };
}

const failed: NextLook = { retry: { retryAfterMs: undefined } };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

describe('a key', () => {
  test('that is added is worked on at once, where there is room', async () => {
    const { queue, begun } = bench();
    queue.add('a', 1);
    await settled();
    expect(begun).toEqual([['a', 1]]);
  });

  test('that is added often while it waits is worked on once', async () => {
    const { queue, begun, end } = bench({ concurrency: 1 });
    queue.add('first', 0);
    for (let times = 0; times < 100; times += 1) queue.add('a', 1);
    await settled();
    expect(queue.depth).toBe(1);
    await end('first');
    await end('a');
    expect(begun.map(([key]) => key)).toEqual(['first', 'a']);
    expect(queue.idle).toBe(true);
  });

  test('is never worked on twice at once', async () => {
    const { queue, running } = bench({ concurrency: 5 });
    queue.add('a', 0);
    await settled();
    queue.add('a', 2);
    queue.add('a', 2);
    await settled();
    expect(running()).toEqual(['a']);
  });

  test('that changes while it is worked on is worked on again, once, and as urgently as the most urgent change', async () => {
    const { queue, begun, end } = bench();
    queue.add('a', 0);
    await settled();
    queue.add('a', 1);
    queue.add('a', 2);
    queue.add('a', 0);
    await end('a');
    await end('a');
    expect(begun).toEqual([
      ['a', 0],
      ['a', 2],
    ]);
    expect(queue.idle).toBe(true);
  });

  test('that a resync asks for while it is worked on is worked on again as a resync', async () => {
    const { queue, begun, end } = bench();
    queue.add('a', 2);
    await settled();
    queue.add('a', 0);
    await end('a');
    expect(begun).toEqual([
      ['a', 2],
      ['a', 0],
    ]);
  });

  test('that is done and unchanged is forgotten', async () => {
    const { queue, begun, end } = bench();
    queue.add('a', 0);
    await settled();
    await end('a');
    await pass(600_000);
    expect(begun).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('urgency', () => {
  test('goes before age; equals go in the order in which they came', async () => {
    const { queue, begun, end } = bench({ concurrency: 1 });
    queue.add('now', 0);
    await settled();
    queue.add('resync-1', 0);
    queue.add('change-1', 1);
    queue.add('namespace', 2);
    queue.add('resync-2', 0);
    queue.add('change-2', 1);
    for (const key of ['now', 'namespace', 'change-1', 'change-2', 'resync-1', 'resync-2']) await end(key);
    expect(begun.map(([key]) => key)).toEqual(['now', 'namespace', 'change-1', 'change-2', 'resync-1', 'resync-2']);
  });

  test('of a key that waits can grow and never shrinks', async () => {
    const { queue, begun, end } = bench({ concurrency: 1 });
    queue.add('now', 0);
    await settled();
    queue.add('a', 1);
    queue.add('b', 0);
    queue.add('b', 2);
    queue.add('b', 0);
    await end('now');
    await end('b');
    await end('a');
    expect(begun).toEqual([
      ['now', 0],
      ['b', 2],
      ['a', 1],
    ]);
  });

  test('is not lost while a key that failed is left alone', async () => {
    const { queue, begun, end } = bench();
    queue.add('a', 0);
    await settled();
    await end('a', failed);
    queue.add('a', 1);
    queue.add('a', 2);
    queue.add('a', 1);
    await pass(1000);
    expect(begun).toEqual([
      ['a', 0],
      ['a', 2],
    ]);
  });
});

describe('as many keys as allowed are worked on at once', () => {
  test.each([1, 3])('%i', async (concurrency) => {
    const { queue, running, end } = bench({ concurrency });
    for (const key of ['a', 'b', 'c', 'd']) queue.add(key, 0);
    await settled();
    expect(running()).toHaveLength(concurrency);
    expect(queue.depth).toBe(4 - concurrency);
    await end('a');
    expect(running()).toHaveLength(Math.min(concurrency, 3));
  });
});

describe('a key that failed', () => {
  /** Milliseconds that pass until work on the key begins again. */
  async function pause({ begun }: Bench): Promise<number> {
    const before = begun.length;
    const from = performance.now();
    while (begun.length === before && performance.now() - from < 200_000) await pass(50);
    return performance.now() - from;
  }

  test('is tried again with pauses that double up to a minute', async () => {
    const made = bench();
    made.queue.add('a', 0);
    await settled();
    const pauses: number[] = [];
    for (let times = 0; times < 9; times += 1) {
      await made.end('a', failed);
      pauses.push(await pause(made));
    }
    // Without jitter half of the pause is left.
    expect(pauses).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    expect(made.observed.filter((what) => what === 'retried')).toHaveLength(9);
  });

  test('begins with short pauses again once it succeeded', async () => {
    const made = bench();
    made.queue.add('a', 0);
    await settled();
    for (let times = 0; times < 5; times += 1) {
      await made.end('a', failed);
      await pause(made);
    }
    await made.end('a');
    made.queue.add('a', 1);
    await settled();
    await made.end('a', failed);
    expect(await pause(made)).toBe(500);
  });

  test('waits at least as long as the server asked', async () => {
    const made = bench();
    made.queue.add('a', 0);
    await settled();
    await made.end('a', { retry: { retryAfterMs: 20_000 } });
    expect(await pause(made)).toBe(20_000);
  });

  test('does not hold up another', async () => {
    const { queue, end, running } = bench({ concurrency: 1 });
    queue.add('bad', 0);
    await settled();
    queue.add('good', 0);
    await end('bad', failed);
    expect(running()).toEqual(['good']);
  });

  test('is left to its back-off by a resync', async () => {
    const made = bench();
    made.queue.add('a', 0);
    await settled();
    for (let times = 0; times < 4; times += 1) {
      await made.end('a', failed);
      if (times < 3) await pause(made);
    }
    made.queue.add('a', 0);
    await pass(1500);
    made.queue.add('a', 0);
    await settled();
    expect(made.running()).toEqual([]);
    expect(await pause(made)).toBe(2500);
  });

  test('is tried at once when something happens to it, but never twice in a second', async () => {
    const made = bench();
    made.queue.add('a', 0);
    await settled();
    for (let times = 0; times < 8; times += 1) {
      await made.end('a', failed);
      if (times < 7) await pause(made);
    }
    // Events may not undo the back-off: the first second is quiet.
    made.queue.add('a', 1);
    await settled();
    expect(made.running()).toEqual([]);
    expect(await pause(made)).toBe(1000);
    await made.end('a', failed);
    await pass(1000);
    made.queue.add('a', 1);
    await settled();
    expect(made.running()).toEqual(['a']);
  });

  test('that changed while it was worked on is tried again after the quiet second', async () => {
    const made = bench();
    made.queue.add('a', 0);
    await settled();
    for (let times = 0; times < 5; times += 1) {
      await made.end('a', failed);
      await pause(made);
    }
    made.queue.add('a', 1);
    await made.end('a', failed);
    expect(await pause(made)).toBe(1000);
  });

  test('is tried at once when what made it fail is over, and then begins with short pauses', async () => {
    const made = bench();
    made.queue.add('a', 0);
    await settled();
    for (let times = 0; times < 6; times += 1) {
      await made.end('a', failed);
      if (times < 5) await pause(made);
    }
    made.queue.retryNow();
    await settled();
    expect(made.running()).toEqual(['a']);
    await made.end('a', failed);
    expect(await pause(made)).toBe(500);
  });

  test('and is worked on again is not begun a second time when what made it fail is over', async () => {
    const { queue, end, running, begun } = bench();
    queue.add('a', 0);
    await settled();
    await end('a', failed);
    await pass(500);
    expect(running()).toEqual(['a']);
    queue.retryNow();
    await settled();
    await end('a');
    await pass(120_000);
    expect(begun).toHaveLength(2);
  });

  test('is not put off by an event where its back-off is shorter than the quiet second', async () => {
    const made = bench();
    made.queue.add('a', 0);
    await settled();
    await made.end('a', failed);
    made.queue.add('a', 1);
    expect(await pause(made)).toBe(500);
  });

  test('is worked on at once when whatever made it fail is over, as if it had never failed', async () => {
    const made = bench();
    for (const key of ['a', 'b']) made.queue.add(key, 0);
    await settled();
    for (let times = 0; times < 6; times += 1) {
      await made.end('a', failed);
      if (times < 5) await pause(made);
    }
    await made.end('b');
    made.queue.retryNow();
    await settled();
    expect(made.running()).toEqual(['a']);
    await made.end('a', failed);
    expect(await pause(made)).toBe(500);
  });

  test('and is worked on now is not worked on twice for that', async () => {
    const made = bench();
    made.queue.add('a', 0);
    await settled();
    await made.end('a', failed);
    await pause(made);
    made.queue.retryNow();
    await settled();
    expect(made.running()).toEqual(['a']);
    await made.end('a');
    expect(made.queue.idle).toBe(true);
  });

  test('is not begun behind a stop, whatever is over', async () => {
    const made = bench();
    made.queue.add('a', 0);
    await settled();
    await made.end('a', failed);
    await made.queue.stop();
    made.queue.retryNow();
    await pass(100_000);
    expect(made.begun).toHaveLength(1);
  });

  test('by a fault of ours is told of and tried again', async () => {
    const made = bench();
    made.queue.add('a', 0);
    await settled();
    const fault = new Error('ours');
    await made.fail('a', fault);
    expect(made.errors).toEqual([['a', fault]]);
    expect(await pause(made)).toBe(500);
  });
});

describe('a key that waits for a time', () => {
  test('is worked on when it has come', async () => {
    const { queue, begun, end } = bench();
    queue.add('a', 2);
    await settled();
    await end('a', { againInMs: 90_000 });
    await pass(89_999);
    expect(begun).toHaveLength(1);
    await pass(1);
    expect(begun).toEqual([
      ['a', 2],
      ['a', 0],
    ]);
  });

  test('is worked on earlier if something happens, and then not again for the time before', async () => {
    const { queue, begun, end } = bench();
    queue.add('a', 0);
    await settled();
    await end('a', { againInMs: 90_000 });
    queue.add('a', 0);
    await settled();
    await end('a');
    await pass(200_000);
    expect(begun).toHaveLength(2);
  });

  test('of a wait and a back-off the earlier counts', async () => {
    const { queue, begun, end } = bench();
    queue.add('a', 0);
    await settled();
    await end('a', { ...failed, againInMs: 100 });
    await pass(100);
    expect(begun).toHaveLength(2);
    await end('a', { ...failed, againInMs: 50_000 });
    await pass(1000);
    expect(begun).toHaveLength(3);
  });

  test('longer than a timer can is not worked on at once', async () => {
    const { queue, begun, end } = bench();
    queue.add('a', 0);
    await settled();
    await end('a', { againInMs: 2 ** 40 });
    await pass(3_600_000);
    expect(begun).toHaveLength(1);
  });
});

describe('a stop', () => {
  test('begins no key any more, and waits for those that are worked on', async () => {
    const { queue, begun, end } = bench({ concurrency: 1 });
    queue.add('a', 0);
    queue.add('b', 0);
    await settled();
    let stopped = false;
    const stop = queue.stop().then(() => {
      stopped = true;
    });
    queue.add('c', 2);
    await settled();
    expect(stopped).toBe(false);
    expect(queue.depth).toBe(0);
    await end('a', failed);
    await stop;
    expect(stopped).toBe(true);
    await pass(600_000);
    expect(begun).toEqual([['a', 0]]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('that comes while a key is about to be begun begins nothing', async () => {
    // Work yields to timers and sockets before it begins, so a stop can come in between.
    const { queue, begun } = bench();
    await pass(1000);
    queue.add('a', 0);
    const stopped = queue.stop();
    await settled();
    await stopped;
    expect(begun).toEqual([]);
    expect(queue.idle).toBe(true);
  });

  test('ends back-off and waits', async () => {
    const { queue, begun, end } = bench();
    queue.add('a', 0);
    queue.add('b', 0);
    await settled();
    await end('a', failed);
    await end('b', { againInMs: 10 });
    await queue.stop();
    expect(vi.getTimerCount()).toBe(0);
    await pass(600_000);
    expect(begun).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
  });
});

test('what waits for a time goes on to wait when what made others fail is over', async () => {
  const { queue, end, begun } = bench();
  queue.add('a', 0);
  await settled();
  await end('a', { againInMs: 5_000 });
  queue.retryNow();
  await pass(4_000);
  expect(begun).toHaveLength(1);
  await pass(1_000);
  expect(begun).toHaveLength(2);
});

test('work on many keys lets sockets and timers have their turn', async () => {
  let answered = false;
  const order: string[] = [];
  const queue = new WorkQueue({
    concurrency: 1,
    work: (key) => {
      // Work that keeps the processor for 3 ms.
      vi.advanceTimersByTime(3);
      order.push(answered ? `${key} after an answer` : key);
      return Promise.resolve({});
    },
    onError: () => undefined,
  });
  await pass(1000);
  for (let index = 0; index < 100; index += 1) queue.add(String(index), 0);
  setImmediate(() => {
    setImmediate(() => {
      answered = true;
    });
  });
  while (!queue.idle) await turn();
  expect(order).toHaveLength(100);
  expect(order.findIndex((entry) => entry.endsWith('after an answer'))).toBeLessThan(20);
  expect(order.at(-1)).toBe('99 after an answer');
});

describe('what is measured', () => {
  test('is what is added, what waits and for how long', async () => {
    const { queue, observed, end } = bench({ concurrency: 1 });
    expect(queue.idle).toBe(true);
    await pass(1000);
    queue.add('a', 0);
    await settled();
    expect(queue.idle).toBe(false);
    queue.add('b', 0);
    await pass(2000);
    queue.add('c', 2);
    expect(queue.longestWaitMs).toBe(2000);
    expect(queue.idle).toBe(false);
    await end('a');
    await end('c');
    await end('b');
    expect(queue.longestWaitMs).toBe(0);
    expect(observed).toEqual([
      'added',
      'depth 1',
      'depth 0',
      'waited 0',
      'added',
      'depth 1',
      'added',
      'depth 2',
      'depth 1',
      'waited 0',
      'depth 0',
      'waited 2',
    ]);
  });

  test('a key whose urgency grew has waited since it came', async () => {
    const { queue } = bench({ concurrency: 1 });
    queue.add('a', 0);
    await settled();
    queue.add('b', 0);
    await pass(5000);
    queue.add('b', 2);
    expect(queue.longestWaitMs).toBe(5000);
  });
});
