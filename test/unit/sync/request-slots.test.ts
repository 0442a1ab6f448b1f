import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RequestSlots, type Lane } from '../../../src/sync/request-slots.ts';
import { slotsOf } from './support/pass.ts';

/** Work that ends when the test says so. */
interface Held {
  readonly work: () => Promise<void>;
  readonly begun: () => boolean;
  readonly end: () => void;
}

function held(): Held {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  let begun = false;
  return {
    work: async () => {
      begun = true;
      await promise;
    },
    begun: () => begun,
    end: () => {
      resolve(undefined);
    },
  };
}

/** The order in which work gets the only slot, once all of it waits. */
async function orderOf(
  waiting: readonly (readonly [Lane, string])[],
  { waitedMs = 0 }: { readonly waitedMs?: number } = {},
): Promise<string[]> {
  const now = 1_000_000;
  const slots = new RequestSlots({ current: 1, ceiling: 1 }, () => now);
  const holder = held();
  const order: string[] = [];
  const done = [slots.run('liveCreate', holder.work)];
  for (const [lane, name] of waiting) {
    done.push(
      slots.run(
        lane,
        () => {
          order.push(name);
          return Promise.resolve();
        },
        { waitingSince: now - waitedMs },
      ),
    );
  }
  holder.end();
  await Promise.all(done);
  return order;
}

describe('when requests wait for a slot', () => {
  test('what a tenant waits for goes first, then other creates, then other statuses', async () => {
    const order = await orderOf([
      ['status', 'status'],
      ['create', 'create'],
      ['liveStatus', 'live status'],
      ['liveCreate', 'live create'],
    ]);
    expect(order).toEqual(['live create', 'live status', 'create', 'status']);
  });

  test('what is for a namespace that changes meanwhile goes ahead of the others', async () => {
    const slots = slotsOf(1);
    const holder = held();
    const order: string[] = [];
    const done = [slots.run('create', holder.work, { namespace: 'team-a' })];
    for (const [lane, namespace] of [
      ['create', 'team-a'],
      ['status', 'team-a'],
      ['status', 'team-b'],
      ['create', 'team-b'],
      ['liveCreate', 'team-c'],
      ['create', 'team-b'],
    ] as const) {
      const work = async (): Promise<void> => {
        await Promise.resolve();
        order.push(`${lane} ${namespace}`);
      };
      done.push(slots.run(lane, work, { namespace }));
    }
    slots.hurry('team-b');
    holder.end();
    await Promise.all(done);
    expect(order).toEqual([
      'liveCreate team-c',
      'create team-b',
      'create team-b',
      'status team-b',
      'create team-a',
      'status team-a',
    ]);
  });

  test('equals go in the order in which they came', async () => {
    const order = await orderOf([
      ['status', 's1'],
      ['create', 'c1'],
      ['status', 's2'],
      ['create', 'c2'],
    ]);
    expect(order).toEqual(['c1', 'c2', 's1', 's2']);
  });

  describe('and many creates do', () => {
    const creates = Array.from({ length: 200 }, (_, n): readonly [Lane, string] => [
      n < 100 ? 'create' : 'liveCreate',
      'c',
    ]);
    const statuses = Array.from({ length: 3 }, (): readonly [Lane, string] => ['status', 's']);

    test('a status gives way to all of them for two seconds', async () => {
      const order = await orderOf([...statuses, ...creates], { waitedMs: 1999 });
      expect(order.slice(-3)).toEqual(['s', 's', 's']);
    });

    test('one of 64 slots goes to a status that has waited for longer', async () => {
      const order = await orderOf([...statuses, ...creates], { waitedMs: 2000 });
      const turns = order.flatMap((what, turn) => (what === 's' ? [turn] : []));
      // The holder's was the first of the first 64.
      expect(turns).toEqual([62, 126, 190]);
    });
  });

  test('the share is for statuses of namespaces that came back as well, and for those first', async () => {
    const creates = Array.from({ length: 200 }, (): readonly [Lane, string] => ['liveCreate', 'c']);
    const order = await orderOf([['status', 'other'], ['liveStatus', 'live'], ...creates], { waitedMs: 2000 });
    expect([order[62], order[126]]).toEqual(['live', 'other']);
  });

  test('a status has nothing to wait for where no create waits, and what it took is not saved up', async () => {
    const statuses = Array.from({ length: 20 }, (): readonly [Lane, string] => ['status', 's']);
    const order = await orderOf([...statuses, ['create', 'c']]);
    expect(order).toEqual(['c', ...statuses.map(() => 's')]);
  });
});

describe('a slot', () => {
  test('is one of as many as there are', async () => {
    const slots = slotsOf(3);
    const works = Array.from({ length: 5 }, held);
    const done = works.map(({ work }) => slots.run('create', work));
    await Promise.resolve();
    expect(works.map(({ begun }) => begun())).toEqual([true, true, true, false, false]);
    for (const { end } of works) end();
    await Promise.all(done);
    expect(works.every(({ begun }) => begun())).toBe(true);
  });

  test('is taken away when it is free, and given back when there are more', async () => {
    const limit = { current: 2, ceiling: 3 };
    const slots = new RequestSlots(limit, () => 0);
    const works = Array.from({ length: 6 }, held);
    const done = works.map(({ work }) => slots.run('create', work));
    const end = async (index: number): Promise<boolean[]> => {
      works[index]?.end();
      await done[index];
      return works.map(({ begun }) => begun());
    };
    limit.current = 1;
    expect(await end(0)).toEqual([true, true, false, false, false, false]);
    expect(await end(1)).toEqual([true, true, true, false, false, false]);
    limit.current = 3;
    expect(await end(2)).toEqual([true, true, true, true, true, true]);
    for (const { end: finish } of works) finish();
    await Promise.all(done);
  });

  test('passes on what its work returns, and how it fails, and is free again', async () => {
    const slots = slotsOf(1);
    const failing = slots.run('create', () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    await expect(slots.run('status', () => Promise.reject(new Error('neither')))).rejects.toThrow('neither');
    expect(await slots.run('create', () => Promise.resolve('yes'))).toBe('yes');
    expect(await slots.run('status', () => Promise.resolve(7))).toBe(7);
  });
});

describe('a slot whose work is held up', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Which of the works have begun after each of the waits, in milliseconds. */
  async function begunAfter(works: readonly Held[], waits: readonly number[]): Promise<string[]> {
    const begun: string[] = [];
    for (const ms of waits) {
      await vi.advanceTimersByTimeAsync(ms);
      begun.push(works.map((work) => (work.begun() ? 'x' : '.')).join(''));
    }
    return begun;
  }

  test('is lent after a second, and what borrowed it may be held up too, up to the ceiling', async () => {
    const slots = new RequestSlots({ current: 2, ceiling: 5 }, () => 0);
    const works = Array.from({ length: 7 }, held);
    const done = works.map(({ work }) => slots.run('create', work));
    expect(await begunAfter(works, [999, 1, 999, 1, 5_000])).toEqual([
      'xx.....',
      'xxxx...',
      'xxxx...',
      'xxxxx..',
      'xxxxx..',
    ]);
    for (const { end } of works) end();
    await Promise.all(done);
  });

  test('is no more than the one slot that it was, once its work has ended', async () => {
    const slots = new RequestSlots({ current: 1, ceiling: 5 }, () => 0);
    const first = held();
    const begun = [slots.run('create', first.work)];
    await vi.advanceTimersByTimeAsync(1_500);
    first.end();
    await Promise.all(begun);
    const works = Array.from({ length: 3 }, held);
    const done = works.map(({ work }) => slots.run('create', work));
    expect(await begunAfter(works, [500, 500])).toEqual(['x..', 'xx.']);
    for (const { end } of works) end();
    await Promise.all(done);
    expect(vi.getTimerCount()).toBe(0);
  });
});
