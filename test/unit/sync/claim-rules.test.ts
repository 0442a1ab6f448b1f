import { describe, expect, test } from 'vitest';
import {
  at,
  minute,
  nonAdminStorageLocation,
  ownedStorageLocation,
  oadpNamespace,
  storageLocation,
  veleroBackup,
} from '../../support/gen/api-objects.ts';
import { matchesPattern } from '../../../src/sync/rules.ts';
import { scene, type SceneObjects } from './support/scene.ts';

/** Rules 1 to 8: can the Backup prove that it belongs where it says? */

const nacuuidLabel = 'openshift.io/oadp-nab-origin-nacuuid';
const nameAnnotation = 'openshift.io/oadp-nab-origin-name';
const namespaceAnnotation = 'openshift.io/oadp-nab-origin-namespace';

/** A Backup in the tenant's own location, with the location and its owner. */
function inOwnLocation(objects: SceneObjects = {}): SceneObjects {
  return {
    backups: [veleroBackup({ spec: { storageLocation: 'team-a-bucket-1' } })],
    storageLocations: [ownedStorageLocation()],
    locationOwners: [nonAdminStorageLocation()],
    ...objects,
  };
}

test('a genuine backup whose NAB is missing is created', () => {
  expect(scene().decision()).toMatchObject({ action: 'create', reason: 'Missing' });
});

describe('InvalidOrigin: a Backup must say, in legal names, which NAB it was made from', () => {
  test.each([
    ['without labels', { metadata: { labels: undefined } }, 'it has no NACUUID label'],
    ['with null for labels', { metadata: { labels: null } }, 'it has no NACUUID label'],
    ['without the NACUUID label', { labels: { [nacuuidLabel]: undefined } }, 'it has no NACUUID label'],
    ['with an empty NACUUID', { labels: { [nacuuidLabel]: '' } }, 'it has no NACUUID label'],
    ['without annotations', { metadata: { annotations: undefined } }, 'it has no origin namespace annotation'],
    ['with null for annotations', { metadata: { annotations: null } }, 'it has no origin name annotation'],
    ['without the origin namespace', { annotations: { [namespaceAnnotation]: undefined } }, 'no origin namespace'],
    ['with an empty origin namespace', { annotations: { [namespaceAnnotation]: '' } }, 'no origin namespace'],
    ['without the origin name', { annotations: { [nameAnnotation]: undefined } }, 'it has no origin name annotation'],
    ['with an empty origin name', { annotations: { [nameAnnotation]: '' } }, 'it has no origin name annotation'],
    ['with a number for origin name', { annotations: { [nameAnnotation]: 7 } }, 'it has no origin name annotation'],
  ])('%s it does not', (_, shape, problem) => {
    const decision = scene({ backups: [veleroBackup(shape)] }).decision();
    expect(decision).toMatchObject({ action: 'skip', reason: 'InvalidOrigin' });
    expect(decision.message).toContain(problem);
  });

  test('all problems of an origin are named at once', () => {
    const backup = veleroBackup({ nacuuid: '-', namespace: 'Team-A', name: 'a..b' });
    expect(scene({ backups: [backup] }).decision().message).toBe(
      'The Backup does not say legally where it came from: its NACUUID "-" is not a label value; ' +
        'its origin namespace "Team-A" is not a DNS label; its origin name "a..b" is not a DNS subdomain.',
    );
  });

  test.each([['a'], ['7'], ['a'.repeat(63)], ['team--a']])('%s is a legal origin namespace', (namespace) => {
    expect(scene({ backups: [veleroBackup({ namespace })] }).decision().reason).toBe('NamespaceMissing');
  });

  test.each([
    ['64 characters long', 'a'.repeat(64)],
    ['80 characters long', 'a'.repeat(80)],
    ['with a capital', 'Team-a'],
    ['with a dot', 'team.a'],
    ['with a slash', 'team-a/other'],
    ['with an underscore', 'team_a'],
    ['that begins with a dash', '-team'],
    ['that ends with a dash', 'team-'],
    ['with a space', 'team a'],
    ['with a newline at its end', 'team-a\n'],
    ['with a letter that only looks like a', 'te\u0430m'],
    ['with a full-width letter', '\uff41'],
    ['that climbs the path', '..'],
  ])('an origin namespace %s is refused', (_, namespace) => {
    expect(scene({ backups: [veleroBackup({ namespace })] }).decision().reason).toBe('InvalidOrigin');
  });

  test.each([
    ['of one character', 'a'],
    ['of 253 characters', 'a'.repeat(253)],
    ['of several parts', 'daily.2026-01-15.full'],
    ['with a part above 63 characters, which only namespaces may not have', `${'a'.repeat(64)}.b`],
  ])('an origin name %s is legal', (_, name) => {
    expect(scene({ backups: [veleroBackup({ name })] }).decision().reason).toBe('Missing');
  });

  test.each([
    ['of 254 characters', 'a'.repeat(254)],
    ['of 64 KiB', 'a'.repeat(65_536)],
    ['with a capital', 'Daily'],
    ['with an empty part', 'a..b'],
    ['that ends with a dot', 'daily.'],
    ['that begins with a dot', '.daily'],
    ['with a part that begins with a dash', 'a.-b'],
    ['with a slash', 'a/b'],
    ['with an umlaut', 't\u00e4glich'],
    ['with a newline in it', 'da\nily'],
  ])('an origin name %s is refused', (_, name) => {
    expect(scene({ backups: [veleroBackup({ name })] }).decision().reason).toBe('InvalidOrigin');
  });

  test.each([
    ['of one character', 'x'],
    ['of 63 characters', 'x'.repeat(63)],
    ['with capitals, dots and underscores inside', 'Team_A.daily-1'],
  ])('a NACUUID %s is legal', (_, nacuuid) => {
    expect(scene({ backups: [veleroBackup({ nacuuid })] }).decision().reason).toBe('Missing');
  });

  test.each([
    ['of 64 characters', 'x'.repeat(64)],
    ['that ends with a dash', 'abc-'],
    ['that begins with an underscore', '_abc'],
    ['with a slash', 'a/b'],
    ['with a space', 'a b'],
    ['with an umlaut', 'b\u00fc'],
  ])('a NACUUID %s is refused', (_, nacuuid) => {
    expect(scene({ backups: [veleroBackup({ nacuuid })] }).decision().reason).toBe('InvalidOrigin');
  });

  test('what a forger wrote is shown cut and escaped, never as it is', () => {
    const namespace = `\u001b[31m\u202e"${'x'.repeat(100_000)}`;
    const { message } = scene({ backups: [veleroBackup({ namespace })] }).decision();
    expect(message).toContain('its origin namespace "\\u{1b}[31m\\u{202e}\\"xxx');
    expect(message.length).toBeLessThan(400);
  });
});

describe('IdentityMismatch: a Backup is named like its NACUUID', () => {
  test.each([
    ['a copy of another backup’s NACUUID', 'team-b-daily-1'],
    ['its own name in other case', 'Team-a-daily-1'],
    ['its own name and something behind it', 'team-a-daily-1-x'],
  ])('%s is refused, for the NAC finds Backups by it', (_, nacuuid) => {
    const decision = scene({ backups: [veleroBackup({ labels: { [nacuuidLabel]: nacuuid } })] }).decision();
    expect(decision).toMatchObject({ action: 'skip', reason: 'IdentityMismatch' });
    expect(decision.message).not.toContain(nacuuid);
  });
});

describe('ProtectedNamespace: the OADP namespace and the protected ones never get a NAB', () => {
  test.each([oadpNamespace, 'openshift', 'openshift-monitoring', 'kube-system', 'kube-', 'openshift-'])(
    'not even namespace %s',
    (namespace) => {
      // A name that ends with a dash is illegal and refused for that.
      const reason = namespace.endsWith('-') ? 'InvalidOrigin' : 'ProtectedNamespace';
      expect(scene({ backups: [veleroBackup({ namespace })] }).decision()).toMatchObject({ action: 'skip', reason });
    },
  );

  test('the OADP namespace is protected by itself, whatever the patterns', () => {
    const policy = { oadpNamespace: 'velero', protectedNamespaces: [] };
    const decision = scene({ backups: [veleroBackup({ namespace: 'velero' })], policy }).decision();
    expect(decision.reason).toBe('ProtectedNamespace');
    expect(decision.message).toBe('Namespace "velero" is the OADP namespace itself.');
  });

  test('the message names the pattern', () => {
    expect(scene({ backups: [veleroBackup({ namespace: 'kube-system' })] }).decision().message).toBe(
      'Namespace "kube-system" is protected by the pattern "kube-*".',
    );
  });

  test.each(['kubernetes', 'my-openshift', 'openshiftx', 'team-kube-system'])(
    'namespace %s only looks like a protected one',
    (namespace) => {
      expect(scene({ backups: [veleroBackup({ namespace })] }).decision().reason).toBe('NamespaceMissing');
    },
  );

  test.each([
    ['team', 'team', true],
    ['team', 'team-a', false],
    ['team', 'a-team', false],
    ['', 'team', false],
    ['*', 'team', true],
    ['*', '', true],
    ['**', 'team', true],
    ['team-*', 'team-', true],
    ['team-*', 'team-a', true],
    ['team-*', 'team', false],
    ['*-system', 'kube-system', true],
    ['*-system', '-system', true],
    ['*-system', 'kube-system-x', false],
    ['a*z', 'az', true],
    ['a*z', 'abcz', true],
    ['a*z', 'a', false],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['ab*ba', 'aba', false],
    ['a*b*c', 'abc', true],
    ['a*b*c', 'axxbxxc', true],
    ['a*b*c', 'acb', false],
    ['a*b*c', 'ac', false],
    ['a*b*b', 'ab', false],
    ['a*bc*bc', 'abcbc', true],
    ['a*bc*bc', 'abc', false],
    ['*a*', 'bab', true],
    ['*a*', 'bbb', false],
    ['*ab*ab*', 'abab', true],
    ['*ab*ab*', 'aba', false],
    ['te.m', 'team', false],
    ['[a-z]+', 'team', false],
  ])('the pattern "%s" and namespace "%s": %s', (pattern, namespace, matches) => {
    expect(matchesPattern(pattern, namespace)).toBe(matches);
  });

  test('a pattern made to make matching slow is matched at once', () => {
    const began = performance.now();
    expect(matchesPattern(`${'a*'.repeat(30)}b`, 'a'.repeat(63))).toBe(false);
    expect(performance.now() - began).toBeLessThan(100);
  });
});

describe('UnknownStorageLocation: the storage location of a Backup exists', () => {
  test('a location that is not there', () => {
    const decision = scene({ storageLocations: [storageLocation({ name: 'other' })] }).decision();
    expect(decision).toMatchObject({ action: 'skip', reason: 'UnknownStorageLocation' });
    expect(decision.message).toBe('There is no BackupStorageLocation "default" in the OADP namespace.');
  });

  test.each([undefined, null, '', 5, ['default'], {}])('a Backup that names none, but %j', (storageLocation) => {
    const decision = scene({ backups: [veleroBackup({ spec: { storageLocation } })] }).decision();
    expect(decision).toMatchObject({ action: 'skip', reason: 'UnknownStorageLocation' });
    expect(decision.message).toBe('The Backup names no storage location.');
  });

  test('a list without any location refuses all and removes nothing', () => {
    expect(scene({ storageLocations: [] }).decision().action).toBe('skip');
  });

  test('a name that every JavaScript object knows is no location', () => {
    const backup = veleroBackup({ spec: { storageLocation: '__proto__' } });
    expect(scene({ backups: [backup] }).decision().reason).toBe('UnknownStorageLocation');
  });
});

describe('UnwatchedStorageLocation: it is a default one, one that the admin named, or a tenant’s own', () => {
  test('an admin’s location that is neither', () => {
    const decision = scene({ storageLocations: [storageLocation({ spec: { default: false } })] }).decision();
    expect(decision).toMatchObject({ action: 'skip', reason: 'UnwatchedStorageLocation' });
    expect(decision.message).toContain('not a default one, not named by --storage-location and not owned by a tenant');
  });

  test.each([undefined, null, 'true', 1])('%j is not what makes a location a default one', (value) => {
    const storageLocations = [storageLocation({ spec: { default: value } })];
    expect(scene({ storageLocations }).decision().reason).toBe('UnwatchedStorageLocation');
  });

  test('one that the admin named by --storage-location, for instance the default of yesterday', () => {
    const storageLocations = [storageLocation({ spec: { default: false } })];
    const named = { storageLocations: ['other', 'default'] };
    expect(scene({ storageLocations, policy: named }).decision().reason).toBe('Missing');
  });

  test('of several default ones all count', () => {
    const { decision } = scene({
      backups: [veleroBackup(), veleroBackup({ nacuuid: 'two', name: 'two', spec: { storageLocation: 'second' } })],
      storageLocations: [storageLocation(), storageLocation({ name: 'second' })],
    });
    expect([decision().reason, decision('two').reason]).toEqual(['Missing', 'Missing']);
  });

  test('without any default one the tenants’ own still count', () => {
    expect(scene(inOwnLocation()).decision().reason).toBe('Missing');
  });

  test('a location that is not Available still counts: its backups are known already', () => {
    const storageLocations = [storageLocation({ status: { phase: 'Unavailable' } })];
    expect(scene({ storageLocations }).decision().reason).toBe('Missing');
  });

  describe('marks of a tenant’s location that are there in part make it nobody’s', () => {
    test.each([
      ['no NACUUID label', { labels: { 'openshift.io/oadp-nabsl-origin-nacuuid': undefined } }],
      ['an empty NACUUID label', { labels: { 'openshift.io/oadp-nabsl-origin-nacuuid': '' } }],
      ['no owner namespace', { annotations: { 'openshift.io/oadp-nabsl-origin-namespace': undefined } }],
      ['no owner name', { annotations: { 'openshift.io/oadp-nabsl-origin-name': undefined } }],
      ['an empty owner name', { annotations: { 'openshift.io/oadp-nabsl-origin-name': '' } }],
      ['no annotations', { metadata: { annotations: null } }],
      [
        'only the label of the NAC left',
        { metadata: { annotations: null, labels: { 'app.kubernetes.io/managed-by': 'oadp-nac-controller' } } },
      ],
      [
        'only an empty owner namespace left',
        { metadata: { labels: {}, annotations: { 'openshift.io/oadp-nabsl-origin-namespace': '' } } },
      ],
      ['not managed by the NAC', { labels: { 'app.kubernetes.io/managed-by': 'somebody' } }],
      ['not labelled as OADP’s', { labels: { 'openshift.io/oadp': undefined } }],
      ['labelled as OADP’s in another spelling', { labels: { 'openshift.io/oadp': 'true' } }],
    ])('%s, even if it is a default one and named', (_, shape) => {
      const storageLocations = [ownedStorageLocation({ ...shape, spec: { default: true } })];
      const policy = { storageLocations: ['team-a-bucket-1'] };
      const decision = scene(inOwnLocation({ storageLocations, policy })).decision();
      expect(decision).toMatchObject({ action: 'skip', reason: 'UnwatchedStorageLocation' });
      expect(decision.message).toContain('carries only some of the marks of a tenant’s location');
    });
  });

  test('OADP’s own label alone is on the admin’s locations too', () => {
    const labels = { 'openshift.io/oadp': 'True', 'app.kubernetes.io/managed-by': 'oadp-operator' };
    expect(scene({ storageLocations: [storageLocation({ labels })] }).decision().reason).toBe('Missing');
  });
});

describe('StorageLocationOwnerGone: the tenant’s NABSL is there and is the one the location was made for', () => {
  test('it is', () => {
    expect(scene(inOwnLocation()).decision().reason).toBe('Missing');
  });

  test('it is not there', () => {
    const decision = scene(inOwnLocation({ locationOwners: [] })).decision();
    expect(decision).toMatchObject({ action: 'skip', reason: 'StorageLocationOwnerGone' });
    expect(decision.message).toBe(
      'The owner of BackupStorageLocation "team-a-bucket-1", NonAdminBackupStorageLocation "bucket" in namespace "team-a", does not exist.',
    );
  });

  test('one of the same name in another namespace is another’s', () => {
    const locationOwners = [nonAdminStorageLocation({ namespace: 'team-b' })];
    expect(scene(inOwnLocation({ locationOwners })).decision().reason).toBe('StorageLocationOwnerGone');
  });

  test('it is being deleted, which is as good as gone', () => {
    const locationOwners = [nonAdminStorageLocation({ metadata: { deletionTimestamp: at(-minute) } })];
    const decision = scene(inOwnLocation({ locationOwners })).decision();
    expect(decision.reason).toBe('StorageLocationOwnerGone');
    expect(decision.message).toContain('is being deleted.');
  });

  test('it is a new one of an old name: its status has another NACUUID', () => {
    const locationOwners = [nonAdminStorageLocation({ nacuuid: 'team-a-bucket-2' })];
    const decision = scene(inOwnLocation({ locationOwners })).decision();
    expect(decision.reason).toBe('StorageLocationOwnerGone');
    expect(decision.message).toContain('is a new one of an old name.');
    expect(decision.message).not.toContain('team-a-bucket-2');
  });

  test.each([
    ['no status', { metadata: {}, status: { veleroBackupStorageLocation: undefined } }],
    ['null in its status', { status: { veleroBackupStorageLocation: null } }],
    ['an empty NACUUID in its status', { nacuuid: '' }],
    ['a phase that says it is not approved yet', { status: { phase: 'New' } }],
  ])('it has %s: nothing speaks against it', (_, shape) => {
    const owner = nonAdminStorageLocation({ ...shape, metadata: { name: 'bucket', namespace: 'team-a' } });
    expect(scene(inOwnLocation({ locationOwners: [owner] })).decision().reason).toBe('Missing');
  });

  test('a location that is both default and a tenant’s counts as the tenant’s', () => {
    const storageLocations = [ownedStorageLocation({ spec: { default: true } })];
    expect(scene(inOwnLocation({ storageLocations, locationOwners: [] })).decision().reason).toBe(
      'StorageLocationOwnerGone',
    );
  });

  test('naming a tenant’s location by --storage-location does not make it the admin’s', () => {
    const policy = { storageLocations: ['team-a-bucket-1'] };
    expect(scene(inOwnLocation({ policy, locationOwners: [] })).decision().reason).toBe('StorageLocationOwnerGone');
  });
});

describe('StorageLocationOwnerMismatch: what lies in a tenant’s bucket comes back in his own namespace only', () => {
  /** Tenant A edited the metadata in his bucket, so that the backup claims to be tenant B's. */
  const forged = veleroBackup({ namespace: 'team-b', spec: { storageLocation: 'team-a-bucket-1' } });

  test('a backup in A’s location that claims B’s namespace is refused', () => {
    const decision = scene(inOwnLocation({ backups: [forged] })).decision();
    expect(decision).toMatchObject({ action: 'skip', reason: 'StorageLocationOwnerMismatch' });
    expect(decision.message).toBe(
      'The Backup lies in the storage location of namespace "team-a", but claims to come from namespace "team-b".',
    );
  });

  test.each([
    ['default', { storageLocations: [ownedStorageLocation({ spec: { default: true } })] }],
    ['named by the admin', { policy: { storageLocations: ['team-a-bucket-1'] } }],
  ])('also if the location is %s as well', (_, objects) => {
    expect(scene(inOwnLocation({ backups: [forged], ...objects })).decision().reason).toBe(
      'StorageLocationOwnerMismatch',
    );
  });

  test('also if B has a NABSL of the same name', () => {
    const locationOwners = [nonAdminStorageLocation(), nonAdminStorageLocation({ namespace: 'team-b' })];
    expect(scene(inOwnLocation({ backups: [forged], locationOwners })).decision().reason).toBe(
      'StorageLocationOwnerMismatch',
    );
  });

  test('a namespace whose name begins like A’s is not A’s', () => {
    const backup = veleroBackup({ namespace: 'team-a-2', spec: { storageLocation: 'team-a-bucket-1' } });
    expect(scene(inOwnLocation({ backups: [backup] })).decision().reason).toBe('StorageLocationOwnerMismatch');
  });
});

describe('ForeignContent: a Backup includes its origin namespace and nothing else', () => {
  test.each([
    ['nothing said, which to Velero means everything', undefined, 'no namespace by name'],
    ['null', null, 'no namespace by name'],
    ['an empty list', [], 'no namespace by name'],
    ['a text', 'team-a', 'no namespace by name'],
    ['all', ['*'], 'namespace "*"'],
    ['another one', ['team-b'], 'namespace "team-b"'],
    ['its own and another', ['team-a', 'team-b'], '2 namespaces'],
    ['another and its own', ['team-b', 'team-a'], '2 namespaces'],
    ['its own and all', ['team-a', '*'], '2 namespaces'],
    ['its own twice', ['team-a', 'team-a'], '2 namespaces'],
    ['its own in other case', ['Team-A'], 'namespace "Team-A"'],
    ['its own with a space', ['team-a '], 'namespace "team-a "'],
    ['a pattern that matches its own', ['team-*'], 'namespace "team-*"'],
    ['its own in a list of its own', [['team-a']], 'namespace ""'],
    ['null in the list', [null], 'namespace ""'],
  ])('%s is refused', (_, includedNamespaces, said) => {
    const decision = scene({ backups: [veleroBackup({ spec: { includedNamespaces } })] }).decision();
    expect(decision).toMatchObject({ action: 'skip', reason: 'ForeignContent' });
    expect(decision.message).toBe(`The Backup includes ${said} instead of namespace "team-a" alone.`);
  });

  test.each([
    ['excludedNamespaces, which Velero fills itself', { excludedNamespaces: ['openshift-adp'] }],
    ['cluster-scoped resources, which an admin may enforce', { includeClusterResources: true }],
    ['fields that nobody knows yet', { fromTheFuture: { includedNamespaces: ['*'] } }],
  ])('%s prove nothing', (_, spec) => {
    expect(scene({ backups: [veleroBackup({ spec })] }).decision().reason).toBe('Missing');
  });
});
