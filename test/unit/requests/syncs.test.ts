import { describe, expect, test } from 'vitest';
import { Syncs } from '../../../src/requests/syncs.ts';
import { toBackupRecord } from '../../../src/oadp/backup.ts';
import type { ItemResult } from '../../../src/sync/namespace-pass.ts';
import type { NamespaceReport } from '../../../src/sync/reconciler.ts';
import { veleroBackup } from '../../support/gen/api-objects.ts';

function report(namespace: string, ...reasons: ItemResult['reason'][]): NamespaceReport {
  const items = reasons.map((reason, index): ItemResult => {
    const backup = toBackupRecord(veleroBackup({ namespace, name: `b${index}` }));
    return { backup, outcome: reason === 'Present' ? 'present' : 'failed', reason, message: 'what happened' };
  });
  return { namespace, items, retry: undefined, againInMs: undefined };
}

describe('a sync', () => {
  test('is answered by the next reconcile that begins, and by one only', () => {
    const syncs = new Syncs();
    const sync = syncs.ask(['a'], 'admin');
    expect(sync.isDone).toBe(false);
    const hand = syncs.begin('a');
    expect(sync.isDone).toBe(false);
    hand(report('a', 'Present'));
    expect(sync.isDone).toBe(true);
    syncs.begin('a')(report('a', 'Present'));
    expect(sync.answer.status()).toMatchObject({ namespaces: 1, counts: { seen: 1 } });
  });

  test('is not answered by a reconcile that had begun before it was asked for', () => {
    const syncs = new Syncs();
    const hand = syncs.begin('a');
    const sync = syncs.ask(['a'], 'admin');
    hand(report('a', 'Present'));
    expect(sync.isDone).toBe(false);
    syncs.begin('a')(report('a'));
    expect(sync.isDone).toBe(true);
  });

  test('that joins others while a reconcile for them is under way is left for the next one', () => {
    const syncs = new Syncs();
    const first = syncs.ask(['a'], 'admin');
    const hand = syncs.begin('a');
    const second = syncs.ask(['a'], 'admin');
    hand(report('a', 'Present'));
    expect([first.isDone, second.isDone]).toEqual([true, false]);
    syncs.begin('a')(report('a', 'Present'));
    expect(second.isDone).toBe(true);
  });

  test('of several namespaces is done with the last of them', async () => {
    const syncs = new Syncs();
    const sync = syncs.ask(['a', 'b', 'c'], 'admin');
    for (const namespace of ['b', 'c', 'b', 'other']) syncs.begin(namespace)(report(namespace, 'Present'));
    expect(sync.isDone).toBe(false);
    syncs.begin('a')(report('a', 'Timeout'));
    await expect(sync.done).resolves.toBeUndefined();
    expect(sync.answer.status()).toMatchObject({ namespaces: 3, counts: { seen: 3, present: 2, failed: 1 } });
  });

  test('of nothing is done at once', async () => {
    const sync = new Syncs().ask([], 'admin');
    await expect(sync.done).resolves.toBeUndefined();
    expect(sync.answer.phase).toBe('Succeeded');
  });

  test('shares a reconcile with all that were asked for before it began', () => {
    const syncs = new Syncs();
    const [first, second] = [syncs.ask(['a', 'b'], 'admin'), syncs.ask(['a'], 'admin')];
    syncs.begin('a')(report('a', 'Present'));
    expect([first.isDone, second.isDone]).toEqual([false, true]);
  });

  test('is not answered by a reconcile that was ended, or that never reported: the next one counts', () => {
    const syncs = new Syncs();
    const sync = syncs.ask(['a'], 'admin');
    syncs.begin('a')(report('a', 'Present', 'Aborted'));
    syncs.begin('a');
    expect(sync.isDone).toBe(false);
    syncs.begin('a')(report('a', 'Present'));
    expect(sync.answer.status()).toMatchObject({ namespaces: 1, counts: { seen: 1 } });
  });
});
