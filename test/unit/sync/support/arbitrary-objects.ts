import fc from 'fast-check';
import { isJsonObject } from '../../../../src/kube/json.ts';
import type { JsonObject } from '../../../../src/kube/resource.ts';
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
  oadpNamespace,
  ownedStorageLocation,
  second,
  storageLocation,
  veleroBackup,
} from '../../../support/gen/api-objects.ts';

/** The kinds that decisions rest on, and a way to make objects of each. */
export interface Arbitraries {
  readonly backup: fc.Arbitrary<JsonObject>;
  readonly storageLocation: fc.Arbitrary<JsonObject>;
  readonly locationOwner: fc.Arbitrary<JsonObject>;
  readonly deleteRequest: fc.Arbitrary<JsonObject>;
  readonly namespace: fc.Arbitrary<JsonObject>;
  readonly nonAdminBackup: fc.Arbitrary<JsonObject>;
}

/** So few names that objects meet, and identities that can be found again in any text. */
const namespaces = ['team-a', 'team-b', 'kube-system', oadpNamespace] as const;
const names = ['daily', 'weekly'] as const;
export const nacuuids = ['id-one-1', 'id-two-2', 'id-three-3', 'id-four-4', 'id-five-5', 'id-six-6'] as const;
const locations = ['default', 'bucket-a', 'bucket-b', 'extra'] as const;
const ownerNacuuids = ['owner-old-1', 'owner-new-2'] as const;

/** Nine times out of ten the first: an object has many fields, and few objects may have more than one trouble. */
function mostly<T>(usual: T, ...others: T[]): fc.Arbitrary<T> {
  return fc.oneof({ arbitrary: fc.constant(usual), weight: 9 }, fc.constantFrom(...others));
}

/** Where the backups of a namespace lie, as a rule. */
const homes: Readonly<Record<string, string>> = { 'team-a': 'default', 'team-b': 'bucket-b' };
const inNamespace = fc.oneof(
  { arbitrary: fc.constantFrom('team-a', 'team-b'), weight: 9 },
  fc.constantFrom(...namespaces),
);
const nacuuid = fc.constantFrom(...nacuuids);
const terminating = mostly<JsonObject>({}, { deletionTimestamp: at(0) });

/** Objects as they come in practice, in troubled times: well-formed, but at odds with each other in every way. */
export const lifelike: Arbitraries = {
  backup: fc
    .record({
      nacuuid,
      namespace: inNamespace,
      name: mostly<string>('daily', 'weekly', 'Daily'),
      label: mostly<string>('own', ...nacuuids),
      included: mostly<string[] | 'own'>('own', [], ['*'], ['team-a'], ['team-a', 'team-b']),
      location: mostly<string>('home', ...locations, 'unknown'),
      creationTimestamp: fc.constantFrom(at(-hour), at(-hour), at(-minute), at(-30 * second), at(0)),
      completionTimestamp: fc.constantFrom(at(-2 * day), at(-day), at(-day)),
      expiration: mostly<string | undefined>(at(day), undefined, at(-second), at(0)),
      phase: mostly('Completed', 'PartiallyFailed', 'Failed', 'InProgress', 'Deleting'),
      metadata: terminating,
      resourceVersion: fc.constantFrom('1', '2'),
    })
    .map((made) => {
      const { nacuuid: id, namespace, name, included, location, label } = made;
      const { creationTimestamp, completionTimestamp, expiration, phase, metadata, resourceVersion } = made;
      return veleroBackup({
        nacuuid: id,
        namespace,
        name,
        metadata: { ...metadata, creationTimestamp, resourceVersion },
        ...(label === 'own' ? {} : { labels: { 'openshift.io/oadp-nab-origin-nacuuid': label } }),
        spec: {
          storageLocation: location === 'home' ? homes[namespace] : location,
          ...(included === 'own' ? {} : { includedNamespaces: included }),
        },
        status: { phase, completionTimestamp, expiration },
      });
    }),
  // Of each location a usual form that comes again and again, so that often nothing but its stamp changes.
  storageLocation: fc
    .record({
      name: fc.constantFrom(...locations),
      owner: mostly('usual', 'none', 'team-a', 'team-b', 'partial'),
      ownerNacuuid: mostly<string>(...ownerNacuuids),
      isDefault: mostly('usual', 'yes', 'no'),
      accessMode: mostly('ReadWrite', 'ReadOnly'),
      phase: mostly('Available', 'Unavailable'),
      lastSyncedTime: fc.constantFrom(undefined, at(-hour), at(-minute), at(-10 * second), at(0)),
    })
    .map(({ name, owner, ownerNacuuid, isDefault, accessMode, phase, lastSyncedTime }) => {
      const shape = {
        name,
        spec: { default: isDefault === 'usual' ? name === 'default' : isDefault === 'yes', accessMode },
        status: { phase, lastSyncedTime },
      };
      const usualOwner = name === 'bucket-a' ? 'team-a' : name === 'bucket-b' ? 'team-b' : 'none';
      const namespace = owner === 'usual' ? usualOwner : owner;
      if (namespace === 'none') return storageLocation(shape);
      const labels = owner === 'partial' ? { 'openshift.io/oadp': undefined } : {};
      return ownedStorageLocation({ ...shape, namespace, ownerNacuuid, labels });
    }),
  locationOwner: fc
    .record({
      namespace: fc.constantFrom('team-a', 'team-b'),
      nacuuid: mostly<string>(...ownerNacuuids, ''),
      metadata: terminating,
    })
    .map((shape) => nonAdminStorageLocation(shape)),
  deleteRequest: fc
    .record({
      name: fc.constantFrom('r1', 'r2', 'r3'),
      backupName: nacuuid,
      status: fc.constantFrom({}, { phase: 'InProgress' }, { phase: 'Processed', errors: ['locked'] }),
    })
    .map((shape) => deleteRequest(shape)),
  namespace: fc
    .record({
      name: inNamespace,
      metadata: terminating,
      labels: mostly<JsonObject>({}, { selected: 'no' }),
      resourceVersion: fc.constantFrom('1', '2'),
    })
    .map(({ resourceVersion, metadata, ...shape }) =>
      namespaceObject({ ...shape, metadata: { ...metadata, resourceVersion } }),
    ),
  nonAdminBackup: fc
    .record({
      namespace: inNamespace,
      name: fc.constantFrom(...names),
      id: nacuuid,
      reference: mostly<'own' | 'none' | 'other'>('own', 'none', 'other'),
      label: mostly<'own' | 'none' | 'other'>('own', 'none', 'other'),
      metadata: terminating,
      spec: mostly<JsonObject>({}, { deleteBackup: true }),
      status: fc.constantFrom('usual', 'stale', 'none'),
    })
    .map(({ id, reference, label, status, ...rest }) => {
      const written = { own: id, other: nacuuids[0], none: undefined };
      const syncedFrom = written[label];
      const shape = { ...rest, ...(syncedFrom === undefined ? {} : { syncedFrom }) };
      if (status === 'none') return bareNonAdminBackup({ ...shape, syncedFrom: syncedFrom ?? id });
      const conditions = status === 'stale' ? { status: { conditions: [backupNotFound] } } : {};
      return nonAdminBackup({ ...shape, nacuuid: written[reference], ...conditions });
    }),
};

const keys = fc.oneof(
  fc.constantFrom('__proto__', 'constructor', 'prototype', 'toString', 'length', 'metadata', 'labels', 'status', ''),
  fc.string({ maxLength: 6 }),
);

/** Any JSON at all, and texts in particular that somebody could mean harm with. */
const anyJson: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<unknown>(null, true, false, 0, -1, 1e300, '', [], {}),
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.constantFrom('\u001b[2J', '\u202eevil', '__proto__', 'x'.repeat(70_000), at(0), 'team-a', 'Deleting', '*'),
    ),
    fc.double(),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(keys, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value;

type Path = readonly (string | number)[];

function pathsIn(value: unknown, path: Path = []): Path[] {
  const below = Array.isArray(value)
    ? value.flatMap((element: unknown, index) => pathsIn(element, [...path, index]))
    : isJsonObject(value)
      ? Object.entries(value).flatMap(([key, member]) => pathsIn(member, [...path, key]))
      : [];
  return [path, ...below];
}

/** A copy with another value at a path. */
function replaced(value: unknown, [key, ...rest]: Path, by: unknown): unknown {
  if (key === undefined) return by;
  if (Array.isArray(value)) {
    return value.map((element: unknown, index) => (index === key ? replaced(element, rest, by) : element));
  }
  if (!isJsonObject(value)) return value;
  const member = replaced(value[key], rest, by);
  return Object.fromEntries(Object.entries(value).map(([name, old]) => [name, name === key ? member : old]));
}

/** A lifelike object in which values at some places are anything; what is no object any more is an empty one. */
function mangled(object: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> {
  return fc.tuple(object, fc.array(fc.tuple(fc.nat(), anyJson), { maxLength: 3 })).map(([original, changes]) => {
    let result: unknown = original;
    for (const [where, by] of changes) {
      const paths = pathsIn(result);
      result = replaced(result, paths[where % paths.length] ?? [], by);
    }
    return isJsonObject(result) ? result : {};
  });
}

/** What is there before anything happens, so that backups have a place to come back to. */
export const furniture = {
  storageLocation: [
    storageLocation(),
    ownedStorageLocation({ name: 'bucket-a', namespace: 'team-a', ownerNacuuid: ownerNacuuids[0] }),
    ownedStorageLocation({ name: 'bucket-b', namespace: 'team-b', ownerNacuuid: ownerNacuuids[0] }),
    storageLocation({ name: 'extra', spec: { default: false } }),
  ],
  locationOwner: ['team-a', 'team-b'].map((namespace) =>
    nonAdminStorageLocation({ namespace, nacuuid: ownerNacuuids[0] }),
  ),
  namespace: ['team-a', 'team-b'].map((name) => namespaceObject({ name })),
};

/** Broken and malicious objects. */
export const hostile: Arbitraries = {
  backup: mangled(lifelike.backup),
  storageLocation: mangled(lifelike.storageLocation),
  locationOwner: mangled(lifelike.locationOwner),
  deleteRequest: mangled(lifelike.deleteRequest),
  namespace: mangled(lifelike.namespace),
  nonAdminBackup: mangled(lifelike.nonAdminBackup),
};
