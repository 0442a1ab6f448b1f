import { describe, expect, test } from 'vitest';
import { toBackupRecord } from '../../../src/oadp/backup.ts';
import { toDeleteRequestRecord } from '../../../src/oadp/delete-request.ts';
import { nacLabelSelector } from '../../../src/oadp/labels.ts';
import { toNamespaceRecord } from '../../../src/oadp/namespace.ts';
import { toNonAdminBackupRecord } from '../../../src/oadp/non-admin-backup.ts';
import { toLocationOwnerRecord, toStorageLocationRecord } from '../../../src/oadp/storage-location.ts';
import {
  at,
  backupNotFound,
  bareNonAdminBackup,
  day,
  deleteRequest,
  hour,
  minute,
  namespaceObject,
  nonAdminBackup,
  nonAdminStorageLocation,
  noon,
  ownedStorageLocation,
  storageLocation,
  veleroBackup,
} from '../../support/gen/api-objects.ts';

describe('of a Velero Backup', () => {
  test('what the rules need is kept', () => {
    expect(toBackupRecord(veleroBackup())).toEqual({
      name: 'team-a-daily-1',
      uid: 'uid-of-team-a-daily-1',
      resourceVersion: '100',
      claim: { nacuuid: 'team-a-daily-1', namespace: 'team-a', name: 'daily' },
      storageLocation: 'default',
      includedNamespaces: { count: 1, first: 'team-a' },
      phase: 'Completed',
      deleting: false,
      creationTime: noon - hour,
      completionTime: noon - day,
      expiration: noon + 29 * day,
    });
  });

  test('an empty object is a record without anything', () => {
    expect(toBackupRecord({})).toEqual({
      name: '',
      uid: '',
      resourceVersion: '',
      claim: { nacuuid: undefined, namespace: undefined, name: undefined },
      storageLocation: undefined,
      includedNamespaces: { count: 0, first: undefined },
      phase: undefined,
      deleting: false,
      creationTime: undefined,
      completionTime: undefined,
      expiration: undefined,
    });
  });

  test('the namespace of the object itself, which stems from another cluster, counts for nothing', () => {
    const record = toBackupRecord(veleroBackup({ metadata: { namespace: 'velero' } }));
    expect(record.claim.namespace).toBe('team-a');
  });

  test.each(['openshift.io/oadp', 'app.kubernetes.io/managed-by'])(
    'one without the NAC’s label %s, or with another value of it, claims nothing',
    (label) => {
      for (const value of [undefined, '', 'other']) {
        expect(toBackupRecord(veleroBackup({ labels: { [label]: value } })).claim).toEqual({
          nacuuid: undefined,
          namespace: undefined,
          name: undefined,
        });
      }
    },
  );

  test('a name in the origin annotation is taken as it is, never parsed out of the Backup’s own name', () => {
    const record = toBackupRecord(veleroBackup({ nacuuid: 'team-a-cut-off-na-1', name: 'cut-off-name-of-the-nab' }));
    expect(record.claim).toEqual({
      nacuuid: 'team-a-cut-off-na-1',
      namespace: 'team-a',
      name: 'cut-off-name-of-the-nab',
    });
  });

  test('a text of megabytes is cut, so that memory stays small, and what was cut stays illegal', () => {
    const huge = 'a'.repeat(1_000_000);
    const shape = { namespace: huge, name: huge, spec: { storageLocation: huge }, status: { phase: huge } };
    const record = toBackupRecord(veleroBackup(shape));
    expect(record.claim.name).toHaveLength(300);
    expect(record.claim.namespace).toHaveLength(300);
    expect(record.storageLocation).toHaveLength(300);
    expect(record.includedNamespaces.first).toHaveLength(300);
    expect(record.phase).toHaveLength(300);
  });

  test('of a million included namespaces the number and the first are kept', () => {
    const includedNamespaces = Array.from({ length: 100_000 }, () => 'x');
    expect(toBackupRecord(veleroBackup({ spec: { includedNamespaces } })).includedNamespaces).toEqual({
      count: 100_000,
      first: 'x',
    });
  });
});

describe('of a BackupStorageLocation', () => {
  test('the admin’s default one', () => {
    expect(toStorageLocationRecord(storageLocation())).toEqual({
      name: 'default',
      isDefault: true,
      readOnly: false,
      available: true,
      lastSyncedTime: noon - minute,
      syncPeriod: undefined,
      owner: 'admin',
    });
  });

  test('a tenant’s one', () => {
    expect(toStorageLocationRecord(ownedStorageLocation({ ownerNacuuid: 'uuid-of-owner' }))).toMatchObject({
      name: 'team-a-bucket-1',
      isDefault: false,
      owner: { namespace: 'team-a', name: 'bucket', nacuuid: 'uuid-of-owner' },
    });
  });

  test('an empty object is nobody’s but the admin’s, and of no use', () => {
    expect(toStorageLocationRecord({})).toEqual({
      name: '',
      isDefault: false,
      readOnly: false,
      available: false,
      lastSyncedTime: undefined,
      syncPeriod: undefined,
      owner: 'admin',
    });
  });
});

describe('of a NonAdminBackupStorageLocation', () => {
  test('the NACUUID of its location and whether it is going away', () => {
    expect(toLocationOwnerRecord(nonAdminStorageLocation())).toEqual({ deleting: false, nacuuid: 'team-a-bucket-1' });
    expect(toLocationOwnerRecord({ metadata: { deletionTimestamp: at(0) } })).toEqual({
      deleting: true,
      nacuuid: undefined,
    });
  });
});

describe('of a DeleteBackupRequest', () => {
  test('which Backup it names and whether Velero is through with it', () => {
    expect(toDeleteRequestRecord(deleteRequest())).toEqual({
      backupName: 'team-a-daily-1',
      processed: false,
      errors: [],
    });
    const status = { phase: 'Processed', errors: ['one', 2, '\u001b', 'four'] };
    expect(toDeleteRequestRecord(deleteRequest({ status }))).toMatchObject({
      processed: true,
      errors: ['one', '(number)', '\\u{1b}'],
    });
  });

  test.each([undefined, null, '', 7])('one that names %j names none', (backupName) => {
    expect(toDeleteRequestRecord(deleteRequest({ spec: { backupName } }))).toBeUndefined();
  });
});

describe('of a Namespace', () => {
  test('whether it goes away and whether it is selected', () => {
    expect(toNamespaceRecord(namespaceObject(), () => true)).toEqual({
      uid: 'uid-of-team-a',
      resourceVersion: '7',
      terminating: false,
      selected: true,
    });
    expect(toNamespaceRecord({}, () => false)).toEqual({
      uid: '',
      resourceVersion: '',
      terminating: false,
      selected: false,
    });
  });

  test('the selector sees its labels, and none that is no text', () => {
    const seen: unknown[] = [];
    const select = (labels: unknown) => seen.push(labels) > 0;
    toNamespaceRecord(namespaceObject({ labels: { tenant: 'yes', broken: null, number: 1 } }), select);
    toNamespaceRecord({ metadata: { labels: ['a'] } }, select);
    toNamespaceRecord({ metadata: null }, select);
    expect(seen).toEqual([{ tenant: 'yes' }, {}, {}]);
  });
});

describe('of a NonAdminBackup', () => {
  test('one that the NAC made', () => {
    expect(toNonAdminBackupRecord(nonAdminBackup())).toEqual({
      uid: 'uid-of-daily',
      nacuuid: 'team-a-daily-1',
      synced: false,
      statusEmpty: false,
      backupNotFound: false,
      deleting: false,
      deleteBackup: false,
    });
  });

  test('one that was just re-created', () => {
    expect(toNonAdminBackupRecord(bareNonAdminBackup())).toMatchObject({
      nacuuid: 'team-a-daily-1',
      synced: true,
      statusEmpty: true,
    });
  });

  test('one that the NAC gave up on', () => {
    const status = { phase: 'BackingOff', conditions: [null, 'x', backupNotFound] };
    expect(toNonAdminBackupRecord(bareNonAdminBackup({ status }))).toMatchObject({
      statusEmpty: false,
      backupNotFound: true,
    });
  });
});

test('Backups are chosen by the labels of the NAC', () => {
  expect(nacLabelSelector).toBe('openshift.io/oadp=True,app.kubernetes.io/managed-by=oadp-nac-controller');
});
