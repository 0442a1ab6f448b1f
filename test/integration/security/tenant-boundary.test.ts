import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { eventResource } from '../../../src/kube/event-object.ts';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import type { DecisionReason } from '../../../src/sync/reasons.ts';
import { fromNow, nacuuid } from '../../support/gen/live-objects.ts';
import { createNamespace, deleteNamespace } from '../../support/namespaces.ts';
import { eventsIn } from '../main-job/support/events.ts';
import { mainJob } from '../main-job/support/main-job.ts';
import { onceReport, planReport } from '../main-job/support/reports.ts';

/**
 * Every way into another tenant's namespace that we could think of, on the real server and with the rights of the
 * manifests: what reason is given, that nothing appears where it must not, and that nobody is told of another's identity.
 *
 * Mallory owns a bucket and can write into it whatever he likes, and into his namespace whatever a tenant may. Alice has
 * backups in the admin's default location and in a bucket of her own.
 */

const job = await mainJob();
const { gen, objects, oadpNamespace, tenant } = job;

const originName = 'openshift.io/oadp-nab-origin-name';
const originNamespace = 'openshift.io/oadp-nab-origin-namespace';
const originNacuuid = 'openshift.io/oadp-nab-origin-nacuuid';
const ownerName = 'openshift.io/oadp-nabsl-origin-name';
const ownerNamespace = 'openshift.io/oadp-nabsl-origin-namespace';
const ownerNacuuid = 'openshift.io/oadp-nabsl-origin-nacuuid';
const managedBy = 'app.kubernetes.io/managed-by';
const syncedFrom = 'openshift.io/oadp-nab-synced-from-nacuuid';

const alice = tenant('alice');
const mallory = tenant('mallory');
const vault = tenant('vault');
/** Really there, so that staying away from it proves something. */
const openshift = `openshift-${tenant('monitoring')}`;
/** Of the backups that are Alice's own. */
const alices = { daily: nacuuid(alice, 'daily'), weekly: nacuuid(alice, 'weekly') };
const inMallorysBucket = { storageLocation: 'mallorys' };

type Shape = Parameters<typeof gen.backup>[0];
interface Attack {
  readonly title: string;
  readonly reason: DecisionReason;
  readonly shape: Shape;
}

let count = 0;

/** Named like its NACUUID, unless the shape says otherwise; nobody's real identity. */
function attack(
  reason: DecisionReason,
  title: string,
  namespace: string,
  shape: Omit<Shape, 'namespace'> = {},
): Attack {
  count += 1;
  const id = shape.nacuuid ?? `forged-${count}`;
  return { title, reason, shape: { name: `attack-${count}`, ...shape, nacuuid: id, namespace } };
}

const fromMallory = (spec: JsonObject = {}): { spec: JsonObject } => ({ spec: { ...inMallorysBucket, ...spec } });

const boundary: Attack[] = [
  attack('StorageLocationOwnerMismatch', 'his bucket says that a backup is Alice’s', alice, fromMallory()),
  attack('StorageLocationOwnerMismatch', 'the same under the name of a NAB that Alice has', alice, {
    name: 'daily',
    ...fromMallory(),
  }),
  attack(
    'StorageLocationOwnerMismatch',
    'the same with his own content',
    alice,
    fromMallory({ includedNamespaces: [mallory] }),
  ),
  attack('StorageLocationOwnerMismatch', 'the same with everything', alice, fromMallory({ includedNamespaces: ['*'] })),
  attack('StorageLocationOwnerMismatch', 'the same, completed later than anything', alice, {
    name: 'daily',
    ...fromMallory(),
    status: { completionTimestamp: '9999-12-31T23:59:59Z' },
  }),
  attack('StorageLocationOwnerMismatch', 'his bucket has become a default location', alice, {
    spec: { storageLocation: 'mallorys-default' },
  }),
  attack('StorageLocationOwnerMismatch', 'a namespace that does not exist yet', tenant('tomorrow'), fromMallory()),
  attack('StorageLocationOwnerMismatch', 'a protected namespace’s neighbour', 'default', fromMallory()),
];

const identity: Attack[] = [
  attack('IdentityMismatch', 'a copy of the NACUUID of Alice’s backup under another name', alice, {
    ...fromMallory(),
    labels: { [originNacuuid]: alices.daily },
  }),
  attack('IdentityMismatch', 'the same copy with himself as the origin', mallory, {
    ...fromMallory(),
    labels: { [originNacuuid]: alices.daily },
  }),
  attack('IdentityMismatch', 'the same copy in the default location', alice, {
    labels: { [originNacuuid]: alices.weekly },
  }),
  attack('IdentityMismatch', 'a NACUUID that differs in case only', mallory, {
    nacuuid: 'forged-case',
    ...fromMallory(),
    labels: { [originNacuuid]: 'Forged-Case' },
  }),
  attack('InvalidOrigin', 'no NACUUID', alice, { ...fromMallory(), labels: { [originNacuuid]: undefined } }),
  attack('InvalidOrigin', 'an empty NACUUID', alice, { ...fromMallory(), labels: { [originNacuuid]: '' } }),
];

const content: Attack[] = [
  ...(
    [
      ['nothing by name', []],
      ['null', null],
      ['everything', ['*']],
      ['everything beside his own', [mallory, '*']],
      ['Alice’s beside his own', [mallory, alice]],
      ['Alice’s alone', [alice]],
      ['his own twice', [mallory, mallory]],
      ['an empty name', ['']],
      ['his own with a blank', [` ${mallory}`]],
      ['a pattern that matches his own', [`${mallory.slice(0, -1)}*`]],
      ['his own in capitals', [mallory.toUpperCase()]],
    ] as const
  ).map(([title, includedNamespaces]) =>
    attack('ForeignContent', `includes ${title}`, mallory, fromMallory({ includedNamespaces })),
  ),
  attack('ForeignContent', 'includes nothing by name, in the default location', alice, {
    spec: { includedNamespaces: undefined },
  }),
];

const protectedNamespaces: Attack[] = [
  ['the OADP namespace', oadpNamespace],
  ['kube-system', 'kube-system'],
  ['kube-public', 'kube-public'],
  ['openshift', 'openshift'],
  ['openshift-monitoring', 'openshift-monitoring'],
  ['an openshift-* that exists', openshift],
  ['one that the admin protects', vault],
].flatMap(([title = '', namespace = '']) => [
  attack('ProtectedNamespace', `${title}, from his bucket`, namespace, fromMallory()),
  attack('ProtectedNamespace', `${title}, from the default location`, namespace),
]);

const names: Attack[] = [
  ...(
    [
      ['a way up', '../../../../api/v1/namespaces/kube-system'],
      ['one step up', '..'],
      ['here', '.'],
      ['an escaped way up', '%2e%2e%2f%2e%2e%2fkube-system'],
      ['a subresource', 'daily/status'],
      ['an escaped subresource', 'daily%2Fstatus'],
      ['a query', 'daily?dryRun=All'],
      ['a fragment', 'daily#'],
      ['a NUL', 'daily\u0000'],
      ['a line break at the end', 'daily\n'],
      ['a header', 'daily\r\nX-Remote-User: admin'],
      ['a blank at the end', 'daily '],
      ['Cyrillic look-alikes', 'd\u0430ily'],
      ['a fullwidth slash', 'a\uff0fdaily'],
      ['an invisible joiner', 'da\u200dily'],
      ['a direction override', '\u202eyliad'],
      ['half a character', 'daily\ud800'],
      ['254 characters', 'a'.repeat(254)],
      ['64 KiB', 'a'.repeat(65_536)],
      ['64 KiB behind a legal beginning', `daily.${'\u0000'.repeat(65_536)}`],
      ['nothing', ''],
      ['__proto__', '__proto__'],
      ['a key of the index', `${alice}/daily`],
    ] as const
  ).flatMap(([title, text]) => [
    attack('InvalidOrigin', `as a name: ${title}`, mallory, { ...fromMallory(), annotations: { [originName]: text } }),
    attack('InvalidOrigin', `as a namespace: ${title}`, mallory, {
      spec: { includedNamespaces: [text] },
      annotations: { [originNamespace]: text },
    }),
  ]),
  attack('InvalidOrigin', 'a namespace of 64 characters', 'a'.repeat(64)),
  attack('InvalidOrigin', 'a namespace with a dot', `${alice}.svc`),
  attack('InvalidOrigin', 'Alice’s namespace with a blank', `${alice} `),
  attack('InvalidOrigin', 'Alice’s namespace in capitals', alice.toUpperCase()),
];

const owners: Attack[] = [
  ['orphan', 'the NABSL is not there', 'StorageLocationOwnerGone'],
  ['leaving', 'the NABSL is being deleted', 'StorageLocationOwnerGone'],
  ['renewed-1', 'a new NABSL of the old name', 'StorageLocationOwnerGone'],
  ['elsewhere', 'a NABSL of that name in another namespace only', 'StorageLocationOwnerGone'],
  ['taken-over', 'the admin’s annotations name a NABSL that Mallory made for himself', 'StorageLocationOwnerGone'],
  ['slashed', 'an owner whose namespace and name are split elsewhere', 'StorageLocationOwnerGone'],
  ['no-name', 'the name of the NABSL is missing', 'UnwatchedStorageLocation'],
  ['no-namespace', 'the namespace of the NABSL is missing', 'UnwatchedStorageLocation'],
  ['no-nacuuid', 'the NACUUID of the NABSL is missing', 'UnwatchedStorageLocation'],
  ['empty-nacuuid', 'the NACUUID of the NABSL is empty', 'UnwatchedStorageLocation'],
  ['only-managed', 'nothing is left but who manages it', 'UnwatchedStorageLocation'],
  ['half-default', 'half of the marks on a default location', 'UnwatchedStorageLocation'],
  ['half-named', 'half of the marks on a location that the admin named', 'UnwatchedStorageLocation'],
  ['plain', 'a location that nobody watches', 'UnwatchedStorageLocation'],
  ['nowhere', 'a location that does not exist', 'UnknownStorageLocation'],
].map(([storageLocation = '', title = '', reason]) =>
  attack(reasonNamed(reason), title, mallory, { spec: { storageLocation } }),
);

const attacks = [...boundary, ...identity, ...content, ...protectedNamespaces, ...names, ...owners];

function reasonNamed(text: string | undefined): DecisionReason {
  return text === 'StorageLocationOwnerGone' || text === 'UnknownStorageLocation' ? text : 'UnwatchedStorageLocation';
}

async function makeLocations(): Promise<void> {
  const owned = (namespace: string, name: string, shape: JsonObject = {}): JsonObject =>
    gen.ownedStorageLocation({ namespace, name, ...shape });
  const nabsl = (namespace: string, name: string, id: string, metadata: JsonObject = {}): JsonObject =>
    gen.nonAdminStorageLocation({ namespace, name, nacuuid: id, metadata });
  await Promise.all(
    [
      gen.storageLocation(),
      nabsl(mallory, 'own', 'mallorys'),
      owned(mallory, 'mallorys', { annotations: { [ownerName]: 'own' } }),
      nabsl(mallory, 'default', 'mallorys-default'),
      owned(mallory, 'mallorys-default', { annotations: { [ownerName]: 'default' }, spec: { default: true } }),
      nabsl(alice, 'own', 'alices'),
      owned(alice, 'alices', { annotations: { [ownerName]: 'own' } }),
      owned(mallory, 'orphan', { annotations: { [ownerName]: 'nobody' } }),
      nabsl(mallory, 'leaving', 'leaving', { finalizers: ['test/held'] }),
      owned(mallory, 'leaving', { annotations: { [ownerName]: 'leaving' } }),
      nabsl(mallory, 'renewed', 'renewed-2'),
      owned(mallory, 'renewed-1', { annotations: { [ownerName]: 'renewed' } }),
      nabsl(alice, 'only-alices', 'elsewhere'),
      owned(mallory, 'elsewhere', { annotations: { [ownerName]: 'only-alices' } }),
      nabsl(mallory, 'taken-over', 'of-his-own'),
      owned(mallory, 'taken-over', { ownerNacuuid: 'alices-old', annotations: { [ownerName]: 'taken-over' } }),
      owned(mallory, 'slashed', { annotations: { [ownerNamespace]: `${mallory}/own`, [ownerName]: 'x' } }),
      owned(mallory, 'no-name', { annotations: { [ownerName]: undefined } }),
      owned(mallory, 'no-namespace', { annotations: { [ownerName]: 'own', [ownerNamespace]: undefined } }),
      owned(mallory, 'no-nacuuid', { annotations: { [ownerName]: 'own' }, labels: { [ownerNacuuid]: undefined } }),
      owned(mallory, 'empty-nacuuid', { annotations: { [ownerName]: 'own' }, labels: { [ownerNacuuid]: '' } }),
      gen.storageLocation({ name: 'only-managed', labels: { [managedBy]: 'oadp-nac-controller' } }),
      gen.storageLocation({ name: 'half-default', annotations: { [ownerNamespace]: mallory } }),
      gen.storageLocation({ name: 'half-named', spec: { default: false }, annotations: { [ownerName]: '' } }),
      gen.storageLocation({ name: 'plain', spec: { default: false } }),
    ].map((object) => objects.create(object)),
  );
  await job.api.call(
    'DELETE',
    `/apis/oadp.openshift.io/v1alpha1/namespaces/${mallory}/nonadminbackupstoragelocations/leaving`,
  );
}

/** What Mallory lays into his own namespace, hoping that nab-sync writes something into it that is not his. */
const baits: readonly { readonly title: string; readonly nab: JsonObject }[] = [
  {
    title: 'Alice’s NACUUID as the sync label, and no status yet',
    nab: statusless(gen.nonAdminBackup({ namespace: mallory, name: 'bare', syncedFrom: alices.daily })),
  },
  {
    title: 'the same under the name of Alice’s NAB',
    nab: statusless(gen.nonAdminBackup({ namespace: mallory, name: 'daily', syncedFrom: alices.daily })),
  },
  {
    title: 'the same with a status that says that the Backup was not found',
    nab: gen.nonAdminBackup({
      namespace: mallory,
      name: 'stale',
      nacuuid: undefined,
      syncedFrom: alices.daily,
      status: {
        phase: 'BackingOff',
        conditions: [
          {
            type: 'Accepted',
            status: 'False',
            reason: 'VeleroBackupNotFound',
            message: 'x',
            lastTransitionTime: fromNow(0),
          },
        ],
      },
    }),
  },
  {
    title: 'a status that claims to be Alice’s',
    nab: gen.nonAdminBackup({
      namespace: mallory,
      name: 'claiming',
      nacuuid: alices.weekly,
      syncedFrom: alices.weekly,
    }),
  },
  {
    title: 'the name of a backup of his own, with Alice’s NACUUID',
    nab: statusless(gen.nonAdminBackup({ namespace: mallory, name: 'mine', syncedFrom: alices.daily })),
  },
  {
    title: 'the name and the label of a backup of his own, with Alice’s NACUUID in the status',
    nab: gen.nonAdminBackup({
      namespace: mallory,
      name: 'mine-too',
      nacuuid: alices.daily,
      syncedFrom: 'mallorys-mine-too',
      status: { phase: undefined, conditions: undefined },
    }),
  },
];

function statusless(nab: JsonObject): JsonObject {
  const { status, ...rest } = nab;
  return status === undefined ? nab : rest;
}

/** Flags with which the admin names `half-named` and even Mallory's location, and protects `vault`. */
const flags = ['--protected-namespace', `${tenant('vau')}*`, '--storage-location', 'half-named,mallorys'];

const ours = [alice, mallory, vault, openshift, oadpNamespace, 'kube-system', 'kube-public', 'default'];

let plan: z.infer<typeof planReport>;
let once: z.infer<typeof onceReport>;
const baitsBefore: JsonObject[] = [];

beforeAll(async () => {
  for (const name of ['alice', 'mallory', 'vault']) await job.createTenant(name);
  await createNamespace(objects, openshift);
  await makeLocations();
  await Promise.all([
    objects.create(gen.backup({ namespace: alice, name: 'daily', nacuuid: alices.daily })),
    objects.create(
      gen.backup({ namespace: alice, name: 'weekly', nacuuid: alices.weekly, spec: { storageLocation: 'alices' } }),
    ),
    ...['mine', 'mine-too', 'own'].map((name) =>
      objects.create(gen.backup({ namespace: mallory, name, nacuuid: `mallorys-${name}`, ...fromMallory() })),
    ),
    objects.create(
      gen.backup({
        namespace: mallory,
        name: 'greedy',
        nacuuid: 'mallorys-greedy',
        spec: {
          storageLocation: 'mallorys-default',
          includeClusterResources: true,
          excludedNamespaces: ['*'],
          orderedResources: { pods: `${alice}/pod-1,kube-system/etcd` },
          includedResources: ['*'],
          hooks: {
            resources: [
              { name: 'x', includedNamespaces: [alice, '*'], pre: [{ exec: { command: ['cat', '/etc/shadow'] } }] },
            ],
          },
        },
      }),
    ),
    ...attacks.map(({ shape }) => objects.create(gen.backup(shape))),
    ...baits.map(async ({ nab }) => {
      baitsBefore.push(await objects.create(nab));
    }),
  ]);
  plan = await job.json(planReport, ['plan', ...flags]);
  once = await job.json(onceReport, ['once', ...flags]);
}, 90_000);

afterAll(async () => {
  await deleteNamespace(objects, openshift);
});

const keyOf = (object: JsonObject): string => {
  const metadata = objectAt(object, 'metadata');
  return `${stringAt(metadata, 'namespace') ?? ''}/${stringAt(metadata, 'name') ?? ''}`;
};

describe('what a forged Backup gets', () => {
  it.each(attacks.map((each) => [each.reason, each.title, each] as const))('%s: %s', (reason, _, { shape }) => {
    const decided = plan.decisions.filter(({ backup }) => backup === shape.nacuuid);
    expect(decided.map((each) => ({ action: each.action, reason: each.reason }))).toEqual([{ action: 'skip', reason }]);
  });

  it('is a message without a character that a terminal would act on, and of bounded length', () => {
    for (const decision of plan.decisions) {
      expect(JSON.stringify(Object.values(decision))).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]|\\u00|\\ud8/u);
      expect(decision.message.length).toBeLessThan(2000);
    }
  });
});

describe('after a pass', () => {
  it('the NABs of the whole cluster that come from these Backups are those of their rightful owners', async () => {
    const all = await objects.list(kinds.nonAdminBackups, { labelSelector: syncedFrom });
    const ids = new Set(plan.decisions.map(({ backup }) => backup));
    const laid = new Set(baits.map(({ nab }) => keyOf(nab)));
    const came = all
      .filter((nab) => ids.has(stringAt(objectAt(objectAt(nab, 'metadata'), 'labels'), syncedFrom) ?? ''))
      .map(keyOf)
      .filter((key) => !laid.has(key));
    expect(came.sort()).toEqual([`${alice}/daily`, `${alice}/weekly`, `${mallory}/greedy`, `${mallory}/own`].sort());
  });

  it('no other namespace has got anything', async () => {
    for (const namespace of ours.filter((each) => each !== alice && each !== mallory)) {
      expect(await objects.list(kinds.nonAdminBackups, { namespace }), namespace).toEqual([]);
    }
  });

  it('a refusal is no failure, and costs the rightful owners nothing', () => {
    expect(once.counts).toEqual({
      seen: attacks.length + 6,
      created: 4,
      repaired: 0,
      present: 0,
      skipped: attacks.length,
      waiting: 0,
      conflict: 2,
      failed: 0,
    });
  });

  it('what a backup names beyond its namespace stays a text in the owner’s own NAB', async () => {
    const nab = await objects.get(kinds.nonAdminBackups, { namespace: mallory, name: 'greedy' });
    expect(objectAt(objectAt(nab ?? {}, 'spec'), 'backupSpec')).toMatchObject({
      storageLocation: 'default',
      includedNamespaces: [mallory],
      includeClusterResources: true,
      orderedResources: { pods: `${alice}/pod-1,kube-system/etcd` },
    });
  });
});

describe('a NAB that a tenant made himself is left as it is, though it has', () => {
  it.each(baits.map(({ title, nab }) => [title, nab] as const))('%s', async (_, nab) => {
    const metadata = objectAt(nab, 'metadata');
    const ref = { namespace: mallory, name: stringAt(metadata, 'name') };
    const before = baitsBefore.find((each) => keyOf(each) === keyOf(nab));
    expect(before).toBeDefined();
    expect(await objects.get(kinds.nonAdminBackups, ref)).toEqual(before);
  });

  it('and what is in the way of a backup of his own is told as a conflict', () => {
    const conflicts = plan.decisions.filter(({ action }) => action === 'conflict');
    expect(conflicts.map(({ name, reason }) => [name, reason])).toEqual([
      ['mine', 'NameTaken'],
      ['mine-too', 'NameTaken'],
    ]);
  });
});

describe('what is told in a tenant’s namespace', () => {
  it('to Alice: of her two backups, and of nothing that was forged in her name', async () => {
    const events = await eventsIn(objects, alice);
    expect(events.map(({ reason, involvedObject }) => [reason, involvedObject.name])).toEqual([
      ['RecreatedFromVeleroBackup', 'daily'],
      ['RecreatedFromVeleroBackup', 'weekly'],
    ]);
  });

  it('in no other claimed namespace: anything', async () => {
    for (const namespace of [vault, openshift, oadpNamespace]) {
      expect(await eventsIn(objects, namespace), namespace).toEqual([]);
    }
    // Here others tell things as well.
    for (const namespace of ['kube-system', 'kube-public', 'default']) {
      const told = JSON.stringify(await objects.list(eventResource, { namespace }));
      for (const { shape } of attacks) expect(told).not.toContain(`"${shape.name ?? ''}"`);
      expect(told).not.toContain(tenant(''));
    }
  });

  it('never another tenant’s NACUUID, with which he could adopt and delete that backup', async () => {
    const told = JSON.stringify([
      await eventsIn(objects, mallory),
      // What he wrote himself he knows anyway.
      (await objects.list(kinds.nonAdminBackups, { namespace: mallory })).filter(
        (nab) => !baits.some((bait) => keyOf(bait.nab) === keyOf(nab)),
      ),
    ]);
    expect(told).toContain('mallorys-greedy');
    for (const id of Object.values(alices)) expect(told).not.toContain(id);
    const toldAlice = JSON.stringify([
      await eventsIn(objects, alice),
      await objects.list(kinds.nonAdminBackups, { namespace: alice }),
    ]);
    expect(toldAlice).not.toContain('mallory');
    expect(toldAlice).not.toContain('forged');
  });
});
