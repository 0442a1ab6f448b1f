import { describe, expect, test } from 'vitest';
import { isJsonObject } from '../../../src/kube/json.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { nonAdminBackupFor, syncedStatus, type Origin } from '../../../src/oadp/non-admin-backup.ts';
import { at, backupNotFound, minute, noon, oadpNamespace, veleroBackup } from '../../support/gen/api-objects.ts';

const origin: Origin = { nacuuid: 'team-a-daily-1', namespace: 'team-a', name: 'daily' };

/** As it comes out of a response. */
function parsed(text: string): JsonObject {
  const value: unknown = JSON.parse(text);
  if (!isJsonObject(value)) throw new Error('not an object');
  return value;
}

describe('the NAB that is created for a Backup', () => {
  test('is this, and nothing else', () => {
    expect(nonAdminBackupFor(veleroBackup(), origin, undefined)).toStrictEqual({
      apiVersion: 'oadp.openshift.io/v1alpha1',
      kind: 'NonAdminBackup',
      metadata: {
        name: 'daily',
        namespace: 'team-a',
        labels: { 'openshift.io/oadp-nab-synced-from-nacuuid': 'team-a-daily-1' },
      },
      spec: { backupSpec: { includedNamespaces: ['team-a'], ttl: '720h0m0s' } },
    });
  });

  test('takes nothing over from the Backup’s metadata', () => {
    const backup = veleroBackup({
      metadata: {
        ownerReferences: [{ kind: 'Schedule', name: 'gone', uid: '1' }],
        finalizers: ['keep.me/for-ever'],
        generateName: 'x-',
        managedFields: [{ manager: 'velero' }],
        generation: 7,
      },
      labels: { 'velero.io/storage-location': 'default', team: 'x', 'argocd.argoproj.io/instance': 'app' },
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
    });
    expect(nonAdminBackupFor(backup, origin, undefined)).toStrictEqual(
      nonAdminBackupFor(veleroBackup(), origin, undefined),
    );
  });

  test('names the tenant’s NABSL where the Backup names the location that was made from it', () => {
    const backup = veleroBackup({ spec: { storageLocation: 'team-a-bucket-1' } });
    expect(nonAdminBackupFor(backup, origin, 'bucket')).toMatchObject({
      spec: { backupSpec: { storageLocation: 'bucket', includedNamespaces: ['team-a'] } },
    });
  });

  test('carries every field of the spec, known or not, as it is', () => {
    const spec = {
      fromTheFuture: { nested: [1, null, { deep: true }] },
      hooks: { resources: [] },
      excludedNamespaces: null,
      csiSnapshotTimeout: '10m0s',
      metadata: { labels: { mine: 'yes' } },
    };
    expect(nonAdminBackupFor(veleroBackup({ spec }), origin, undefined)).toMatchObject({ spec: { backupSpec: spec } });
  });

  test.each([undefined, null, [], 'spec', 7])('has an empty spec for a Backup whose spec is %j', (spec) => {
    const backup = { ...veleroBackup(), spec };
    expect(nonAdminBackupFor(backup, origin, undefined)).toHaveProperty('spec', { backupSpec: {} });
    expect(nonAdminBackupFor(backup, origin, 'bucket')).toMatchObject({
      spec: { backupSpec: { storageLocation: 'bucket' } },
    });
  });

  test('leaves the Backup as it was', () => {
    const backup = veleroBackup();
    const before = structuredClone(backup);
    nonAdminBackupFor(backup, origin, 'bucket');
    syncedStatus(backup, origin, oadpNamespace, undefined, noon);
    expect(backup).toStrictEqual(before);
  });

  test('passes on a key named __proto__ as data, and pollutes nothing with it', () => {
    const backup = parsed('{"spec":{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}}');
    const nab = nonAdminBackupFor(backup, origin, 'bucket');
    expect(JSON.stringify(nab)).toContain('"__proto__":{"polluted":true}');
    expect({}).not.toHaveProperty('polluted');
    expect(Object.getPrototypeOf(parsed(JSON.stringify(nab)))).toBe(Object.prototype);
    const status = syncedStatus(backup, origin, oadpNamespace, parsed('{"__proto__":{"polluted":true}}'), noon);
    expect(Object.getPrototypeOf(status)).toBe(Object.prototype);
    expect(status).not.toHaveProperty('polluted');
  });
});

describe('the status that it gets', () => {
  const backup = veleroBackup();
  const now = noon + 678;

  test('is this, and nothing else: the counters are the NAC’s', () => {
    expect(syncedStatus(backup, origin, oadpNamespace, undefined, now)).toStrictEqual({
      phase: 'Created',
      conditions: [
        {
          type: 'Accepted',
          status: 'True',
          reason: 'BackupAccepted',
          message: 'backup accepted',
          lastTransitionTime: '2026-01-15T12:00:00Z',
        },
        {
          type: 'Queued',
          status: 'True',
          reason: 'BackupScheduled',
          message: 'Created Velero Backup object',
          lastTransitionTime: '2026-01-15T12:00:00Z',
        },
        {
          type: 'Synced',
          status: 'True',
          reason: 'RecreatedFromVeleroBackup',
          message:
            'Re-created by nab-sync from the Velero Backup team-a-daily-1, which completed at 2026-01-14T12:00:00Z.',
          lastTransitionTime: '2026-01-15T12:00:00Z',
        },
      ],
      queueInfo: { estimatedQueuePosition: 0 },
      veleroBackup: {
        nacuuid: 'team-a-daily-1',
        name: 'team-a-daily-1',
        namespace: 'openshift-adp',
        spec: backup['spec'],
        status: backup['status'],
      },
    });
  });

  test('carries spec and status of the Backup with fields that nobody knows yet', () => {
    const odd = veleroBackup({ spec: { fromTheFuture: [null] }, status: { progress: { itemsBackedUp: 5 } } });
    expect(syncedStatus(odd, origin, oadpNamespace, undefined, now)).toMatchObject({
      veleroBackup: { spec: odd['spec'], status: odd['status'] },
    });
  });

  test.each([undefined, null, [], 'x'])('has empty objects for a Backup whose spec and status are %j', (value) => {
    const odd = { ...backup, spec: value, status: value };
    const { veleroBackup } = syncedStatus(odd, origin, oadpNamespace, undefined, now);
    expect(veleroBackup).toHaveProperty('spec', {});
    expect(veleroBackup).toHaveProperty('status', {});
  });

  describe('when it is repaired', () => {
    const present = {
      phase: 'BackingOff',
      conditions: [
        { type: 'Foreign', status: 'False', reason: 'Other', message: 'kept', lastTransitionTime: at(-minute) },
        backupNotFound,
        {
          type: 'Queued',
          status: 'True',
          reason: 'Old',
          message: 'old',
          observedGeneration: 3,
          lastTransitionTime: at(-minute),
        },
      ],
      dataMoverDataUploads: { total: 3 },
      fileSystemPodVolumeBackups: { total: 4 },
      queueInfo: { estimatedQueuePosition: 9 },
      veleroBackup: { nacuuid: 'team-a-daily-1' },
      fromTheFuture: true,
    };
    const repaired = syncedStatus(backup, origin, oadpNamespace, present, now);

    test('keeps counters, foreign conditions and fields that nobody knows', () => {
      expect(repaired).toMatchObject({
        dataMoverDataUploads: { total: 3 },
        fileSystemPodVolumeBackups: { total: 4 },
        fromTheFuture: true,
      });
      expect(repaired['conditions']).toContainEqual(present.conditions[0]);
    });

    test('ends as a new one does in all that matters', () => {
      const { conditions, ...fresh } = syncedStatus(backup, origin, oadpNamespace, undefined, now);
      expect(conditions).toHaveLength(3);
      expect(repaired).toMatchObject(fresh);
    });

    test('has each condition once, and no word of the Backup that was not found', () => {
      expect(JSON.stringify(repaired)).not.toContain('VeleroBackupNotFound');
      expect(repaired['conditions']).toMatchObject([
        { type: 'Foreign' },
        { type: 'Accepted', status: 'True', reason: 'BackupAccepted' },
        { type: 'Queued', status: 'True', reason: 'BackupScheduled' },
        { type: 'Synced', status: 'True', reason: 'RecreatedFromVeleroBackup' },
      ]);
    });

    test('changes the time of a condition only with its status', () => {
      expect(repaired['conditions']).toMatchObject([
        { type: 'Foreign', lastTransitionTime: at(-minute) },
        { type: 'Accepted', lastTransitionTime: '2026-01-15T12:00:00Z' },
        { type: 'Queued', lastTransitionTime: at(-minute) },
        { type: 'Synced', lastTransitionTime: '2026-01-15T12:00:00Z' },
      ]);
    });

    test('twice changes nothing, whenever it is done', () => {
      expect(syncedStatus(backup, origin, oadpNamespace, repaired, now + minute)).toStrictEqual(repaired);
    });

    test.each([null, 'x', {}, [null, 7, 'x', {}]])('copes with %j for conditions', (conditions) => {
      const status = syncedStatus(backup, origin, oadpNamespace, { conditions }, now);
      expect(status['conditions']).toHaveLength((Array.isArray(conditions) ? conditions.length : 0) + 3);
    });

    test('gives a condition without a time one', () => {
      const conditions = [{ type: 'Accepted', status: 'True' }];
      const status = syncedStatus(backup, origin, oadpNamespace, { conditions }, now);
      expect(status['conditions']).toMatchObject([
        { type: 'Accepted', lastTransitionTime: '2026-01-15T12:00:00Z' },
        {},
        {},
      ]);
    });
  });

  test('says so where the Backup does not tell when it completed', () => {
    const odd = veleroBackup({ status: { completionTimestamp: undefined } });
    expect(JSON.stringify(syncedStatus(odd, origin, oadpNamespace, undefined, now))).toContain(
      'which completed at an unknown time.',
    );
  });
});
