import { describe, expect, test } from 'vitest';
import {
  at,
  backupNotFound,
  bareNonAdminBackup,
  deleteRequest,
  hour,
  namespaceObject,
  nonAdminBackup,
  nonAdminStorageLocation,
  ownedStorageLocation,
  second,
  storageLocation,
  veleroBackup,
  type NonAdminBackupShape,
  type ObjectShape,
  type VeleroBackupShape,
} from '../../support/gen/api-objects.ts';
import { actionOf, decisionReasons, refusalReasons, type DecisionReason } from '../../../src/sync/reasons.ts';
import { claimRules, readinessRules, targetRules } from '../../../src/sync/rules.ts';
import { scene, type Scene } from './support/scene.ts';

/** What differs from a cluster in which one NAB, of a backup in its tenant's own location, is missing. */
interface Trouble {
  readonly backup?: VeleroBackupShape;
  readonly location?: ObjectShape;
  readonly locationOwner?: 'gone';
  readonly namespace?: 'missing' | ObjectShape;
  readonly notSelected?: boolean;
  readonly nonAdminBackup?: NonAdminBackupShape | 'bare';
  readonly rival?: boolean;
}

/** One trouble a reason, in the order of the rules. */
const troubles: readonly (readonly [DecisionReason, Trouble])[] = [
  ['InvalidOrigin', { backup: { name: 'Daily' } }],
  ['IdentityMismatch', { backup: { labels: { 'openshift.io/oadp-nab-origin-nacuuid': 'copied' } } }],
  ['ProtectedNamespace', { backup: { namespace: 'kube-system' } }],
  ['UnknownStorageLocation', { backup: { spec: { storageLocation: 'unknown' } } }],
  ['UnwatchedStorageLocation', { location: { labels: { 'openshift.io/oadp': undefined } } }],
  ['StorageLocationOwnerGone', { locationOwner: 'gone' }],
  ['StorageLocationOwnerMismatch', { location: { namespace: 'team-z' } }],
  ['ForeignContent', { backup: { spec: { includedNamespaces: ['*'] } } }],
  ['BeingDeleted', { backup: { metadata: { deletionTimestamp: at(0) } } }],
  ['NotFinished', { backup: { status: { phase: 'InProgress' } } }],
  ['Expired', { backup: { status: { expiration: at(-second) } } }],
  ['NamespaceMissing', { namespace: 'missing' }],
  ['NamespaceTerminating', { namespace: { status: { phase: 'Terminating' } } }],
  ['NamespaceNotSelected', { notSelected: true }],
  ['StatusMissing', { nonAdminBackup: 'bare' }],
  ['StatusStale', { nonAdminBackup: { syncedFrom: 'team-a-daily-1', status: { conditions: [backupNotFound] } } }],
  ['Present', { nonAdminBackup: {} }],
  ['LocationSyncing', { backup: { metadata: { creationTimestamp: at(-second) } } }],
  ['Superseded', { rival: true }],
  ['NameTaken', { nonAdminBackup: { nacuuid: 'another' } }],
  ['Missing', {}],
];

/** What the two troubles do to one field of one object is laid over each other. */
function both(a: Trouble, b: Trouble): Trouble {
  const backup: VeleroBackupShape = {
    ...a.backup,
    ...b.backup,
    metadata: { ...a.backup?.metadata, ...b.backup?.metadata },
    labels: { ...a.backup?.labels, ...b.backup?.labels },
    spec: { ...a.backup?.spec, ...b.backup?.spec },
    status: { ...a.backup?.status, ...b.backup?.status },
  };
  return { ...a, ...b, backup, location: { ...a.location, ...b.location } };
}

/** Both give the NAB or the Namespace a form of their own, and there is but one. */
function excludeEachOther(a: Trouble, b: Trouble): boolean {
  return (
    (a.nonAdminBackup !== undefined && b.nonAdminBackup !== undefined) ||
    (a.namespace !== undefined && b.namespace !== undefined)
  );
}

function sceneOf(trouble: Trouble): Scene {
  const inOwnLocation = (shape: VeleroBackupShape) =>
    veleroBackup({ ...shape, spec: { storageLocation: 'team-a-bucket-1', ...shape.spec } });
  const { namespace = 'team-a' } = trouble.backup ?? {};
  const rival = inOwnLocation({ nacuuid: 'rival', namespace, status: { completionTimestamp: at(-hour) } });
  const nab = trouble.nonAdminBackup;
  const owner = trouble.location?.namespace ?? 'team-a';
  return scene({
    backups: [inOwnLocation(trouble.backup ?? {}), ...(trouble.rival === true ? [rival] : [])],
    storageLocations: [ownedStorageLocation(trouble.location)],
    locationOwners: trouble.locationOwner === 'gone' ? [] : [nonAdminStorageLocation({ namespace: owner })],
    namespaces: trouble.namespace === 'missing' ? [] : [namespaceObject({ ...trouble.namespace, name: namespace })],
    nonAdminBackups:
      nab === undefined
        ? []
        : [nab === 'bare' ? bareNonAdminBackup({ namespace }) : nonAdminBackup({ ...nab, namespace })],
    selector: () => trouble.notSelected !== true,
  });
}

describe('each reason', () => {
  test('has its trouble here', () => {
    expect(troubles.map(([reason]) => reason).sort()).toEqual([...refusalReasons, ...decisionReasons].sort());
  });

  test.each(troubles)('%s is given for its trouble alone, with its own action and one sentence', (reason, trouble) => {
    const decision = sceneOf(trouble).decision();
    expect(decision).toMatchObject({ reason, action: actionOf[reason] });
    expect(decision.message).toMatch(/^[A-Z].*\.$/);
  });

  test.each(troubles)('%s is refused when indexed if it stems from rules 1 to 8, and only then', (reason, trouble) => {
    const { state, decision } = sceneOf(trouble);
    const refused = new Set<string>(refusalReasons).has(reason);
    expect(state.refused().get('team-a-daily-1')).toEqual(refused ? decision() : undefined);
  });
});

describe('of two rules that both have something to say, the earlier decides', () => {
  const pairs = troubles.flatMap(([earlier, a], index) =>
    troubles
      .slice(index + 1)
      .filter(([, b]) => !excludeEachOther(a, b))
      .map(([later, b]) => [earlier, later, both(a, b)] as const),
  );

  test.each(pairs)('%s before %s', (earlier, _, trouble) => {
    expect(sceneOf(trouble).decision().reason).toBe(earlier);
  });
});

describe('the trail of rules', () => {
  const rules = [...claimRules, ...readinessRules, ...targetRules];

  test('has eighteen rules, each with a question of its own', () => {
    expect(rules).toHaveLength(18);
    expect(new Set(rules.map(({ asks }) => asks)).size).toBe(18);
  });

  test.each(troubles)('ends where %s was decided: all before passed, all behind were not reached', (_, trouble) => {
    const { trail } = sceneOf(trouble);
    const steps = trail();
    const decided = steps.findIndex(({ outcome }) => outcome === 'decided');
    expect(steps.map(({ rule }) => rule)).toEqual(rules.map((_rule, index) => index + 1));
    expect(steps.map(({ asks }) => asks)).toEqual(rules.map(({ asks }) => asks));
    expect(steps.slice(0, decided).every(({ outcome }) => outcome === 'passed')).toBe(true);
    expect(steps.slice(decided + 1)).toEqual(
      rules
        .slice(decided + 1)
        .map(({ asks }, index) => ({ rule: decided + 2 + index, asks, outcome: 'notReached', values: {} })),
    );
  });

  test.each([
    [1, 'InvalidOrigin', { nacuuid: 'team-a-daily-1', namespace: 'team-a', name: 'Daily' }],
    [2, 'IdentityMismatch', { backup: 'team-a-daily-1', nacuuid: 'copied' }],
    [
      3,
      'ProtectedNamespace',
      { namespace: 'kube-system', oadpNamespace: 'openshift-adp', protected: 'kube-*, openshift-*, openshift' },
    ],
    [4, 'UnknownStorageLocation', { storageLocation: 'unknown', exists: 'false' }],
    [5, 'UnwatchedStorageLocation', { default: 'false', owner: 'unclear', named: '' }],
    [6, 'StorageLocationOwnerGone', { owner: 'team-a/bucket', exists: 'false', deleting: '-', sameNacuuid: '-' }],
    [7, 'StorageLocationOwnerMismatch', { ownerNamespace: 'team-z', namespace: 'team-a' }],
    [8, 'ForeignContent', { includedNamespaces: '1', first: '*', namespace: 'team-a' }],
    [9, 'BeingDeleted', { deletionTimestamp: 'true', phase: 'Completed', unfinishedRequests: '0' }],
    [10, 'NotFinished', { phase: 'InProgress', completed: '2026-01-14T12:00:00Z' }],
    [11, 'Expired', { expiration: '2026-01-15T11:59:59Z', now: '2026-01-15T12:00:00Z', readOnlyLocation: 'false' }],
    [12, 'NamespaceMissing', { exists: 'false', terminating: '-', selected: '-' }],
    [
      13,
      'StatusMissing',
      { synced: 'true', statusEmpty: 'true', backupNotFound: 'false', deleting: 'false', deleteBackup: 'false' },
    ],
    [14, 'Present', { exists: 'true', sameNacuuid: 'true' }],
    [
      15,
      'LocationSyncing',
      { available: 'true', lastSynced: '2026-01-15T11:59:00Z', backupCreated: '2026-01-15T11:59:59Z' },
    ],
    [16, 'Superseded', { completed: '2026-01-14T12:00:00Z', newest: 'rival', newestCompleted: '2026-01-15T11:00:00Z' }],
    [17, 'NameTaken', { taken: 'true' }],
    [18, 'Missing', {}],
  ])('rule %i shows what it looked at when it decides %s', (rule, reason, values) => {
    const trouble = troubles.find(([candidate]) => candidate === reason)?.[1] ?? {};
    expect(sceneOf(trouble).trail()[rule - 1]).toMatchObject({ rule, outcome: 'decided', values });
  });

  test('of a backup that nothing speaks against shows what every rule looked at', () => {
    const steps = sceneOf({}).trail();
    expect(steps[5]?.values).toEqual({
      owner: 'team-a/bucket',
      exists: 'true',
      deleting: 'false',
      sameNacuuid: 'true',
    });
    expect(steps[4]?.values).toEqual({ default: 'false', owner: 'team-a/bucket', named: '' });
    expect(steps[6]?.values).toEqual({ ownerNamespace: 'team-a', namespace: 'team-a' });
    expect(steps.slice(0, 17).every(({ values }) => Object.keys(values).length > 0)).toBe(true);
  });

  test.each([
    ['has its NACUUID', 'team-a-bucket-1', 'true'],
    ['has none yet', '', 'true'],
    ['has another', 'team-a-bucket-2', 'false'],
  ])('says of a NABSL that %s whether it is the one that the location was made for', (_, nacuuid, same) => {
    const { trail } = scene({
      backups: [veleroBackup({ spec: { storageLocation: 'team-a-bucket-1' } })],
      storageLocations: [ownedStorageLocation()],
      locationOwners: [nonAdminStorageLocation({ nacuuid })],
    });
    expect(trail()[5]?.values).toMatchObject({ exists: 'true', deleting: 'false', sameNacuuid: same });
  });

  test('counts the delete requests that Velero is not through with', () => {
    const deleteRequests = [
      deleteRequest({ name: 'one', status: { phase: 'Processed' } }),
      deleteRequest({ name: 'two', status: { phase: 'InProgress' } }),
      deleteRequest({ name: 'three' }),
    ];
    expect(scene({ deleteRequests }).trail()[8]?.values).toMatchObject({ unfinishedRequests: '2' });
  });

  test('shows times that are not there as none', () => {
    const backup = veleroBackup({ metadata: { creationTimestamp: undefined }, status: { expiration: undefined } });
    const storageLocations = [storageLocation({ status: { lastSyncedTime: undefined } })];
    const steps = scene({ backups: [backup], storageLocations }).trail();
    expect(steps[10]?.values).toMatchObject({ expiration: 'none' });
    expect(steps[14]?.values).toEqual({ available: 'true', lastSynced: 'none', backupCreated: 'none' });
  });

  test('says of an admin’s location that it has no owner', () => {
    const steps = scene().trail();
    expect(steps[4]?.values).toEqual({ default: 'true', owner: 'admin', named: '' });
    expect(steps[5]?.values).toEqual({ owner: 'none: the location is the admin’s' });
    expect(steps[6]?.values).toMatchObject({ ownerNamespace: 'none: the location is the admin’s' });
  });

  test('shows nothing of a forged value that is not printable', () => {
    const backup = veleroBackup({ name: `\u202e\u0000${'x'.repeat(1000)}` });
    const [first] = scene({ backups: [backup] }).trail();
    expect(first?.values['name']).toMatch(/^\\u\{202e\}\\u\{0\}x+…$/);
    expect(first?.values['name']?.length).toBeLessThan(150);
  });
});
