import { describe, expect, test } from 'vitest';
import { toBackupRecord } from '../../../src/oadp/backup.ts';
import type { ItemResult } from '../../../src/sync/namespace-pass.ts';
import { tellNews } from '../../../src/sync/notices.ts';
import type { Outcome } from '../../../src/sync/report.ts';
import { decisionReasons, refusalReasons, type Reason } from '../../../src/sync/reasons.ts';
import { veleroBackup } from '../../support/gen/api-objects.ts';
import { eventRecorder, type Told } from './support/recorders.ts';

function result(outcome: Outcome, reason: Reason, name = 'daily', message = 'what happened'): ItemResult {
  const backup = toBackupRecord(veleroBackup({ nacuuid: `team-a-${name}-1`, name }));
  return { backup, outcome, reason, message, nabUid: `uid-of-${name}` };
}

function many(count: number, outcome: Outcome, reason: Reason): ItemResult[] {
  return Array.from({ length: count }, (_, index) => result(outcome, reason, `n${String(index)}`));
}

function told(news: readonly ItemResult[], uid: string | undefined = 'uid-of-team-a'): Told[] {
  const sink = eventRecorder();
  tellNews(sink, 'team-a', uid, news);
  return sink.told;
}

describe('the owner of a namespace is told', () => {
  test('of a NAB that came back: from what, and how to be rid of it for good', () => {
    expect(told([result('created', 'Missing')])).toEqual([
      {
        regarding: {
          apiVersion: 'oadp.openshift.io/v1alpha1',
          kind: 'NonAdminBackup',
          namespace: 'team-a',
          name: 'daily',
          uid: 'uid-of-daily',
        },
        type: 'Normal',
        reason: 'RecreatedFromVeleroBackup',
        message:
          'Re-created from the Velero Backup team-a-daily-1, which completed at 2026-01-14T12:00:00Z. ' +
          'To remove the backup for good, set spec.deleteBackup to true; after a plain delete it comes back.',
        dedupeKey: 'team-a-daily-1',
      },
    ]);
  });

  test.each(['StatusMissing', 'StatusStale'] as const)('of a NAB that was repaired (%s)', (reason) => {
    expect(told([result('repaired', reason)])).toMatchObject([
      {
        regarding: { kind: 'NonAdminBackup', name: 'daily', uid: 'uid-of-daily' },
        type: 'Normal',
        reason,
        message: 'Status completed from the Velero Backup team-a-daily-1, which completed at 2026-01-14T12:00:00Z.',
      },
    ]);
  });

  test('of a name that is taken, on the NAB that has it, without a word of whose backup waits', () => {
    const [event] = told([result('conflict', 'NameTaken')]);
    expect(event).toMatchObject({
      regarding: { kind: 'NonAdminBackup', name: 'daily', uid: 'uid-of-daily' },
      type: 'Warning',
      reason: 'NameTaken',
    });
    expect(event?.message).toContain('completed at 2026-01-14T12:00:00Z');
    expect(event?.message).not.toContain('team-a-daily-1');
  });

  test.each(['QuotaDenied', 'AdmissionDenied', 'Invalid', 'TooLarge'] as const)(
    'of what he or his admin can mend (%s): once, with the number and the first message',
    (reason) => {
      const news = [result('failed', reason, 'one', 'exceeded quota: few'), result('failed', reason, 'two', 'other')];
      expect(told(news)).toEqual([
        {
          regarding: { apiVersion: 'v1', kind: 'Namespace', name: 'team-a', uid: 'uid-of-team-a' },
          type: 'Warning',
          reason,
          message: expect.stringMatching(
            /^2 NonAdminBackups could not be re-created, among them "one"\. \w.* tried again .*\. The API server said: exceeded quota: few$/,
          ) as string,
          dedupeKey: reason,
        },
      ]);
    },
  );

  test('in an event about a namespace whose uid is not known as well', () => {
    const sink = eventRecorder();
    tellNews(sink, 'team-a', undefined, [result('failed', 'TooLarge')]);
    expect(sink.told[0]?.regarding).toEqual({ apiVersion: 'v1', kind: 'Namespace', name: 'team-a' });
  });
});

describe('nothing is told', () => {
  test.each([
    'Forbidden',
    'Unauthorized',
    'KindNotInstalled',
    'Throttled',
    'Timeout',
    'Unreachable',
    'ServerError',
    'Aborted',
    'InternalError',
  ] as const)('of what is no business of his (%s)', (reason) => {
    expect(told([result('failed', reason)])).toEqual([]);
  });

  test('of backups that are skipped, wait or are there, for whatever reason', () => {
    const reasons = [...refusalReasons, ...decisionReasons];
    expect(
      told(
        reasons.flatMap((reason) => [result('skipped', reason), result('waiting', reason), result('present', reason)]),
      ),
    ).toEqual([]);
  });
});

describe('however much happens at once, few events are made', () => {
  test.each([
    [5, 5, 0],
    [6, 5, 1],
    [2000, 5, 1995],
  ])('of %i NABs that came back %i are told of singly and the rest in one', (count, singly, beyond) => {
    const events = told(many(count, 'created', 'Missing'));
    expect(events.filter(({ regarding }) => regarding.kind === 'NonAdminBackup')).toHaveLength(singly);
    expect(events.slice(singly)).toEqual(
      beyond === 0
        ? []
        : [
            {
              regarding: { apiVersion: 'v1', kind: 'Namespace', name: 'team-a', uid: 'uid-of-team-a' },
              type: 'Normal',
              reason: 'RecreatedFromVeleroBackup',
              message: `${String(beyond)} more NonAdminBackups were re-created or repaired from Velero Backups.`,
              dedupeKey: 'beyond',
            },
          ],
    );
  });

  test('re-created and repaired ones share that one', () => {
    const events = told([...many(7, 'created', 'Missing'), ...many(8, 'repaired', 'StatusStale')]);
    expect(events).toHaveLength(11);
    expect(events[10]?.message).toMatch(/^5 more /);
  });

  test('names that are taken beyond five are told of in one that counts', () => {
    expect(told(many(5, 'conflict', 'NameTaken'))).toHaveLength(5);
    const events = told(many(12, 'conflict', 'NameTaken'));
    expect(events).toHaveLength(6);
    expect(events[5]).toEqual({
      regarding: { apiVersion: 'v1', kind: 'Namespace', name: 'team-a', uid: 'uid-of-team-a' },
      type: 'Warning',
      reason: 'NameTaken',
      message:
        '7 more NonAdminBackups have the names of stored backups, which therefore are not brought back. Delete those whose stored backup you want.',
      dedupeKey: 'beyond',
    });
  });

  test('of everything at once there are no more than twenty-one', () => {
    const failures = (['QuotaDenied', 'AdmissionDenied', 'Invalid', 'TooLarge'] as const).flatMap((reason) =>
      many(100, 'failed', reason),
    );
    const news = [
      ...many(1000, 'created', 'Missing'),
      ...many(1000, 'repaired', 'StatusStale'),
      ...many(1000, 'conflict', 'NameTaken'),
      ...failures,
    ];
    expect(told(news)).toHaveLength(21);
  });
});

test('the same news makes the same events, so that telling it twice makes one', () => {
  const news = [
    ...many(7, 'created', 'Missing'),
    ...many(7, 'conflict', 'NameTaken'),
    ...many(3, 'failed', 'TooLarge'),
  ];
  expect(told(news)).toEqual(told(news));
});
