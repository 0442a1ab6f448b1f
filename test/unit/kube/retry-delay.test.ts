import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { retryDelay } from '../../../src/kube/retry-delay.ts';

const noJitter = (): number => 0;
const base = { baseMs: 100, capMs: 3_000, random: noJitter };

describe('the delay before a retry', () => {
  test('doubles with each attempt and stops growing at the cap', () => {
    const delays = [0, 1, 2, 3, 4, 5, 6, 1000].map((attempt) => retryDelay({ ...base, attempt }));
    expect(delays).toEqual([50, 100, 200, 400, 800, 1500, 1500, 1500]);
  });

  test('is spread over its upper half', () => {
    expect(retryDelay({ ...base, attempt: 3, random: () => 0.999_999 })).toBe(800);
    expect(retryDelay({ ...base, attempt: 3, random: () => 0.5 })).toBe(600);
  });

  test('is never shorter than what the server asked for, and spread upwards from there', () => {
    expect(retryDelay({ ...base, attempt: 0, retryAfterMs: 10_000 })).toBe(10_000);
    expect(retryDelay({ ...base, attempt: 0, retryAfterMs: 10_000, random: () => 0.8 })).toBe(12_000);
  });

  test('follows its own growth when the server asked for less', () => {
    expect(retryDelay({ ...base, attempt: 9, retryAfterMs: 1 })).toBe(1_500);
  });

  test('does not let a server send us away for a day', () => {
    expect(retryDelay({ ...base, attempt: 0, retryAfterMs: 86_400_000 })).toBe(60_000);
  });

  test('stays within its bounds whatever the attempt, the server and chance say', () => {
    const anything = fc.record({
      attempt: fc.integer({ min: -5, max: 100_000 }),
      retryAfterMs: fc.option(fc.double({ min: -1e12, max: 1e12, noNaN: true }), { nil: undefined }),
      chance: fc.double({ min: 0, max: 0.999_999, noNaN: true }),
    });
    fc.assert(
      fc.property(anything, ({ attempt, retryAfterMs, chance }) => {
        const delay = retryDelay({ ...base, attempt, retryAfterMs, random: () => chance });
        return delay >= 50 && delay <= 75_000;
      }),
    );
  });
});
