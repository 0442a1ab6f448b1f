import { describe, expect, test } from 'vitest';
import {
  at,
  day,
  deleteRequest,
  minute,
  noon,
  second,
  storageLocation,
  veleroBackup,
} from '../../support/gen/api-objects.ts';
import { scene } from './support/scene.ts';

/** Rules 9 to 11: is a genuine Backup ready to come back? */

describe('BeingDeleted: what its owner is getting rid of does not come back', () => {
  test('a Backup with a deletionTimestamp', () => {
    const backups = [veleroBackup({ metadata: { deletionTimestamp: at(-minute) } })];
    expect(scene({ backups }).decision()).toEqual({
      action: 'skip',
      reason: 'BeingDeleted',
      message: 'The Backup is being deleted: Velero is deleting it.',
    });
  });

  test('a Backup in phase Deleting', () => {
    expect(scene({ backups: [veleroBackup({ status: { phase: 'Deleting' } })] }).decision()).toMatchObject({
      action: 'skip',
      reason: 'BeingDeleted',
    });
  });

  test.each([undefined, null, '', 'New', 'InProgress', 'processed', 'PhaseOfTomorrow'])(
    'a delete request in phase %j is not finished',
    (phase) => {
      const deleteRequests = [deleteRequest({ status: { phase } })];
      expect(scene({ deleteRequests }).decision()).toEqual({
        action: 'skip',
        reason: 'BeingDeleted',
        message: 'The Backup is being deleted: a DeleteBackupRequest for it is not finished.',
      });
    },
  );

  test('a processed request means that it failed, since the Backup is still there', () => {
    const deleteRequests = [deleteRequest({ status: { phase: 'Processed', errors: ['no access'] } })];
    expect(scene({ deleteRequests }).decision().reason).toBe('Missing');
  });

  test('a request for another Backup is none of its business', () => {
    const deleteRequests = [deleteRequest({ backupName: 'team-a-daily-2' })];
    expect(scene({ deleteRequests }).decision().reason).toBe('Missing');
  });

  test('one unfinished request among processed ones is enough, and the errors of all are told', () => {
    const deleteRequests = [
      deleteRequest({ name: 'one', status: { phase: 'Processed', errors: ['bucket is locked'] } }),
      deleteRequest({ name: 'two', status: { phase: 'InProgress' } }),
    ];
    expect(scene({ deleteRequests }).decision().message).toBe(
      'The Backup is being deleted: a DeleteBackupRequest for it is not finished; Velero reported: bucket is locked.',
    );
  });

  test('a Backup that Velero could not delete says why', () => {
    const backups = [veleroBackup({ status: { phase: 'Deleting' } })];
    const deleteRequests = [deleteRequest({ status: { phase: 'Processed', errors: ['a', 'b', 'c', 'd'] } })];
    expect(scene({ backups, deleteRequests }).decision().message).toBe(
      'The Backup is being deleted: Velero is deleting it; Velero reported: a; b; c.',
    );
  });

  test('at most three errors are told, each cut and escaped, of however many requests', () => {
    const errors = [`\u001b]0;${'x'.repeat(10_000)}`];
    const deleteRequests = ['a', 'b', 'c', 'd', 'e'].map((name) =>
      deleteRequest({ name, status: { phase: 'InProgress', errors } }),
    );
    const { message } = scene({ deleteRequests }).decision();
    expect(message.match(/\\u\{1b\}/g)).toHaveLength(3);
    expect(message.length).toBeLessThan(600);
  });
});

describe('NotFinished: a Backup is finished and stored', () => {
  test.each(['Completed', 'PartiallyFailed', 'Failed'])('%s is finished', (phase) => {
    expect(scene({ backups: [veleroBackup({ status: { phase } })] }).decision().reason).toBe('Missing');
  });

  test.each([
    undefined,
    null,
    '',
    'New',
    'Queued',
    'ReadyToStart',
    'FailedValidation',
    'InProgress',
    'WaitingForPluginOperations',
    'WaitingForPluginOperationsPartiallyFailed',
    'Finalizing',
    'FinalizingPartiallyFailed',
    'completed',
    'Completed ',
    'PhaseOfTomorrow',
    3,
  ])('%j is not, even with a completion time', (phase) => {
    expect(scene({ backups: [veleroBackup({ status: { phase } })] }).decision()).toMatchObject({
      action: 'skip',
      reason: 'NotFinished',
    });
  });

  test.each([undefined, null, '', 'yesterday', '2026-01-14', 1_768_392_000, '2026-13-45T99:00:00Z'])(
    'Completed at %j is not finished: both must hold',
    (completionTimestamp) => {
      const decision = scene({ backups: [veleroBackup({ status: { completionTimestamp } })] }).decision();
      expect(decision).toEqual({
        action: 'skip',
        reason: 'NotFinished',
        message: 'The Backup is not finished: its phase is "Completed", without a completion time.',
      });
    },
  );

  test.each([null, undefined, 'Completed', [], 7])('a Backup whose status is %j is not', (status) => {
    const backup = { ...veleroBackup(), status };
    expect(scene({ backups: [backup] }).decision().reason).toBe('NotFinished');
  });

  test('the message shows the phase, and whether there is a time', () => {
    expect(scene({ backups: [veleroBackup({ status: { phase: 'New' } })] }).decision().message).toBe(
      'The Backup is not finished: its phase is "New", with a completion time.',
    );
  });
});

describe('Expired: what Velero is about to remove does not come back', () => {
  const expiring = (expiration: unknown) => [veleroBackup({ status: { expiration } })];

  test.each([
    ['a second ago', -second, 'Expired'],
    ['at this very moment', 0, 'Expired'],
    ['in a second', second, 'Missing'],
  ])('expired %s: %s', (_, offset, reason) => {
    expect(scene({ backups: expiring(at(offset)) }).decision().reason).toBe(reason);
  });

  test('the message says when', () => {
    expect(scene({ backups: expiring(at(-day)) }).decision()).toEqual({
      action: 'skip',
      reason: 'Expired',
      message: 'The Backup expired at 2026-01-14T12:00:00Z; Velero is about to remove it.',
    });
  });

  test.each([undefined, null, '', 'never'])('an expiration of %j never passes', (expiration) => {
    expect(scene({ backups: expiring(expiration) }).decision().reason).toBe('Missing');
  });

  test('in a read-only location Velero removes nothing, so it comes back', () => {
    const storageLocations = [storageLocation({ spec: { accessMode: 'ReadOnly' } })];
    expect(scene({ backups: expiring(at(-day)), storageLocations }).decision().reason).toBe('Missing');
  });

  test.each([undefined, null, '', 'ReadWrite', 'readonly'])('access mode %j is not read-only', (accessMode) => {
    const storageLocations = [storageLocation({ spec: { accessMode } })];
    expect(scene({ backups: expiring(at(-day)), storageLocations }).decision().reason).toBe('Expired');
  });

  test('it is a matter of the clock alone', () => {
    const backups = expiring(at(day));
    expect(scene({ backups, now: noon + day - 1 }).decision().reason).toBe('Missing');
    expect(scene({ backups, now: noon + day }).decision().reason).toBe('Expired');
  });
});
