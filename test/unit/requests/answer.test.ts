import { describe, expect, test } from 'vitest';
import { toBackupRecord } from '../../../src/oadp/backup.ts';
import { Answer } from '../../../src/requests/answer.ts';
import type { ItemResult } from '../../../src/sync/namespace-pass.ts';
import { failureReasons, refusalReasons, type Reason } from '../../../src/sync/reasons.ts';
import type { Outcome } from '../../../src/sync/report.ts';
import { veleroBackup } from '../../support/gen/api-objects.ts';

/** Failures that are about the tenant's own object. */
const ownWords: ReadonlySet<Reason> = new Set(['QuotaDenied', 'AdmissionDenied', 'Invalid', 'TooLarge']);

function item(outcome: Outcome, reason: Reason, name: string, message = 'what happened'): ItemResult {
  const backup = toBackupRecord(veleroBackup({ namespace: 'team-a', nacuuid: `id-of-${name}`, name }));
  return { backup, outcome, reason, message };
}

function answerTo(...items: readonly ItemResult[]): Answer {
  const answer = new Answer('tenant');
  answer.addNamespace(items);
  return answer;
}

describe('an answer', () => {
  test('counts everything, and names what was written, what was not, and why', () => {
    const answer = answerTo(
      item('created', 'Missing', 'b'),
      item('repaired', 'StatusMissing', 'a'),
      item('present', 'Present', 'c'),
      item('skipped', 'Expired', 'd'),
      item('waiting', 'LocationSyncing', 'e'),
      item('conflict', 'NameTaken', 'f'),
      item('failed', 'QuotaDenied', 'g', 'exceeded quota'),
    );
    expect(answer.phase).toBe('Partial');
    expect(answer.status()).toEqual({
      namespaces: 1,
      counts: { seen: 7, created: 1, repaired: 1, present: 1, skipped: 1, waiting: 1, conflict: 1, failed: 1 },
      written: [
        { namespace: 'team-a', name: 'a', veleroBackup: 'id-of-a', outcome: 'Repaired' },
        { namespace: 'team-a', name: 'b', veleroBackup: 'id-of-b', outcome: 'Created' },
      ],
      skipped: [
        { namespace: 'team-a', name: 'd', reason: 'Expired', message: 'what happened' },
        { namespace: 'team-a', name: 'e', reason: 'LocationSyncing', message: 'what happened' },
        { namespace: 'team-a', name: 'f', reason: 'NameTaken', message: 'what happened' },
      ],
      failed: [{ namespace: 'team-a', name: 'g', reason: 'QuotaDenied', message: 'exceeded quota' }],
      omitted: { written: 0, skipped: 0, failed: 0 },
    });
    expect(answer.summary).toBe(
      '7 backups: 1 re-created, 1 repaired, 1 present, 1 skipped, 1 waiting, 1 in conflict, 1 failed.',
    );
    expect(answer.failure).toBe(
      '1 NonAdminBackup could not be written, among them team-a/g: QuotaDenied: exceeded quota',
    );
  });

  test('names the first twenty of a list, whatever the order in which they came, and counts the others', () => {
    const names = Array.from({ length: 5000 }, (_, index) => `b${String(index).padStart(4, '0')}`);
    const answer = answerTo(...names.toReversed().map((name) => item('failed', 'Timeout', name)));
    expect(answer.status()).toMatchObject({
      counts: { seen: 5000, failed: 5000 },
      failed: names.slice(0, 20).map((name) => ({ name })),
      omitted: { written: 0, skipped: 0, failed: 4980 },
    });
    expect(answer.phase).toBe('Failed');
  });

  test.each([
    ['nothing', []],
    ['what is skipped', [item('skipped', 'Expired', 'a')]],
    ['what waits', [item('waiting', 'LocationSyncing', 'a')]],
    ['what is in conflict', [item('conflict', 'NameTaken', 'a')]],
  ])('%s is a success', (_, items) => {
    expect(answerTo(...items).phase).toBe('Succeeded');
    expect(answerTo(...items).failure).toBeUndefined();
  });

  test.each(refusalReasons)('leaves out of a namespace’s answer what turned out to be refused: %s', (reason) => {
    expect(answerTo(item('skipped', reason, 'forged')).status()).toMatchObject({ counts: { seen: 0 }, skipped: [] });
  });

  test('lists what was refused where it is added, which is in the namespace of OADP', () => {
    const answer = new Answer('admin');
    answer.addRefused(
      { namespace: 'team-b', name: '\u001b[31m' },
      { action: 'skip', reason: 'ForeignContent', message: 'why' },
    );
    expect(answer.status()).toMatchObject({
      counts: { seen: 1, skipped: 1 },
      skipped: [{ namespace: 'team-b', name: '\\u{1b}[31m', reason: 'ForeignContent', message: 'why' }],
    });
  });

  test('cuts messages that are too long', () => {
    const { failed } = answerTo(item('failed', 'Invalid', 'a', 'x'.repeat(10_000))).status();
    expect(JSON.stringify(failed).length).toBeLessThan(1000);
  });
});

describe('what a tenant is told', () => {
  const secret = 'User "system:serviceaccount:openshift-adp:nab-sync" at https://10.0.0.1:6443, bucket s3://other';
  const reasons: readonly Reason[] = ['BeingDeleted', ...failureReasons];

  test.each(reasons.filter((reason) => !ownWords.has(reason)))('of %s holds nothing that is not his', (reason) => {
    const outcome = reason === 'BeingDeleted' ? 'skipped' : 'failed';
    const told = new Answer('tenant');
    told.addNamespace([item(outcome, reason, 'daily', secret)]);
    expect(JSON.stringify([told.status(), told.failure])).not.toMatch(/serviceaccount|10\.0\.0\.1|s3:/);
    expect(JSON.stringify(told.status())).toContain(reason);
    const admin = new Answer('admin');
    admin.addNamespace([item(outcome, reason, 'daily', secret)]);
    expect(JSON.stringify(admin.status())).toContain('s3://other');
  });

  test('of a policy does not name who it refused', () => {
    const message = 'user system:serviceaccount:openshift-adp:nab-sync may not, by policy "only-ours"';
    const { failure } = answerTo(item('failed', 'AdmissionDenied', 'daily', message));
    expect(failure).toMatch(/: user nab-sync may not, by policy "only-ours"$/);
  });

  test.each([...ownWords])('of %s is what the API server said of his own object', (reason) => {
    expect(answerTo(item('failed', reason, 'daily', 'exceeded quota: nabs')).failure).toContain('exceeded quota: nabs');
  });
});
