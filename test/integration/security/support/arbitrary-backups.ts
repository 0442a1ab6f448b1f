import fc from 'fast-check';
import type { JsonObject } from '../../../../src/kube/resource.ts';
import type { LiveObjects } from '../../../support/gen/live-objects.ts';

/** What a forger can choose from. */
export interface ForgersWorld {
  /** Namespaces that he would like to get into, and some that are his. */
  readonly namespaces: readonly string[];
  /** Storage locations, existing or not. */
  readonly locations: readonly string[];
  /** Where the backups of a namespace lie as a rule; `default` for those not named. */
  readonly homes: Readonly<Record<string, string>>;
  /** Names of NABs over which backups meet. */
  readonly names: readonly string[];
}

/** Texts that broke something, somewhere, some time. */
const evilTexts = [
  '',
  '.',
  '..',
  '../../api/v1/namespaces/kube-system',
  '%2e%2e%2f',
  'a/b',
  'a%2Fb',
  'x?dryRun=All',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'toString',
  'null',
  'undefined',
  '[object Object]',
  '0',
  '-',
  '*',
  'a'.repeat(63),
  'a'.repeat(64),
  'a'.repeat(253),
  'a'.repeat(254),
  'a'.repeat(20_000),
  'A',
  'ünïcödé',
  '\u202edaily',
  'daily\u0000',
  'daily\n',
  '\u001b[2J',
  '🔥',
  '{"$ne":null}',
] as const;

const evilText = fc.oneof(
  fc.constantFrom(...evilTexts),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 80 }),
);

const times = [
  '0001-01-01T00:00:00Z',
  '1969-12-31T23:59:59Z',
  '2026-01-01T00:00:00Z',
  '2026-01-01t00:00:00z',
  '2026-02-29T00:00:00.999999999+23:59',
  '9999-12-31T23:59:59Z',
  '9999-12-31T23:59:59-23:59',
] as const;
/** Undefined: left out. */
const time = fc.constantFrom<(string | null | undefined)[]>(...times, null, undefined);

const phases = [
  'New',
  'Queued',
  'ReadyToStart',
  'FailedValidation',
  'InProgress',
  'WaitingForPluginOperations',
  'Finalizing',
  'FinalizingPartiallyFailed',
  'Deleting',
] as const;

/** Any JSON object that fits where the schema has a map of texts, keys and all. */
const texts = fc.dictionary(
  fc.oneof(fc.constantFrom('__proto__', 'constructor', 'prototype', '', 'a.b[0]'), fc.string({ maxLength: 12 })),
  fc.oneof(evilText, fc.constant('x'.repeat(100_000))),
  { maxKeys: 6, noNullPrototype: true },
);

const hook = fc.record({
  name: evilText,
  includedNamespaces: fc.constantFrom(null, [], ['*'], ['kube-system']),
  labelSelector: fc.constantFrom(null, {}, { matchLabels: { __proto__: 'x' } }),
  pre: fc.array(fc.record({ exec: fc.record({ command: fc.array(evilText, { minLength: 1, maxLength: 3 }) }) }), {
    maxLength: 3,
  }),
});

/** What a spec may have beside the parts that decide. */
const bulk: fc.Arbitrary<JsonObject> = fc.record(
  {
    orderedResources: fc.oneof(fc.constant(null), texts),
    metadata: fc.oneof(fc.constant(null), fc.record({ labels: texts })),
    labelSelector: fc.constantFrom(null, {}, { matchLabels: null }, { matchExpressions: [] }),
    hooks: fc.oneof(fc.constant(null), fc.constant({}), fc.record({ resources: fc.array(hook, { maxLength: 4 }) })),
    excludedNamespaces: fc.constantFrom(null, [], ['*']),
    includeClusterResources: fc.constantFrom(null, true, false),
    ttl: fc.oneof(fc.constant(null), evilText),
    resourcePolicy: fc.constantFrom(null, { kind: '', name: '' }),
    ofTheFuture: fc.jsonValue({ maxDepth: 8 }).map((value) => ({ value })),
  },
  { requiredKeys: [] },
);

/** Mostly as the non-admin controller writes it, with one or a few things that are not. */
export function hostileBackup(gen: LiveObjects, world: ForgersWorld): fc.Arbitrary<JsonObject> {
  const mostly = <T>(usual: fc.Arbitrary<T>, other: fc.Arbitrary<T>, weight = 6): fc.Arbitrary<T> =>
    fc.oneof({ arbitrary: usual, weight }, { arbitrary: other, weight: 1 });
  return fc
    .record({
      id: fc.uuid(),
      namespace: fc.constantFrom(...world.namespaces),
      name: fc.oneof(fc.constantFrom(...world.names), fc.uuid()),
      claimedNamespace: mostly(fc.constant<string | undefined>('as it is'), fc.option(evilText, { nil: undefined })),
      claimedName: mostly(fc.constant<string | undefined>('as it is'), fc.option(evilText, { nil: undefined })),
      label: mostly(fc.constant<string | undefined>('as it is'), fc.option(fc.uuid(), { nil: undefined })),
      included: mostly(
        fc.constant<unknown>('as it is'),
        fc.oneof(
          fc.constantFrom<unknown>(null, [], ['*'], ['']),
          fc.subarray([...world.namespaces], { minLength: 1, maxLength: 3 }),
        ),
      ),
      location: mostly(fc.constant('home'), fc.constantFrom(...world.locations), 2),
      phase: mostly(fc.constantFrom<string>('Completed', 'PartiallyFailed', 'Failed'), fc.constantFrom(...phases)),
      completionTimestamp: mostly(fc.constant('2026-01-01T00:00:00Z'), time),
      expiration: mostly(fc.constantFrom(undefined, '9999-12-31T23:59:59Z'), time),
      bulk,
      status: mostly(
        fc.constant<JsonObject>({}),
        fc.constantFrom<JsonObject>({ progress: null }, { hookStatus: null }),
      ),
      annotations: fc.constantFrom<JsonObject>({}, { constructor: 'x' }, { 'example.com/bulk': 'y'.repeat(60_000) }),
    })
    .map((made) => {
      const { id, namespace, name, claimedNamespace, claimedName, label, included, phase } = made;
      return gen.backup({
        namespace,
        name,
        nacuuid: id,
        ...(label === 'as it is' ? {} : { labels: { 'openshift.io/oadp-nab-origin-nacuuid': label } }),
        annotations: {
          ...made.annotations,
          ...(claimedNamespace === 'as it is' ? {} : { 'openshift.io/oadp-nab-origin-namespace': claimedNamespace }),
          ...(claimedName === 'as it is' ? {} : { 'openshift.io/oadp-nab-origin-name': claimedName }),
        },
        spec: {
          ...made.bulk,
          storageLocation: made.location === 'home' ? (world.homes[namespace] ?? 'default') : made.location,
          ...(included === 'as it is' ? {} : { includedNamespaces: included }),
        },
        status: {
          ...made.status,
          phase,
          completionTimestamp: made.completionTimestamp,
          expiration: made.expiration,
        },
      });
    });
}
