import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Heap } from '../../../src/controller/heap.ts';

let flags: string[];

function heapWith(isListing: () => boolean): Heap {
  return new Heap(isListing, (flag) => {
    flags.push(flag);
  });
}

beforeEach(() => {
  flags = [];
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('memory is spared two seconds after the last write, and time from the next one on', () => {
  const heap = heapWith(() => false);
  for (let write = 0; write < 5; write += 1) {
    heap.work();
    vi.advanceTimersByTime(1900);
  }
  expect(flags).toEqual([]);
  vi.advanceTimersByTime(100);
  expect(flags).toEqual(['--optimize-for-size']);
  heap.work();
  heap.work();
  expect(flags).toEqual(['--optimize-for-size', '--no-optimize-for-size']);
  vi.advanceTimersByTime(60_000);
  expect(flags).toEqual(['--optimize-for-size', '--no-optimize-for-size', '--optimize-for-size']);
});

test('memory is not spared before the first lists are in, however long they take', () => {
  let isListing = true;
  heapWith(() => isListing);
  vi.advanceTimersByTime(60_000);
  expect(flags).toEqual([]);
  isListing = false;
  vi.advanceTimersByTime(2000);
  expect(flags).toEqual(['--optimize-for-size']);
});
