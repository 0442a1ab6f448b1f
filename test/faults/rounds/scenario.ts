import fc from 'fast-check';
import type { Fault, FaultRule, Target } from '../fault.ts';

/**
 * Backups by what the rules have to say about them. The first six come back, if nothing else is in their way.
 */
const backupKinds = [
  'completed',
  'partiallyFailed',
  'failed',
  /** Velero has not read its location to the end; it comes back when it has. */
  'settling',
  /** Expired, in a location where Velero never collects. */
  'expiredReadOnly',
  /** Finished by a later action, or never. */
  'inProgress',
  'expired',
  'failedValidation',
  'deleting',
  'deletionRequested',
  /** From here on nothing is ever to come back, whatever happens; but `otherTenants` may get to where it belongs. */
  'otherTenants',
  'copiedNacuuid',
  'protectedNamespace',
  'oadpNamespace',
  'unknownLocation',
  'unwatchedLocation',
  'foreignContent',
  'illegalName',
  'noOrigin',
] as const;

type BackupKind = (typeof backupKinds)[number];

const nabNames = ['daily', 'weekly', 'monthly', 'adhoc'] as const;

export interface BackupSpec {
  readonly kind: BackupKind;
  /** Index of the tenant from whose namespace it claims to come, modulo their number. */
  readonly tenant: number;
  readonly name: (typeof nabNames)[number];
  /** In the tenant's own location instead of the admin's default one. */
  readonly own: boolean;
  /** Minutes since it completed. */
  readonly age: number;
}

/** A NAB that is there before nab-sync is. */
export interface NabSpec {
  /** By its user, with or without a backup yet; or re-created earlier, with or without a status, or with a stale one. */
  readonly kind: 'users' | 'fresh' | 'bare' | 'stale';
  /** Index of the backup whose name it has, and for `bare` and `stale` whose identity. */
  readonly backup: number;
}

export type WorldAction =
  | { readonly do: 'recreateNamespace' | 'deleteNamespace' | 'createNamespace'; readonly tenant: number }
  | { readonly do: 'deleteNab'; readonly backup: number }
  | { readonly do: 'userMakesNab'; readonly backup: number }
  | { readonly do: 'addBackup'; readonly spec: BackupSpec }
  | { readonly do: 'finishBackup' | 'deleteBackup' | 'rereadBackup' | 'requestDeletion'; readonly backup: number }
  /** The location of one tenant becomes that of another; or back again. */
  | { readonly do: 'reownLocation'; readonly tenant: number; readonly to: number }
  /** The tenant's NABSL goes, comes back, or is replaced by a new one of the same name. */
  | { readonly do: 'dropOwner' | 'restoreOwner' | 'replaceOwner'; readonly tenant: number }
  | { readonly do: 'stampLocations' };

export type ServerAction =
  | {
      readonly do: 'kill';
      readonly server: 'kube-apiserver' | 'etcd';
      readonly gracefully: boolean;
      readonly ms: number;
    }
  | { readonly do: 'freeze'; readonly server: 'kube-apiserver' | 'etcd'; readonly ms: number }
  | { readonly do: 'copyEtcd' }
  | { readonly do: 'putEtcdBack'; readonly gracefully: boolean };

export type ReplicaAction =
  | { readonly do: 'kill' | 'restart' | 'freeze'; readonly ms: number }
  | { readonly do: 'fault'; readonly rule: FaultRule; readonly ms: number }
  | { readonly do: 'stall'; readonly ms: number }
  | { readonly do: 'resetAll' }
  | { readonly do: 'rotateToken' }
  | { readonly do: 'expireToken' };

type Action =
  | { readonly on: 'world'; readonly action: WorldAction }
  | { readonly on: 'servers'; readonly action: ServerAction }
  | { readonly on: 'replica'; readonly replica: number; readonly action: ReplicaAction };

/** All that a round does, as data. Indexes count modulo the number of what they choose from. */
export interface Scenario {
  readonly replicas: number;
  readonly leaderElect: boolean;
  /** Seconds; 0 = events only. */
  readonly syncPeriod: number;
  /** Objects a page of a list. Where it is that of the client, the server streams lists instead. */
  readonly pageLimit: number;
  /** Whether nab-sync runs before the world is made. */
  readonly early: boolean;
  readonly tenants: readonly { readonly exists: boolean }[];
  readonly backups: readonly BackupSpec[];
  /** More completed backups of the first tenant, so that a restore takes a while. */
  readonly bulk: number;
  readonly nabs: readonly NabSpec[];
  /** How long things happen, in milliseconds. */
  readonly ms: number;
  readonly steps: readonly { readonly atMs: number; readonly step: Action }[];
  /** Seed of the faults that strike with a probability. */
  readonly chance: number;
}

/** Above what the client ever asks for. */
export const clientPageLimit = 500;

const index = fc.nat(1_000);

/** Values with how often they are taken. */
function weighted<T>(...options: readonly (readonly [weight: number, value: T])[]): fc.Arbitrary<T> {
  return fc.oneof(...options.map(([weight, value]) => ({ weight, arbitrary: fc.constant(value) })));
}

const backupSpec: fc.Arbitrary<BackupSpec> = fc.record({
  kind: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom<BackupKind>('completed', 'partiallyFailed', 'failed') },
    { weight: 2, arbitrary: fc.constantFrom(...backupKinds) },
  ),
  tenant: index,
  name: fc.constantFrom(...nabNames),
  own: fc.boolean(),
  age: fc.integer({ min: 1, max: 10_000 }),
});

const nabSpec: fc.Arbitrary<NabSpec> = fc.record({
  kind: fc.constantFrom('users', 'fresh', 'bare', 'stale'),
  backup: index,
});

const worldAction: fc.Arbitrary<WorldAction> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: weighted<'recreateNamespace' | 'deleteNamespace' | 'createNamespace'>(
        [4, 'recreateNamespace'],
        [1, 'deleteNamespace'],
        [2, 'createNamespace'],
      ),
      tenant: index,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('deleteNab'), backup: index }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('userMakesNab'), backup: index }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('addBackup'), spec: backupSpec }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('finishBackup', 'deleteBackup', 'rereadBackup', 'requestDeletion'),
      backup: index,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('reownLocation'), tenant: index, to: index }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('dropOwner', 'restoreOwner', 'replaceOwner'), tenant: index }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stampLocations') }) },
);

const server = fc.constantFrom('kube-apiserver', 'etcd');

const serverAction: fc.Arbitrary<ServerAction> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('kill'),
      server,
      gracefully: fc.boolean(),
      ms: fc.integer({ min: 0, max: 2_000 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('freeze'), server, ms: fc.integer({ min: 200, max: 4_000 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('copyEtcd') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('putEtcdBack'), gracefully: fc.boolean() }) },
);

const status = (...statuses: number[]): fc.Arbitrary<Fault> =>
  fc.record(
    {
      kind: fc.constant('status'),
      status: fc.constantFrom(...statuses),
      body: fc.constantFrom('status', 'page', 'none'),
      retryAfter: fc.integer({ min: 0, max: 4 }),
    },
    { requiredKeys: ['kind', 'status', 'body'] },
  );

/** Any fault, with what it may be aimed at to make sense. */
const fault: fc.Arbitrary<{ fault: Fault; on: Target }> = (() => {
  const anything = fc.constantFrom<Target>(
    {},
    {},
    { verbs: ['list'] },
    { verbs: ['watch'] },
    { verbs: ['get'] },
    { verbs: ['create'] },
    { verbs: ['update'] },
    { verbs: ['create', 'update', 'patch'] },
    { resources: ['backups'] },
    { resources: ['nonadminbackups'] },
    { resources: ['namespaces'] },
    { resources: ['leases'] },
    { resources: ['events'] },
    { resources: ['backupstoragelocations', 'nonadminbackupstoragelocations'] },
    { subresource: 'status' },
    { laterPage: true },
  );
  const watches = fc.constantFrom<Target>(
    { verbs: ['watch'] },
    { verbs: ['watch'], resources: ['backups'] },
    { verbs: ['watch'], resources: ['nonadminbackups'] },
    { verbs: ['watch'], resources: ['namespaces'] },
    { verbs: ['watch'], resources: ['backupstoragelocations', 'nonadminbackupstoragelocations'] },
  );
  const writes = fc.constantFrom<Target>(
    { verbs: ['create', 'update', 'patch'] },
    { verbs: ['create'], resources: ['nonadminbackups'] },
    { subresource: 'status' },
    { resources: ['leases'] },
    { resources: ['events'] },
  );
  const on = (faults: fc.Arbitrary<Fault>, targets: fc.Arbitrary<Target>, weight = 1) => ({
    weight,
    arbitrary: fc.record({ fault: faults, on: targets }),
  });
  return fc.oneof(
    on(fc.record({ kind: fc.constant('reset'), when: fc.constantFrom('before', 'midAnswer') }), anything, 3),
    on(fc.record({ kind: fc.constant('lostAnswer') }), writes, 3),
    on(fc.record({ kind: fc.constant('halfOpen') }), anything, 2),
    on(fc.record({ kind: fc.constant('slowHeaders'), ms: fc.integer({ min: 50, max: 6_000 }) }), anything),
    on(
      fc.record({
        kind: fc.constant('slowBody'),
        bytes: fc.integer({ min: 20, max: 300 }),
        everyMs: fc.integer({ min: 5, max: 100 }),
      }),
      anything,
    ),
    on(status(408, 429, 500, 503, 504), anything, 4),
    on(
      fc.record({
        kind: fc.constant('nonsense'),
        body: fc.constantFrom(
          '',
          '<html></html>',
          '[]',
          'null',
          '{}',
          '{"kind":"Status","status":"Success"}',
          '{"items":[{}]}',
        ),
      }),
      anything,
    ),
    // Of other kinds it could not be found out before the next list: see docs/adr/0003-fault-proxy.md.
    on(fc.record({ kind: fc.constant('emptyList') }), fc.constant({ resources: ['nonadminbackups'] })),
    on(status(410), fc.constantFrom<Target>({ verbs: ['watch'] }, { laterPage: true }, { verbs: ['list'] }), 2),
    on(fc.record({ kind: fc.constant('truncatedEvent') }), watches),
    on(
      fc.record({
        kind: fc.constant('garbageLine'),
        line: fc.constantFrom(
          'nonsense',
          '{"type":"ADDED"',
          '{"type":"ADDED"}',
          '[]',
          '{"type":"SURPRISE","object":{}}',
          'null',
        ),
      }),
      watches,
    ),
    on(
      fc.record({
        kind: fc.constant('errorEvent'),
        code: fc.constantFrom(410, 500, 504, 0),
        reason: fc.constantFrom('Expired', 'InternalError', ''),
      }),
      watches,
      2,
    ),
    on(fc.record({ kind: fc.constant('closesEarly') }), watches, 2),
    on(fc.record({ kind: fc.constant('duplicateEvents'), late: fc.boolean() }), watches),
    on(fc.record({ kind: fc.constant('reorderedEvents') }), watches),
  );
})();

const replicaAction: fc.Arbitrary<ReplicaAction> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('kill', 'restart', 'freeze'),
      ms: fc.integer({ min: 0, max: 3_000 }),
    }),
  },
  {
    weight: 12,
    arbitrary: fc
      .record({
        aimed: fault,
        probability: weighted([2, undefined], [1, 0.2], [2, 0.5], [1, 0.8]),
        times: weighted([2, undefined], [1, 1], [1, 2], [1, 5]),
        ms: fc.integer({ min: 200, max: 4_000 }),
      })
      .map(({ aimed, probability, times, ms }): ReplicaAction => ({
        do: 'fault',
        rule: {
          ...aimed,
          ...(probability === undefined ? {} : { probability }),
          ...(times === undefined ? {} : { times }),
        },
        ms,
      })),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stall'), ms: fc.integer({ min: 200, max: 4_000 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('resetAll', 'rotateToken', 'expireToken') }) },
);

const step: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ on: fc.constant('world'), action: worldAction }) },
  { weight: 2, arbitrary: fc.record({ on: fc.constant('servers'), action: serverAction }) },
  { weight: 6, arbitrary: fc.record({ on: fc.constant('replica'), replica: index, action: replicaAction }) },
);

const scenario: fc.Arbitrary<Scenario> = fc.integer({ min: 2_000, max: 8_000 }).chain((ms) =>
  fc.record({
    replicas: fc.constantFrom(1, 1, 2),
    leaderElect: weighted([4, true], [1, false]),
    syncPeriod: fc.constantFrom(0, 3),
    pageLimit: fc.constantFrom(3, clientPageLimit),
    early: fc.boolean(),
    tenants: fc.array(fc.record({ exists: weighted([5, true], [1, false]) }), {
      minLength: 2,
      maxLength: 5,
      size: 'max',
    }),
    backups: fc.array(backupSpec, { minLength: 5, maxLength: 30, size: 'max' }),
    bulk: fc.constantFrom(0, 0, 30, 80),
    nabs: fc.array(nabSpec, { maxLength: 6, size: 'max' }),
    ms: fc.constant(ms),
    steps: fc
      .array(fc.record({ atMs: fc.nat(ms), step }), { minLength: 3, maxLength: 16, size: 'max' })
      .map((steps) => steps.toSorted((a, b) => a.atMs - b.atMs)),
    chance: fc.nat(),
  }),
);

/** The scenario of a seed; always the same for the same version of this file. */
export function scenarioOf(seed: number): Scenario {
  const [drawn] = fc.sample(fc.noBias(scenario), { seed, numRuns: 1 });
  if (drawn === undefined) throw new Error('fast-check drew nothing');
  return drawn;
}

/** Numbers in [0, 1), always the same for the same seed. */
export function chanceOf(seed: number): () => number {
  const numbers = fc.noBias(fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })));
  const [drawn] = fc.sample(numbers, { seed, numRuns: 1 });
  return () => Number(drawn?.next().value ?? 0);
}

/** What of a scenario fits into a line. */
export function shortly({ replicas, leaderElect, backups, bulk, steps }: Scenario): string {
  const done = steps.map(({ step: { on, action } }) => {
    if (action.do === 'fault') return action.rule.fault.kind;
    return on === 'world' ? action.do : `${action.do} ${on === 'servers' && 'server' in action ? action.server : on}`;
  });
  return `${replicas} replica(s)${leaderElect ? '' : ' without election'}, ${backups.length + bulk} backups: ${done.join(', ')}`;
}
