import { describe, expect, test } from 'vitest';
import { toBackupRecord } from '../../../src/oadp/backup.ts';
import type { ItemResult } from '../../../src/sync/namespace-pass.ts';
import {
  actionOf,
  actions,
  decisionReasons,
  failureReasons,
  isDecisionReason,
  refusalReasons,
} from '../../../src/sync/reasons.ts';
import { writableAt, writtenAgain, type Recurrence } from '../../../src/sync/recurrence.ts';
import type { Outcome } from '../../../src/sync/report.ts';
import type { Reason } from '../../../src/sync/reasons.ts';
import { RetainedBackups } from '../../../src/sync/retained-backups.ts';
import { Tally } from '../../../src/sync/tally.ts';
import { minute, noon, second, veleroBackup } from '../../support/gen/api-objects.ts';

describe('the list of reasons', () => {
  const all = [...refusalReasons, ...decisionReasons, ...failureReasons];

  test('names each once, in CamelCase', () => {
    expect(new Set(all).size).toBe(all.length);
    for (const reason of all) expect(reason).toMatch(/^[A-Z][A-Za-z]+$/);
  });

  test('knows an action for each decision, and for no failure', () => {
    expect(Object.keys(actionOf).sort()).toEqual([...refusalReasons, ...decisionReasons].sort());
    expect(new Set(Object.values(actionOf))).toEqual(new Set(actions));
    expect(all.filter((reason) => !isDecisionReason(reason))).toEqual([...failureReasons]);
  });

  test('refuses for good only by skipping', () => {
    expect(new Set(refusalReasons.map((reason) => actionOf[reason]))).toEqual(new Set(['skip']));
  });
});

describe('Backups that are kept for their status', () => {
  const object = { text: 'x'.repeat(989) }; // 1,000 as JSON

  test('fit up to the bound, to the last unit', () => {
    const retained = new RetainedBackups(2000);
    expect(JSON.stringify(object)).toHaveLength(1000);
    expect(retained.keep(object)).toBeDefined();
    expect(retained.keep(object)).toBeDefined();
    expect(retained.keep({})).toBeUndefined();
  });

  test('make room when they are released, once, and cannot be taken then', () => {
    const retained = new RetainedBackups(1000);
    const kept = retained.keep(object);
    kept?.release();
    kept?.release();
    expect(kept?.take()).toBeUndefined();
    expect(retained.keep(object)).toBeDefined();
    expect(retained.keep({})).toBeUndefined();
  });

  test('make room when they are taken, once', () => {
    const retained = new RetainedBackups(1000);
    const kept = retained.keep(object);
    expect(kept?.take()).toEqual(object);
    expect(kept?.take()).toBeUndefined();
    const again = retained.keep(object);
    expect(again).toBeDefined();
    expect(retained.keep({})).toBeUndefined();
  });
});

describe('a tally', () => {
  const result = (outcome: Outcome, reason: Reason, name = 'daily', namespace = 'team-a'): ItemResult => ({
    backup: toBackupRecord(veleroBackup({ name, namespace })),
    outcome,
    reason,
    message: `why ${reason}`,
  });

  test('of nothing is a success', () => {
    expect(new Tally().report(noon, noon + 1500)).toEqual({
      outcome: 'Succeeded',
      startTime: '2026-01-15T12:00:00.000Z',
      completionTime: '2026-01-15T12:00:01.500Z',
      counts: { seen: 0, created: 0, repaired: 0, present: 0, skipped: 0, waiting: 0, conflict: 0, failed: 0 },
      reasons: {},
      failures: [],
    });
  });

  test('counts each backup once by outcome and reason; refused ones are skipped', () => {
    const tally = new Tally();
    tally.add(result('created', 'Missing'));
    tally.add(result('created', 'Missing'));
    tally.add(result('repaired', 'StatusStale'));
    tally.add(result('present', 'Present'));
    tally.add(result('skipped', 'Expired'));
    tally.add(result('waiting', 'LocationSyncing'));
    tally.add(result('conflict', 'NameTaken'));
    tally.addRefused({ action: 'skip', reason: 'ForeignContent', message: 'x' });
    const { counts, reasons, outcome, failures } = tally.report(noon, noon);
    expect(failures).toEqual([]);
    expect(counts).toEqual({
      seen: 8,
      created: 2,
      repaired: 1,
      present: 1,
      skipped: 2,
      waiting: 1,
      conflict: 1,
      failed: 0,
    });
    expect(Object.entries(reasons)).toEqual([
      ['Expired', 1],
      ['ForeignContent', 1],
      ['LocationSyncing', 1],
      ['Missing', 2],
      ['NameTaken', 1],
      ['Present', 1],
      ['StatusStale', 1],
    ]);
    expect(outcome).toBe('Succeeded');
  });

  test.each<[string, [Outcome, Reason][], string]>([
    [
      'with conflicts and waits alone is a success',
      [
        ['conflict', 'NameTaken'],
        ['waiting', 'LocationSyncing'],
      ],
      'Succeeded',
    ],
    [
      'with a failure and nothing achieved has failed',
      [
        ['failed', 'Timeout'],
        ['skipped', 'Expired'],
      ],
      'Failed',
    ],
    [
      'with a failure beside a created one is partial',
      [
        ['failed', 'Timeout'],
        ['created', 'Missing'],
      ],
      'Partial',
    ],
    [
      'with a failure beside a repaired one is partial',
      [
        ['failed', 'Timeout'],
        ['repaired', 'StatusStale'],
      ],
      'Partial',
    ],
    [
      'with a failure beside one that is there is partial',
      [
        ['failed', 'Timeout'],
        ['present', 'Present'],
      ],
      'Partial',
    ],
  ])('%s', (_, results, outcome) => {
    const tally = new Tally();
    for (const [kind, reason] of results) tally.add(result(kind, reason));
    expect(tally.report(noon, noon).outcome).toBe(outcome);
  });

  test('lists failures by namespace and name', () => {
    const tally = new Tally();
    tally.add(result('failed', 'Timeout', 'b', 'team-b'));
    tally.add(result('failed', 'QuotaDenied', 'z', 'team-a'));
    tally.add(result('failed', 'TooLarge', 'a', 'team-a'));
    expect(tally.report(noon, noon).failures).toEqual([
      { namespace: 'team-a', name: 'a', reason: 'TooLarge', message: 'why TooLarge' },
      { namespace: 'team-a', name: 'z', reason: 'QuotaDenied', message: 'why QuotaDenied' },
      { namespace: 'team-b', name: 'b', reason: 'Timeout', message: 'why Timeout' },
    ]);
  });
});

describe('recurrence', () => {
  const uid = 'uid-of-team-a';
  const after = (count: number): Recurrence | undefined => {
    let recurrence: Recurrence | undefined;
    for (let times = 0; times < count; times += 1) recurrence = writtenAgain(recurrence, uid, noon);
    return recurrence;
  };

  test.each([
    [0, undefined],
    [1, undefined],
    [2, undefined],
    [3, 2 * second],
    [4, 4 * second],
    [10, 256 * second],
    [11, 300 * second],
    [10_000, 300 * second],
  ])('after %i writes in a row the next may come after %s ms', (count, pause) => {
    expect(writableAt(after(count), uid, noon)).toBe(pause === undefined ? undefined : noon + pause);
  });

  test('is over when its time has come', () => {
    expect(writableAt(after(3), uid, noon + 2 * second - 1)).toBe(noon + 2 * second);
    expect(writableAt(after(3), uid, noon + 2 * second)).toBeUndefined();
  });

  test('begins anew in a namespace that was created anew', () => {
    expect(writableAt(after(5), 'another', noon)).toBeUndefined();
    expect(writtenAgain(after(5), 'another', noon)).toEqual({ namespaceUid: 'another', count: 1, last: noon });
  });

  test('begins anew after ten quiet minutes, not before', () => {
    expect(writtenAgain(after(5), uid, noon + 10 * minute - 1).count).toBe(6);
    expect(writtenAgain(after(5), uid, noon + 10 * minute).count).toBe(1);
    expect(writableAt(after(20), uid, noon + 10 * minute)).toBeUndefined();
  });

  test('of a namespace without uid is counted as well', () => {
    const first = writtenAgain(undefined, undefined, noon);
    expect(writtenAgain(first, undefined, noon)).toEqual({ namespaceUid: undefined, count: 2, last: noon });
  });
});
