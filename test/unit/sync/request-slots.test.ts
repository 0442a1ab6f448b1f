import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { isOverdue, priorities, RequestSlots } from '../../../src/sync/request-slots.ts';

/** Work that ends when the test says so. */
function held(): { readonly work: () => Promise<void>; readonly begun: () => boolean; readonly end: () => void } {
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

/** Slots whose only one is taken, and the order in which further work is begun once it is free. */
function busySlots() {
  const slots = new RequestSlots(1);
  const holder = held();
  const order: string[] = [];
  const done = [slots.run(priorities.liveCreate, holder.work)];
  const note = (name: string) => () => {
    order.push(name);
    return Promise.resolve();
  };
  return {
    slots,
    create: (name: string, priority: number = priorities.create) => done.push(slots.run(priority, note(name))),
    status: (name: string, dueSince: number, now: number) => done.push(slots.runStatus(dueSince, now, note(name))),
    finish: async () => {
      holder.end();
      await Promise.all(done);
      return order;
    },
  };
}

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe('when requests wait for a slot', () => {
  test('what a tenant waits for goes first, then other creates, then statuses', async () => {
    const { create, status, finish } = busySlots();
    status('status', 0, 0);
    create('create');
    create('live', priorities.liveCreate);
    expect(await finish()).toEqual(['live', 'create', 'status']);
  });

  test('equals go in the order in which they came', async () => {
    const { create, status, finish } = busySlots();
    status('s1', 0, 0);
    create('c1');
    status('s2', 0, 0);
    create('c2');
    expect(await finish()).toEqual(['c1', 'c2', 's1', 's2']);
  });

  test('a status gives way for two seconds and then takes its turn among the creates', async () => {
    const { create, status, finish } = busySlots();
    status('status', 1000, 1500);
    create('before');
    vi.advanceTimersByTime(1499);
    create('late');
    vi.advanceTimersByTime(1);
    create('after');
    expect(await finish()).toEqual(['before', 'late', 'status', 'after']);
  });

  test('a status whose patience is at an end already does not wait for others', async () => {
    const { create, status, finish } = busySlots();
    status('patient', 1001, 3000);
    status('overdue', 1000, 3000);
    create('create');
    expect(await finish()).toEqual(['overdue', 'create', 'patient']);
  });

  test('a status that was begun leaves no timer behind', async () => {
    const slots = new RequestSlots(1);
    await slots.runStatus(0, 0, () => Promise.resolve());
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a slot', () => {
  test('is one of as many as there are', async () => {
    const slots = new RequestSlots(3);
    const works = Array.from({ length: 5 }, held);
    const done = works.map(({ work }) => slots.run(priorities.create, work));
    expect(works.map(({ begun }) => begun())).toEqual([true, true, true, false, false]);
    for (const { end } of works) end();
    await Promise.all(done);
    expect(works.every(({ begun }) => begun())).toBe(true);
  });

  test('passes on what its work returns, and how it fails, and is free again', async () => {
    const slots = new RequestSlots(1);
    const failing = slots.run(priorities.create, () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    await expect(slots.runStatus(0, 0, () => Promise.reject(new Error('neither')))).rejects.toThrow('neither');
    expect(await slots.run(priorities.create, () => Promise.resolve('yes'))).toBe('yes');
    expect(await slots.runStatus(0, 0, () => Promise.resolve(7))).toBe(7);
  });
});

test.each([
  [1999, false],
  [2000, true],
])('a status that has been due for %i ms is overdue: %s', (waited, overdue) => {
  expect(isOverdue(5000, 5000 + waited)).toBe(overdue);
});
