import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { PassTracker } from '../../../src/controller/pass-tracker.ts';
import { RefusalLog } from '../../../src/controller/refusal-log.ts';
import { Resync } from '../../../src/controller/resync.ts';
import type { BackupRecord } from '../../../src/oadp/backup.ts';
import { toBackupRecord } from '../../../src/oadp/backup.ts';
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
  function tracked(): { passes: PassTracker; ends: [string, number][] } {
    const ends: [string, number][] = [];
    const passes = new PassTracker((outcome, seconds) => {
      ends.push([outcome, seconds]);
    });
    return { passes, ends };
  }

  test('is through when each of them was looked at, in whatever order', () => {
    const { passes, ends } = tracked();
    passes.begin(['a', 'b', 'c']);
    expect(passes.remaining).toBe(3);
    passes.done('b', false);
    passes.done('c', false);
    vi.advanceTimersByTime(2500);
    expect(ends).toEqual([]);
    passes.done('a', false);
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
    passes.begin(['a', 'b']);
    passes.done('a', first);
    passes.done('b', second);
    expect(ends.map(([end]) => end)).toEqual([outcome]);
  });

  test('knows nothing of how the one before it went', () => {
    const { passes, ends } = tracked();
    for (const failed of [false, true, false]) {
      passes.begin(['a']);
      passes.done('a', failed);
    }
    expect(ends.map(([end]) => end)).toEqual(['succeeded', 'failed', 'succeeded']);
  });

  test('over no namespace is through at once', () => {
    const { passes, ends } = tracked();
    passes.begin([]);
    expect(ends).toEqual([['succeeded', 0]]);
  });

  test('does not count what is no part of it, or comes twice, or behind it', () => {
    const { passes, ends } = tracked();
    passes.done('early', true);
    passes.begin(['a', 'b']);
    passes.done('other', true);
    passes.done('a', false);
    passes.done('a', true);
    expect(passes.remaining).toBe(1);
    passes.done('b', false);
    passes.done('b', true);
    expect(ends).toEqual([['succeeded', 0]]);
  });

  test('that is not through when the next begins goes on under its name', () => {
    const { passes, ends } = tracked();
    passes.begin(['a', 'b']);
    passes.done('a', true);
    vi.advanceTimersByTime(1000);
    passes.begin(['a', 'b']);
    vi.advanceTimersByTime(1000);
    passes.done('a', false);
    passes.done('b', false);
    expect(ends).toEqual([['succeeded', 1]]);
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
