import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { expendable, type Retention } from '../../../src/requests/retention.ts';
import type { SyncRequestRecord } from '../../../src/requests/sync-request.ts';
import { answered, midnight, requestRecord } from './support/sync-requests.ts';

const hour = 3600;
const day = 24 * hour;
const usual: Retention = { kept: 3, ttlMs: day * 1000 };

function removed(requests: readonly SyncRequestRecord[], now: number, retention = usual): string[] {
  return expendable(requests, retention, midnight + now * 1000)
    .map(({ name }) => name)
    .sort();
}

describe('of the answered requests of a namespace', () => {
  test('the newest three successes and the newest three others are kept, each for themselves', () => {
    const requests = [1, 2, 3, 4, 5].flatMap((index) => [
      answered(`good-${index}`, 'Succeeded', index * 10),
      answered(`bad-${index}`, index % 2 === 0 ? 'Partial' : 'Failed', index * 10 + 5),
    ]);
    expect(removed(requests, hour)).toEqual(['bad-1', 'bad-2', 'good-1', 'good-2']);
    expect(removed(requests, hour, { ...usual, kept: 1 })).toHaveLength(8);
  });

  test('none is kept for longer than the TTL but the newest success and the newest answer', () => {
    const requests = [
      answered('bad-old', 'Failed', 0),
      answered('good-old', 'Succeeded', 1),
      answered('good', 'Succeeded', 2),
      answered('bad', 'Failed', 3),
      answered('bad-new', 'Failed', 4),
    ];
    expect(removed(requests, day - 10)).toEqual([]);
    expect(removed(requests, day + 10)).toEqual(['bad', 'bad-old', 'good-old']);
    expect(removed(requests, 100 * day, { ...usual, ttlMs: 0 })).toEqual([]);
  });

  test('the newest answer is the one that carries the history on, whatever clocks said', () => {
    const after = (name: string, attempts: number, completedAt: number): SyncRequestRecord =>
      requestRecord({
        name,
        status: {
          phase: 'Failed',
          completionTime: new Date(midnight + completedAt * 1000).toISOString(),
          history: { attempts, lastAttemptTime: '2026-01-01T00:00:00Z', consecutiveFailures: attempts },
        },
      });
    // A replica whose clock was an hour ahead answered the first two.
    const requests = [after('a', 1, hour), after('b', 2, hour + 1), after('c', 3, 2), after('d', 4, 3)];
    expect(removed(requests, 120, { kept: 1, ttlMs: 0 })).toEqual(['a', 'b', 'c']);
  });

  test('a time that lies ahead, from a clock that was wrong, keeps none for ever', () => {
    const requests = [1, 2, 3, 4].map((index) => answered(`r${index}`, 'Failed', 365 * day + index));
    expect(removed(requests, hour)).toEqual(['r1', 'r2', 'r3']);
  });

  test('one that was answered less than a minute ago is kept, since somebody may wait for it', () => {
    const requests = Array.from({ length: 10 }, (_, index) => answered(`r${index}`, 'Succeeded', index));
    expect(removed(requests, 59)).toEqual([]);
    expect(removed(requests, 62)).toEqual(['r0', 'r1', 'r2']);
  });

  test('whatever there is: one that is not answered, the newest success and the newest answer stay', () => {
    const phase = fc.constantFrom('Pending', 'Running', 'Succeeded', 'Partial', 'Failed');
    const request = fc.tuple(phase, fc.integer({ min: 0, max: 3 * day }));
    fc.assert(
      fc.property(
        fc.array(request, { maxLength: 20 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 0, max: 2 * day * 1000 }),
        (shapes, kept, ttlMs) => {
          const requests = shapes.map(([each, time], index) => {
            const completionTime = new Date(midnight + time * 1000).toISOString();
            return requestRecord({ name: `r${index}`, status: { phase: each, completionTime } });
          });
          const gone = new Set(expendable(requests, { kept, ttlMs }, midnight + 4 * day * 1000));
          const left = requests.filter((each) => !gone.has(each));
          const open = (of: readonly SyncRequestRecord[]) => of.filter((each) => /Pending|Running/.test(each.phase));
          expect(open(left)).toEqual(open(requests));
          for (const wanted of [/Succeeded/, /Succeeded|Partial|Failed/]) {
            const newest = (of: readonly SyncRequestRecord[]) =>
              Math.max(...of.flatMap((each) => (wanted.test(each.phase) ? (each.completionTime ?? 0) : [])));
            expect(newest(left)).toBe(newest(requests));
          }
        },
      ),
    );
  });
});
