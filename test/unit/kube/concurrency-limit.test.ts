import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConcurrencyLimit } from '../../../src/kube/concurrency-limit.ts';

const create = { verb: 'create', resource: 'nonadminbackups.oadp.openshift.io', code: 'OK' } as const;
const throttled = { ...create, code: 'Throttled', seconds: 0.001 } as const;

/** So many answers that take so long each. */
function answers(limit: ConcurrencyLimit, count: number, seconds: number | ((n: number) => number)): void {
  for (let n = 0; n < count; n += 1) {
    limit.observe({ ...create, seconds: typeof seconds === 'number' ? seconds : seconds(n) });
  }
}

describe('the limit', () => {
  test('begins at its ceiling and stays there while answers take as long as usual', () => {
    const limit = new ConcurrencyLimit(16);
    expect(limit.current).toBe(16);
    answers(limit, 960, (n) => 0.004 + 0.002 * (n % 2));
    expect(limit.current).toBe(16);
  });

  test('is cut when answers suddenly take long, and grows again once they do not', () => {
    const limit = new ConcurrencyLimit(16);
    answers(limit, 960, 0.005);
    answers(limit, 48, 0.1);
    expect(limit.current).toBeLessThanOrEqual(4);
    answers(limit, 960, 0.005);
    expect(limit.current).toBe(16);
  });

  test('takes for usual what lasts: a server that is always slow is not asked for ever less', () => {
    const limit = new ConcurrencyLimit(16);
    answers(limit, 960, 0.005);
    answers(limit, 1920, 0.02);
    expect(limit.current).toBe(16);
  });

  test('lets latency rise with its own growth: twice as many at once may take twice as long', () => {
    const limit = new ConcurrencyLimit(32);
    limit.observe(throttled);
    limit.observe({ ...create, seconds: 0.001 });
    for (let n = 0; n < 4800; n += 1) limit.observe({ ...create, seconds: 0.001 * limit.current });
    expect(limit.current).toBe(32);
  });

  test('is halved by a 429, once for all that were in flight then', () => {
    const limit = new ConcurrencyLimit(16);
    answers(limit, 960, 0.005);
    for (let n = 0; n < 16; n += 1) limit.observe(throttled);
    expect(limit.current).toBe(8);
    answers(limit, 24, 0.005);
    limit.observe(throttled);
    expect(limit.current).toBe(4);
  });

  test('does not care about a minority that is slow: that is one tenant’s webhook', () => {
    const limit = new ConcurrencyLimit(16);
    answers(limit, 960, 0.005);
    answers(limit, 480, (n) => (n % 3 === 0 ? 5 : 0.005));
    expect(limit.current).toBe(16);
  });

  test('is not misled by a first answer that was quick by chance', () => {
    const limit = new ConcurrencyLimit(16);
    limit.observe({ ...create, seconds: 0.005 });
    answers(limit, 23, 0.05);
    expect(limit.current).toBe(16);
  });

  test('compares requests with their like: a status may take longer than a get', () => {
    const limit = new ConcurrencyLimit(16);
    const get = { verb: 'get', resource: 'backups.velero.io', code: 'OK', seconds: 0.002 } as const;
    for (let n = 0; n < 480; n += 1) limit.observe(get);
    for (let n = 0; n < 48; n += 1) limit.observe({ ...create, verb: 'update', seconds: 0.03 });
    expect(limit.current).toBe(16);
  });

  test('learns nothing from lists, events and failures that say nothing of load', () => {
    const limit = new ConcurrencyLimit(16);
    answers(limit, 960, 0.005);
    for (let n = 0; n < 480; n += 1) {
      limit.observe({ ...create, verb: 'list', seconds: 20 });
      limit.observe({ ...create, verb: 'patch', seconds: 20 });
      limit.observe({ ...create, code: 'Timeout', seconds: 5 });
    }
    expect(limit.current).toBe(16);
  });

  test.each([1, 2, 3])('of at most %i stays within that', (ceiling) => {
    const limit = new ConcurrencyLimit(ceiling);
    expect(limit.current).toBe(ceiling);
    for (let n = 0; n < 10; n += 1) {
      limit.observe(throttled);
      answers(limit, 24, 1);
    }
    expect(limit.current).toBeGreaterThanOrEqual(1);
    expect(limit.current).toBeLessThanOrEqual(ceiling);
  });

  test('whatever is observed, is a whole number from 1 to the ceiling', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.array(
          fc.record({
            verb: fc.constantFrom('get', 'create', 'update', 'list'),
            resource: fc.constantFrom('a', 'b'),
            code: fc.constantFrom('OK', 'Throttled', 'Timeout'),
            seconds: fc.double({ min: 0, max: 100, noNaN: true }),
          }),
          { maxLength: 300 },
        ),
        (ceiling, observed) => {
          const limit = new ConcurrencyLimit(ceiling);
          for (const each of observed) {
            limit.observe(each);
            expect(Number.isInteger(limit.current)).toBe(true);
            expect(limit.current).toBeGreaterThanOrEqual(1);
            expect(limit.current).toBeLessThanOrEqual(ceiling);
          }
        },
      ),
    );
  });

  test.each([0, -1, 1.5, Number.NaN])('cannot have a ceiling of %d', (ceiling) => {
    expect(() => new ConcurrencyLimit(ceiling)).toThrow('positive integer');
  });
});
