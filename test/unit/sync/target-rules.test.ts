import { describe, expect, test } from 'vitest';
import {
  at,
  backupNotFound,
  bareNonAdminBackup,
  day,
  hour,
  minute,
  namespaceObject,
  nonAdminBackup,
  noon,
  second,
  storageLocation,
  veleroBackup,
} from '../../support/gen/api-objects.ts';
import { locationSyncPatience, settlesAt, stampMargin } from '../../../src/sync/rules.ts';
import { scene } from './support/scene.ts';

/** Rules 12 to 18: what is to be done in the namespace of a genuine backup that is ready? */

describe('NamespaceMissing, NamespaceTerminating, NamespaceNotSelected: the namespace can take a NAB', () => {
  test('a namespace that does not exist gets its backups when it does', () => {
    expect(scene({ namespaces: [] }).decision()).toEqual({
      action: 'skip',
      reason: 'NamespaceMissing',
      message: 'Namespace "team-a" does not exist; it gets its backups when it does.',
    });
  });

  test.each([
    ['phase Terminating', { status: { phase: 'Terminating' } }],
    ['a deletionTimestamp', { metadata: { deletionTimestamp: at(-second) } }],
  ])('a namespace with %s is being deleted', (_, shape) => {
    expect(scene({ namespaces: [namespaceObject(shape)] }).decision()).toMatchObject({
      action: 'skip',
      reason: 'NamespaceTerminating',
    });
  });

  test.each([undefined, null, {}, { phase: 'PhaseOfTomorrow' }])('a namespace with status %j is there', (status) => {
    const namespace = { ...namespaceObject(), status };
    expect(scene({ namespaces: [namespace] }).decision().reason).toBe('Missing');
  });

  test('a namespace that the selector does not match is left alone', () => {
    expect(scene({ selector: ({ tenant }) => tenant === 'yes' }).decision()).toMatchObject({
      action: 'skip',
      reason: 'NamespaceNotSelected',
    });
  });

  test('one that it matches is not', () => {
    const namespaces = [namespaceObject({ labels: { tenant: 'yes' } })];
    expect(scene({ namespaces, selector: ({ tenant }) => tenant === 'yes' }).decision().reason).toBe('Missing');
  });

  test('a namespace that is going away and not selected is going away', () => {
    const namespaces = [namespaceObject({ status: { phase: 'Terminating' } })];
    expect(scene({ namespaces, selector: () => false }).decision().reason).toBe('NamespaceTerminating');
  });
});

describe('Present: the NAB of that name has the NACUUID', () => {
  test('in its status', () => {
    expect(scene({ nonAdminBackups: [nonAdminBackup()] }).decision()).toEqual({
      action: 'none',
      reason: 'Present',
      message: 'Its NonAdminBackup is there.',
    });
  });

  test('in its status, whatever the sync label says', () => {
    const nonAdminBackups = [nonAdminBackup({ syncedFrom: 'another-one' })];
    expect(scene({ nonAdminBackups }).decision().reason).toBe('Present');
  });

  test('in the sync label, while the status names no backup', () => {
    const nonAdminBackups = [nonAdminBackup({ nacuuid: undefined, syncedFrom: 'team-a-daily-1' })];
    expect(scene({ nonAdminBackups }).decision().reason).toBe('Present');
  });

  test('not in the sync label once the status names another', () => {
    const nonAdminBackups = [nonAdminBackup({ nacuuid: 'another-one', syncedFrom: 'team-a-daily-1' })];
    expect(scene({ nonAdminBackups }).decision().reason).toBe('NameTaken');
  });

  test('also while the NAB is being deleted: it comes back when it is gone', () => {
    const nonAdminBackups = [nonAdminBackup({ metadata: { deletionTimestamp: at(0) } })];
    expect(scene({ nonAdminBackups }).decision().reason).toBe('Present');
  });

  test('of an older backup keeps the name, though a newer one completed', () => {
    const newer = veleroBackup({ nacuuid: 'newer', status: { completionTimestamp: at(-hour) } });
    const { decision } = scene({ backups: [veleroBackup(), newer], nonAdminBackups: [nonAdminBackup()] });
    expect([decision().reason, decision('newer').reason]).toEqual(['Present', 'NameTaken']);
  });

  test.each([
    ['in another namespace', { namespace: 'team-b' }],
    ['under another name', { name: 'weekly' }],
  ])('%s it is another NAB', (_, shape) => {
    expect(scene({ nonAdminBackups: [nonAdminBackup(shape)] }).decision().reason).toBe('Missing');
  });
});

describe('StatusMissing: a NAB of ours that nobody has written a status to', () => {
  test('is repaired', () => {
    expect(scene({ nonAdminBackups: [bareNonAdminBackup()] }).decision()).toEqual({
      action: 'repair',
      reason: 'StatusMissing',
      message: 'The NonAdminBackup was re-created but has no status yet.',
    });
  });

  test.each([null, {}, { conditions: [] }, { conditions: null }, { phase: '' }, { veleroBackup: { nacuuid: '' } }])(
    'a status of %j is none',
    (status) => {
      expect(scene({ nonAdminBackups: [{ ...bareNonAdminBackup(), status }] }).decision().reason).toBe('StatusMissing');
    },
  );

  test.each([
    ['a phase', { phase: 'New' }],
    ['a condition', { conditions: [{ type: 'Accepted', status: 'True' }] }],
    ['the reference to its backup', { veleroBackup: { nacuuid: 'team-a-daily-1' } }],
  ])('once the NAC has written %s, the rest is its to finish', (_, status) => {
    expect(scene({ nonAdminBackups: [bareNonAdminBackup({ status })] }).decision().reason).toBe('Present');
  });

  test.each([
    [
      'is being deleted',
      {
        metadata: {
          deletionTimestamp: at(0),
        },
      },
    ],
    ['has spec.deleteBackup', { spec: { deleteBackup: true } }],
  ])('is left to the NAC if it %s', (_, shape) => {
    expect(scene({ nonAdminBackups: [bareNonAdminBackup(shape)] }).decision().reason).toBe('Present');
  });

  test.each([false, null, 'true', 1])('spec.deleteBackup %j deletes nothing', (deleteBackup) => {
    const nonAdminBackups = [bareNonAdminBackup({ spec: { deleteBackup } })];
    expect(scene({ nonAdminBackups }).decision().reason).toBe('StatusMissing');
  });

  test('a NAB without our label is its user’s, and a name that is taken', () => {
    const nonAdminBackups = [
      bareNonAdminBackup({ labels: { 'openshift.io/oadp-nab-synced-from-nacuuid': undefined } }),
    ];
    expect(scene({ nonAdminBackups }).decision().reason).toBe('NameTaken');
  });

  test('a NAB with the label of another backup is not repaired for this one', () => {
    const nonAdminBackups = [bareNonAdminBackup({ syncedFrom: 'another-one' })];
    expect(scene({ nonAdminBackups }).decision().reason).toBe('NameTaken');
  });
});

describe('StatusStale: a NAB of ours that says its backup was not found, though it is there', () => {
  const stale = { phase: 'BackingOff', conditions: [backupNotFound], veleroBackup: { nacuuid: 'team-a-daily-1' } };
  const synced = { syncedFrom: 'team-a-daily-1' };

  test('is repaired', () => {
    expect(scene({ nonAdminBackups: [nonAdminBackup({ ...synced, status: stale })] }).decision()).toEqual({
      action: 'repair',
      reason: 'StatusStale',
      message: 'The NonAdminBackup still says that its Velero Backup was not found, but the Backup is there.',
    });
  });

  test.each([
    ['phase', { ...stale, phase: 'Created' }],
    ['message', { ...stale, conditions: [{ ...backupNotFound, message: 'other words' }] }],
    ['other conditions', { ...stale, conditions: [null, { type: 'Queued', status: 'True' }, backupNotFound] }],
    ['missing reference', { ...stale, veleroBackup: undefined }],
  ])('whatever its %s', (_, status) => {
    expect(scene({ nonAdminBackups: [nonAdminBackup({ ...synced, status })] }).decision().reason).toBe('StatusStale');
  });

  test.each([
    ['status True', { status: 'True' }],
    ['status Unknown', { status: 'Unknown' }],
    ['another reason', { reason: 'InvalidBackupSpec' }],
    ['another type', { type: 'Queued' }],
  ])('not with %s', (_, different) => {
    const status = { ...stale, conditions: [{ ...backupNotFound, ...different }] };
    expect(scene({ nonAdminBackups: [nonAdminBackup({ ...synced, status })] }).decision().reason).toBe('Present');
  });

  test.each([
    ['is being deleted', { ...synced, metadata: { deletionTimestamp: at(0) } }],
    ['has spec.deleteBackup', { ...synced, spec: { deleteBackup: true } }],
    ['is its user’s own, without our label', {}],
  ])('not if the NAB %s', (_, shape) => {
    const nonAdminBackups = [nonAdminBackup({ ...shape, status: stale })];
    expect(scene({ nonAdminBackups }).decision().reason).toBe('Present');
  });

  test('not while the Backup is being deleted', () => {
    const backups = [veleroBackup({ metadata: { deletionTimestamp: at(0) } })];
    const nonAdminBackups = [nonAdminBackup({ ...synced, status: stale })];
    expect(scene({ backups, nonAdminBackups }).decision().reason).toBe('BeingDeleted');
  });

  test('a status that is both missing a phase and stale is repaired once', () => {
    const nonAdminBackups = [bareNonAdminBackup({ status: { conditions: [backupNotFound] } })];
    expect(scene({ nonAdminBackups }).decision().reason).toBe('StatusStale');
  });
});

describe('LocationSyncing: while Velero reads the bucket, a newer backup of the same name may still come', () => {
  /** Read from the bucket 30 s ago; Velero was last through with the bucket a minute ago. */
  const fresh = veleroBackup({ metadata: { creationTimestamp: at(-30 * second) } });

  test('a backup that is newer than the last complete reading waits', () => {
    expect(scene({ backups: [fresh] }).decision()).toEqual({
      action: 'wait',
      reason: 'LocationSyncing',
      message:
        'Velero is still reading storage location "default"; decided when it is through, at 2026-01-15T12:01:30Z at the latest.',
    });
  });

  test('it waits as well while the bucket was never read to its end', () => {
    const storageLocations = [storageLocation({ status: { lastSyncedTime: undefined } })];
    expect(scene({ backups: [fresh], storageLocations }).decision().reason).toBe('LocationSyncing');
  });

  test.each([
    ['a second before the backup came', -31 * second, 'LocationSyncing'],
    ['in the second in which the backup came', -30 * second, 'Missing'],
    ['after the backup came', -29 * second, 'Missing'],
  ])('Velero was through %s: %s', (_, offset, reason) => {
    const storageLocations = [storageLocation({ status: { lastSyncedTime: at(offset) } })];
    expect(scene({ backups: [fresh], storageLocations }).decision().reason).toBe(reason);
  });

  test.each([
    ['one millisecond before', locationSyncPatience - 1, 'LocationSyncing'],
    ['at', locationSyncPatience, 'Missing'],
  ])('%s two minutes: %s', (_, age, reason) => {
    const backups = [veleroBackup({ metadata: { creationTimestamp: at(0) } })];
    expect(scene({ backups, now: noon + age }).decision().reason).toBe(reason);
  });

  test.each([
    ['just now', 0, 'LocationSyncing', noon + stampMargin],
    ['one millisecond less than two seconds ago', -stampMargin + 1, 'LocationSyncing', noon + 1],
    ['two seconds ago', -stampMargin, 'Missing', undefined],
    ['by a clock that is a little ahead', second, 'LocationSyncing', noon + second + stampMargin],
    ['by a clock that is ahead', stampMargin, 'Missing', undefined],
  ])(
    'Velero said %s that it was through, and Backups that it read before may still arrive: %s',
    (_, offset, reason, until) => {
      const storageLocations = [storageLocation({ status: { lastSyncedTime: new Date(noon + offset).toISOString() } })];
      const { state, world, decision } = scene({ backups: [fresh], storageLocations });
      const record = state.backup('team-a-daily-1');
      expect(decision().reason).toBe(reason);
      expect(record && settlesAt(record, world())).toBe(until);
    },
  );

  test('a Backup that has been here for two minutes does not wait for a new stamp', () => {
    const backups = [veleroBackup({ metadata: { creationTimestamp: at(-2 * minute) } })];
    const storageLocations = [storageLocation({ status: { lastSyncedTime: at(0) } })];
    expect(scene({ backups, storageLocations }).decision().reason).toBe('Missing');
  });

  test.each([undefined, null, 'Unavailable', 'available'])(
    'a location in phase %j is not read: no waiting',
    (phase) => {
      const storageLocations = [storageLocation({ status: { phase } })];
      expect(scene({ backups: [fresh], storageLocations }).decision().reason).toBe('Missing');
    },
  );

  test('a Backup without a creation time does not wait', () => {
    const backups = [veleroBackup({ metadata: { creationTimestamp: undefined } })];
    expect(scene({ backups }).decision().reason).toBe('Missing');
  });

  test('a clock that is behind the API server’s still waits', () => {
    const backups = [veleroBackup({ metadata: { creationTimestamp: at(minute) } })];
    expect(scene({ backups }).decision().reason).toBe('LocationSyncing');
  });

  test('a NAB that is there needs no waiting', () => {
    expect(scene({ backups: [fresh], nonAdminBackups: [nonAdminBackup()] }).decision().reason).toBe('Present');
    expect(scene({ backups: [fresh], nonAdminBackups: [bareNonAdminBackup()] }).decision().reason).toBe(
      'StatusMissing',
    );
  });

  test('it wakes up by itself when the two minutes are over', () => {
    const { state, world } = scene({ backups: [fresh] });
    const record = state.backup('team-a-daily-1');
    expect(record && settlesAt(record, world())).toBe(noon + 90 * second);
  });
});

describe('Superseded: of several backups of one namespace and name, the one that completed last comes back', () => {
  const older = veleroBackup({ nacuuid: 'older', status: { completionTimestamp: at(-2 * day) } });
  const newer = veleroBackup({ nacuuid: 'newer', status: { completionTimestamp: at(-day) } });

  test.each([
    ['older first', [older, newer]],
    ['newer first', [newer, older]],
  ])('in whichever order they are listed (%s)', (_, backups) => {
    const { decision } = scene({ backups });
    expect(decision('newer').reason).toBe('Missing');
    expect(decision('older')).toEqual({
      action: 'skip',
      reason: 'Superseded',
      message: 'Backup "newer" of the same namespace and name completed later, at 2026-01-14T12:00:00Z.',
    });
  });

  test('a tie is settled by the larger NACUUID', () => {
    const backups = ['b', 'a', 'c'].map((nacuuid) => veleroBackup({ nacuuid }));
    const { decision } = scene({ backups });
    expect(['a', 'b', 'c'].map((name) => decision(name).reason)).toEqual(['Superseded', 'Superseded', 'Missing']);
  });

  test.each([
    ['is being deleted', { metadata: { deletionTimestamp: at(0) } }],
    ['is not finished', { status: { phase: 'InProgress' } }],
    ['has expired', { status: { expiration: at(-second), completionTimestamp: at(-hour) } }],
    ['is refused for its content', { spec: { includedNamespaces: ['*'] } }],
    ['lies where it does not count', { spec: { storageLocation: 'unknown' } }],
  ])('one that %s supersedes nothing', (_, shape) => {
    const newest = veleroBackup({
      nacuuid: 'newest',
      ...shape,
      status: { completionTimestamp: at(-hour), ...('status' in shape ? shape.status : {}) },
    });
    const { decision } = scene({ backups: [older, newest] });
    expect(decision('newest').action).toBe('skip');
    expect(decision('older').reason).toBe('Missing');
  });

  test('one that still waits for its location does: the older one would take its name', () => {
    const waiting = veleroBackup({
      nacuuid: 'waiting',
      metadata: { creationTimestamp: at(-second) },
      status: { completionTimestamp: at(-hour) },
    });
    const { decision } = scene({ backups: [older, waiting] });
    expect([decision('older').reason, decision('waiting').reason]).toEqual(['Superseded', 'LocationSyncing']);
  });

  test.each([
    ['another name', { name: 'weekly' }],
    ['another namespace', { namespace: 'team-b' }],
  ])('one of %s supersedes nothing', (_, shape) => {
    const other = veleroBackup({ nacuuid: 'other', ...shape, status: { completionTimestamp: at(-hour) } });
    expect(scene({ backups: [older, other] }).decision('older').reason).toBe('Missing');
  });

  test('an older one whose NAB is there is Present, and the newer one finds the name taken', () => {
    const { decision } = scene({ backups: [older, newer], nonAdminBackups: [nonAdminBackup({ nacuuid: 'older' })] });
    expect([decision('older').reason, decision('newer').reason]).toEqual(['Present', 'NameTaken']);
  });

  test('a deleted NAB that was made anew under its name supersedes the backup of the first', () => {
    const { decision } = scene({ backups: [older, newer], nonAdminBackups: [nonAdminBackup({ nacuuid: 'newer' })] });
    expect([decision('older').reason, decision('newer').reason]).toEqual(['Superseded', 'Present']);
  });
});

describe('NameTaken: an existing NAB is never touched', () => {
  test('one that belongs to another backup', () => {
    const decision = scene({ nonAdminBackups: [nonAdminBackup({ nacuuid: 'secret-of-another' })] }).decision();
    expect(decision).toEqual({
      action: 'conflict',
      reason: 'NameTaken',
      message: 'NonAdminBackup "daily" in namespace "team-a" belongs to another backup; it is left alone.',
    });
  });

  test('one that has no backup yet', () => {
    const nonAdminBackups = [nonAdminBackup({ nacuuid: undefined, status: { phase: 'New', conditions: [] } })];
    expect(scene({ nonAdminBackups }).decision().message).toContain('has no backup yet');
  });

  test('one that is being deleted still has the name', () => {
    const metadata = { deletionTimestamp: at(0) };
    const nonAdminBackups = [nonAdminBackup({ nacuuid: 'another', metadata })];
    expect(scene({ nonAdminBackups }).decision().reason).toBe('NameTaken');
  });
});
