import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/kube/clock.ts';
import { Deadline, untilAborted } from '../../../src/kube/deadline.ts';

function timers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
}

describe('a deadline', () => {
  test('aborts when its time is up, and says so', async () => {
    using deadline = new Deadline(10);
    expect(deadline.signal.aborted).toBe(false);
    await sleep(30);
    expect([deadline.signal.aborted, deadline.expired]).toEqual([true, true]);
  });

  test('aborts with the signal of the caller, and tells the two apart', () => {
    const caller = new AbortController();
    using deadline = new Deadline(10_000, caller.signal);
    caller.abort();
    expect([deadline.signal.aborted, deadline.expired]).toEqual([true, false]);
    using late = new Deadline(10_000, caller.signal);
    expect([late.signal.aborted, late.expired]).toEqual([true, false]);
  });

  test('can be put off, and cannot be brought back', async () => {
    using deadline = new Deadline(300);
    for (let round = 0; round < 5; round += 1) {
      await sleep(80);
      deadline.extend();
    }
    expect(deadline.expired).toBe(false);
    deadline.extend(5);
    await sleep(20);
    expect(deadline.expired).toBe(true);
    deadline.extend(10_000);
    expect(deadline.signal.aborted).toBe(true);
  });

  test('tells everybody who wants to know, once, and nobody who has left', async () => {
    const told: string[] = [];
    using deadline = new Deadline(10);
    deadline.onOver(() => told.push('stayed'));
    const leave = deadline.onOver(() => told.push('left'));
    leave();
    const { signal } = deadline;
    await sleep(30);
    deadline.extend(1);
    await sleep(10);
    expect([told, signal.aborted, deadline.over]).toEqual([['stayed'], true, true]);
  });

  test('leaves neither a timer nor a listener behind, however many share one signal', () => {
    const caller = new AbortController();
    const before = timers();
    for (let round = 0; round < 1_000; round += 1) {
      using deadline = new Deadline(60_000, caller.signal);
      expect(deadline.expired).toBe(false);
    }
    expect(timers()).toBe(before);
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
  });
});

describe('waiting for what knows no signal', () => {
  test('ends with the promise, or with the signal, and leaves no listener behind', async () => {
    const { signal } = new AbortController();
    expect(await untilAborted(Promise.resolve(5), signal)).toBe(5);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    const never = Promise.withResolvers<never>().promise;
    await expect(untilAborted(never, AbortSignal.timeout(5))).rejects.toThrow();
    await expect(untilAborted(never, AbortSignal.abort())).rejects.toThrow();
  });
});

describe('the system clock', () => {
  test('wakes early when the signal is aborted, and does not mind one that already is', async () => {
    const started = systemClock.monotonic();
    await systemClock.sleep(10_000, AbortSignal.timeout(5));
    await systemClock.sleep(10_000, AbortSignal.abort());
    expect(systemClock.monotonic() - started).toBeLessThan(2_000);
    expect(systemClock.now()).toBeGreaterThan(Date.UTC(2026, 0, 1));
  });
});
