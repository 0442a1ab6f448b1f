import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { PassTracker, type TrackedPass } from '../../../src/controller/pass-tracker.ts';
import { RefusalLog } from '../../../src/controller/refusal-log.ts';
import { Resync } from '../../../src/controller/resync.ts';
import type { BackupRecord } from '../../../src/oadp/backup.ts';
import { toBackupRecord } from '../../../src/oadp/backup.ts';
import type { Failure } from '../../../src/sync/report.ts';
import type { Decision, DecisionReason } from '../../../src/sync/reasons.ts';
import { veleroBackup } from '../../support/gen/api-objects.ts';
import { logRecorder } from '../sync/support/recorders.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

describe('a resync', () => {
  function ticking(periodMs: number): { resync: Resync; ticks: () => number } {
    let count = 0;
    const resync = new Resync(() => {
      count += 1;
    });
    resync.setPeriod(periodMs);
    return { resync, ticks: () => count };
  }

  test('comes at its interval, not at once', () => {
    const { resync, ticks } = ticking(120_000);
    resync.start();
    vi.advanceTimersByTime(119_999);
    expect(ticks()).toBe(0);
    vi.advanceTimersByTime(1);
    expect(ticks()).toBe(1);
    vi.advanceTimersByTime(240_000);
    expect(ticks()).toBe(3);
  });

  test('never comes with an interval of 0', () => {
    const { resync, ticks } = ticking(0);
    resync.start();
    vi.advanceTimersByTime(10_000_000);
    expect(ticks()).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('takes up a changed interval at once, from then on', () => {
    const { resync, ticks } = ticking(120_000);
    resync.start();
    vi.advanceTimersByTime(100_000);
    resync.setPeriod(30_000);
    vi.advanceTimersByTime(29_999);
    expect(ticks()).toBe(0);
    vi.advanceTimersByTime(1);
    expect(ticks()).toBe(1);
    resync.setPeriod(0);
    vi.advanceTimersByTime(1_000_000);
    expect(ticks()).toBe(1);
    resync.setPeriod(1000);
    vi.advanceTimersByTime(5000);
    expect(ticks()).toBe(6);
  });

  test('is not put off by the same interval told again', () => {
    const { resync, ticks } = ticking(1000);
    resync.start();
    vi.advanceTimersByTime(900);
    resync.setPeriod(1000);
    vi.advanceTimersByTime(100);
    expect(ticks()).toBe(1);
  });

  test('runs only between start and stop', () => {
    const { resync, ticks } = ticking(1000);
    vi.advanceTimersByTime(5000);
    expect(ticks()).toBe(0);
    resync.start();
    vi.advanceTimersByTime(1000);
    resync.stop();
    resync.setPeriod(10);
    vi.advanceTimersByTime(5000);
    expect(ticks()).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('goes on if a tick changes the interval', () => {
    let count = 0;
    const resync: Resync = new Resync(() => {
      count += 1;
      resync.setPeriod(count === 1 ? 10 : 1000);
    });
    resync.setPeriod(1000);
    resync.start();
    vi.advanceTimersByTime(1010);
    expect(count).toBe(2);
    vi.advanceTimersByTime(1000);
    expect(count).toBe(3);
  });
});

describe('a pass over all namespaces', () => {
  const failure: Failure = { namespace: 'team-a', name: 'daily', reason: 'QuotaDenied', message: 'exceeded quota' };

  function tracked(): { passes: PassTracker; ends: [string, number][] } {
    const ends: [string, number][] = [];
    const passes = new PassTracker(({ outcome, seconds }) => {
      ends.push([outcome, seconds]);
    });
    return { passes, ends };
  }

  test('is through when each of them was looked at, in whatever order', () => {
    const { passes, ends } = tracked();
    passes.begin(['a', 'b', 'c'], 0);
    expect(passes.remaining).toBe(3);
    passes.done('b', []);
    passes.done('c', []);
    vi.advanceTimersByTime(2500);
    expect(ends).toEqual([]);
    passes.done('a', []);
    expect(ends).toEqual([['succeeded', 2.5]]);
    expect(passes.remaining).toBe(0);
  });

  test.each([
    [[true, true], 'failed'],
    [[true, false], 'partial'],
    [[false, true], 'partial'],
    [[false, false], 'succeeded'],
  ])('with failures %j has %s', ([first = false, second = false], outcome) => {
    const { passes, ends } = tracked();
    passes.begin(['a', 'b'], 0);
    passes.done('a', first ? [failure] : []);
    passes.done('b', second ? [failure] : []);
    expect(ends.map(([end]) => end)).toEqual([outcome]);
  });

  test('knows nothing of how the one before it went', () => {
    const { passes, ends } = tracked();
    for (const failed of [false, true, false]) {
      passes.begin(['a'], 0);
      passes.done('a', failed ? [failure] : []);
    }
    expect(ends.map(([end]) => end)).toEqual(['succeeded', 'failed', 'succeeded']);
  });

  test('over no namespace is through at once', () => {
    const { passes, ends } = tracked();
    passes.begin([], 0);
    expect(ends).toEqual([['succeeded', 0]]);
  });

  test('does not count what is no part of it, or comes twice, or behind it', () => {
    const { passes, ends } = tracked();
    passes.done('early', [failure]);
    passes.begin(['a', 'b'], 0);
    passes.done('other', [failure]);
    passes.done('a', []);
    passes.done('a', [failure]);
    expect(passes.remaining).toBe(1);
    passes.done('b', []);
    passes.done('b', [failure]);
    expect(ends).toEqual([['succeeded', 0]]);
  });

  test('that is not through when the next begins goes on under its name', () => {
    const { passes, ends } = tracked();
    passes.begin(['a', 'b'], 0);
    passes.done('a', [failure]);
    vi.advanceTimersByTime(1000);
    passes.begin(['a', 'b'], 0);
    vi.advanceTimersByTime(1000);
    passes.done('a', []);
    passes.done('b', []);
    expect(ends).toEqual([['succeeded', 1]]);
  });

  test('says when it began, and of its failures how many there were and which was the first', () => {
    const ends: TrackedPass[] = [];
    const passes = new PassTracker((pass) => ends.push(pass));
    passes.begin(['a', 'b', 'c'], 1_000);
    passes.done('a', []);
    passes.done('b', [failure, { ...failure, name: 'weekly' }]);
    passes.done('c', [{ ...failure, namespace: 'team-c' }]);
    expect(ends).toEqual([
      {
        outcome: 'partial',
        start: 1_000,
        seconds: 0,
        failure: '3 backups could not be brought back, among them team-a/daily: QuotaDenied: exceeded quota',
      },
    ]);
    passes.begin([], 2_000);
    expect(ends[1]).toEqual({ outcome: 'succeeded', start: 2_000, seconds: 0 });
  });

  test('that is given up never ends, and says when it began', () => {
    const { passes, ends } = tracked();
    expect(passes.giveUp()).toBeUndefined();
    passes.begin(['a'], 3_000);
    expect(passes.giveUp()).toBe(3_000);
    expect(passes.giveUp()).toBeUndefined();
    passes.done('a', []);
    expect({ ends, remaining: passes.remaining }).toEqual({ ends: [], remaining: 0 });
  });
});

describe('refused backups', () => {
  const refusal = (reason: DecisionReason): Decision => ({ action: 'skip', reason, message: `why ${reason}` });
  const records = new Map<string, BackupRecord>(
    ['one', 'two'].map((nacuuid) => [nacuuid, toBackupRecord(veleroBackup({ nacuuid, namespace: 'team\u202e-b' }))]),
  );
  const backupOf = (name: string): BackupRecord | undefined => records.get(name);

  test('are told once, and again when the reason changes', () => {
    const { log, lines } = logRecorder();
    const refusals = new RefusalLog(log);
    refusals.tell(new Map([['one', refusal('ForeignContent')]]), backupOf);
    refusals.tell(new Map([['one', refusal('ForeignContent')]]), backupOf);
    expect(lines).toEqual([
      {
        level: 40,
        backup: 'one',
        claimed: { namespace: 'team\\u{202e}-b', name: 'daily' },
        reason: 'ForeignContent',
        detail: 'why ForeignContent',
        msg: 'backup refused',
      },
    ]);
    refusals.tell(new Map([['one', refusal('UnknownStorageLocation')]]), backupOf);
    expect(lines.map(({ reason }) => reason)).toEqual(['ForeignContent', 'UnknownStorageLocation']);
  });

  test('are told anew when they were accepted in between', () => {
    const { log, lines } = logRecorder();
    const refusals = new RefusalLog(log);
    const refused = new Map([['one', refusal('ForeignContent')]]);
    refusals.tell(refused, backupOf);
    refusals.tell(new Map(), backupOf);
    refusals.tell(refused, backupOf);
    expect(lines).toHaveLength(2);
  });

  test('cost twenty-one lines, however many they are', () => {
    const { log, lines } = logRecorder();
    const refusals = new RefusalLog(log);
    const refused = new Map(
      Array.from({ length: 10_000 }, (_, index) => [`b${String(index)}`, refusal('InvalidOrigin')] as const),
    );
    refusals.tell(refused, backupOf);
    expect(lines).toHaveLength(21);
    expect(lines[20]).toMatchObject({ refused: 10_000, reasons: { InvalidOrigin: 10_000 } });
    refusals.tell(refused, backupOf);
    expect(lines).toHaveLength(21);
  });
});
