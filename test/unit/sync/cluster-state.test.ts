import { describe, expect, test } from 'vitest';
import {
  at,
  bareNonAdminBackup,
  deleteRequest,
  minute,
  namespaceObject,
  nonAdminStorageLocation,
  ownedStorageLocation,
  second,
  storageLocation,
  veleroBackup,
} from '../../support/gen/api-objects.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { LiveCluster, type Kind } from './support/live-cluster.ts';

/** A cluster that has seen these objects. */
function cluster(objects: readonly (readonly [Kind, JsonObject])[]): LiveCluster {
  const live = new LiveCluster();
  for (const [kind, object] of objects) live.happen({ kind, object, gone: false });
  live.takeAffected();
  return live;
}

const usual: readonly (readonly [Kind, JsonObject])[] = [
  ['storageLocation', storageLocation()],
  ['namespace', namespaceObject()],
  ['backup', veleroBackup()],
];

describe('namespaces become work when something happens to', () => {
  test.each<[string, Kind, JsonObject]>([
    ['one of their backups', 'backup', veleroBackup({ metadata: { resourceVersion: '101' } })],
    ['themselves', 'namespace', namespaceObject({ metadata: { resourceVersion: '8' } })],
    ['the location of their backups', 'storageLocation', storageLocation({ spec: { accessMode: 'ReadOnly' } })],
    ['a request to delete one of their backups', 'deleteRequest', deleteRequest()],
    ['a NAB that one of their backups claims', 'nonAdminBackup', bareNonAdminBackup()],
  ])('%s', (_, kind, object) => {
    const live = cluster(usual);
    live.happen({ kind, object, gone: false });
    expect(live.takeAffected()).toEqual(new Set(['team-a']));
    live.happen({ kind, object, gone: true });
    expect(live.takeAffected()).toEqual(new Set(['team-a']));
  });

  test('the NABSL that owns the location of their backups', () => {
    const live = cluster([
      ['storageLocation', ownedStorageLocation()],
      ['backup', veleroBackup({ spec: { storageLocation: 'team-a-bucket-1' } })],
    ]);
    live.happen({ kind: 'locationOwner', object: nonAdminStorageLocation(), gone: false });
    expect(live.takeAffected()).toEqual(new Set(['team-a']));
  });

  test('a backup that moves: where it was and where it is', () => {
    const live = cluster(usual);
    live.happen({ kind: 'backup', object: veleroBackup({ namespace: 'team-b' }), gone: false });
    expect(live.takeAffected()).toEqual(new Set(['team-a', 'team-b']));
  });
});

describe('nobody is woken by', () => {
  test.each<[string, Kind, JsonObject]>([
    ['a namespace that no backup claims', 'namespace', namespaceObject({ name: 'other' })],
    ['a NAB that no backup claims', 'nonAdminBackup', bareNonAdminBackup({ name: 'weekly' })],
    ['a location without backups', 'storageLocation', storageLocation({ name: 'other' })],
    ['a NABSL without a location', 'locationOwner', nonAdminStorageLocation()],
    ['a request for a backup that is not there', 'deleteRequest', deleteRequest({ backupName: 'other' })],
    [
      'Velero’s stamp on a location, once it is through',
      'storageLocation',
      storageLocation({ status: { lastSyncedTime: at(0) } }),
    ],
    ['an object that comes again as it was', 'backup', veleroBackup()],
  ])('%s', (_, kind, object) => {
    const live = cluster(usual);
    live.happen({ kind, object, gone: false });
    expect(live.takeAffected()).toEqual(new Set());
  });
});

test('a backup that left a location is not woken by it any more', () => {
  const live = cluster([...usual, ['storageLocation', storageLocation({ name: 'second' })]]);
  live.happen({ kind: 'backup', object: veleroBackup({ spec: { storageLocation: 'second' } }), gone: false });
  live.takeAffected();
  live.happen({ kind: 'storageLocation', object: storageLocation({ spec: { accessMode: 'ReadOnly' } }), gone: false });
  expect(live.takeAffected()).toEqual(new Set());
});

test('a request to delete a backup that is refused wakes nobody', () => {
  const live = cluster([...usual, ['backup', veleroBackup({ spec: { includedNamespaces: ['*'] } })]]);
  live.happen({ kind: 'deleteRequest', object: deleteRequest(), gone: false });
  expect(live.takeAffected()).toEqual(new Set());
});

test('a NABSL wakes those whose backups lie in its own location, and no other tenant', () => {
  const tenants = ['team-a', 'team-b'].map((namespace) => ({ namespace, name: `${namespace}-bucket-1` }));
  const live = cluster([
    ...tenants.map((tenant) => ['storageLocation', ownedStorageLocation(tenant)] as const),
    ...tenants.map(({ namespace }) => ['locationOwner', nonAdminStorageLocation({ namespace, nacuuid: '' })] as const),
    ...tenants.map(({ namespace, name }) => {
      const backup = veleroBackup({ nacuuid: `in-${namespace}`, namespace, spec: { storageLocation: name } });
      return ['backup', backup] as const;
    }),
  ]);
  const object = nonAdminStorageLocation({ namespace: 'team-b', nacuuid: 'team-b-bucket-1' });
  live.happen({ kind: 'locationOwner', object, gone: false });
  expect(live.takeAffected()).toEqual(new Set(['team-b']));
});

test('of requests to delete a backup all count, and none of another backup', () => {
  const live = cluster([
    ...usual,
    ['deleteRequest', deleteRequest({ name: 'a' })],
    ['deleteRequest', deleteRequest({ name: 'b', status: { phase: 'Processed' } })],
    ['deleteRequest', deleteRequest({ name: 'c', backupName: 'other' })],
  ]);
  expect([...live.state.deleteRequests('team-a-daily-1')].map(({ processed }) => processed)).toEqual([false, true]);
  live.happen({ kind: 'deleteRequest', object: deleteRequest({ name: 'a', backupName: 'other' }), gone: false });
  expect([...live.state.deleteRequests('team-a-daily-1')]).toHaveLength(1);
  expect(live.takeAffected()).toEqual(new Set(['team-a']));
});

describe('when Velero stamps a location as read', () => {
  const stamped = (offset: number) => storageLocation({ status: { lastSyncedTime: at(offset) } });
  const waiting = veleroBackup({ metadata: { creationTimestamp: at(-second) } });

  test('those whose backups wait for it are woken, and only those', () => {
    const settled = veleroBackup({ nacuuid: 'settled', namespace: 'team-b' });
    const live = cluster([...usual, ['backup', waiting], ['backup', settled]]);
    live.happen({ kind: 'storageLocation', object: stamped(0), gone: false });
    expect(live.takeAffected()).toEqual(new Set(['team-a']));
  });

  test('for the first time, all are', () => {
    const unread = storageLocation({ status: { lastSyncedTime: undefined } });
    const live = cluster([...usual, ['storageLocation', unread]]);
    live.happen({ kind: 'storageLocation', object: stamped(0), gone: false });
    expect(live.takeAffected()).toEqual(new Set(['team-a']));
  });

  test('and the stamp goes back, since the location was made anew, those that now have to wait are', () => {
    const live = cluster([...usual, ['storageLocation', stamped(0)], ['backup', waiting]]);
    live.happen({ kind: 'storageLocation', object: stamped(-minute), gone: false });
    expect(live.takeAffected()).toEqual(new Set(['team-a']));
  });
});

describe('ten thousand forgeries in a tenant’s bucket', () => {
  const forgeries = Array.from({ length: 10_000 }, (_, index) =>
    veleroBackup({
      nacuuid: `forged-${String(index)}`,
      namespace: 'team-b',
      spec: { storageLocation: 'team-a-bucket-1' },
    }),
  );

  test('are settled when they are indexed, and cost the namespace that they claim nothing', () => {
    const live = cluster([
      ['storageLocation', ownedStorageLocation()],
      ['locationOwner', nonAdminStorageLocation()],
      ['namespace', namespaceObject({ name: 'team-b' })],
    ]);
    live.relist('backup', forgeries);
    expect(live.takeAffected()).toEqual(new Set());
    expect([...live.state.claimedNamespaces()]).toEqual([]);
    expect([...live.state.backupsOf('team-b')]).toEqual([]);
    expect([...live.state.claimants('team-b', 'daily')]).toEqual([]);
    expect(live.state.refused().size).toBe(10_000);
    live.happen({ kind: 'namespace', object: namespaceObject({ name: 'team-b', labels: { a: 'b' } }), gone: false });
    expect(live.takeAffected()).toEqual(new Set());
  });
});

describe('who wins a name', () => {
  test('is worked out once a name, not once a backup: ten thousand claims of one name are decided at once', () => {
    const claims = Array.from({ length: 10_000 }, (_, index) => veleroBackup({ nacuuid: `claim-${String(index)}` }));
    const live = cluster([usual[0] ?? ['backup', {}], usual[1] ?? ['backup', {}]]);
    live.relist('backup', claims);
    const began = performance.now();
    const decisions = live.allDecisions();
    expect(performance.now() - began).toBeLessThan(5000);
    const reasons = [...decisions.values()].map(({ reason }) => reason);
    expect(reasons.filter((reason) => reason === 'Missing')).toHaveLength(1);
    expect(reasons.filter((reason) => reason === 'Superseded')).toHaveLength(9999);
    // Of equal times the largest NACUUID, as text.
    expect(decisions.get('claim-9999')?.reason).toBe('Missing');
  });
});
