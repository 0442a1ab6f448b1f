import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { actionOf } from '../../../src/sync/reasons.ts';
import { ApiError } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { mainJob, untilTheEndOfTheFile, type Controller } from '../main-job/support/main-job.ts';
import { planReport } from '../main-job/support/reports.ts';
import { hostileBackup } from './support/arbitrary-backups.ts';

/**
 * Whatever is made on the real server in front of a running controller: it meets no fault of its own, every Backup gets a
 * reason, no NAB appears but where its Backup may put it, what tenants made themselves keeps its spec and metadata, and a
 * healthy backup behind all that still comes back. A failing run prints its seed.
 */

const job = await mainJob();
const { gen, objects, oadpNamespace, tenant } = job;
const alice = await job.createTenant('alice');
const mallory = await job.createTenant('mallory');
const vault = await job.createTenant('vault');
const namespaces = [alice, mallory, vault, oadpNamespace];

const syncLabel = 'openshift.io/oadp-nab-synced-from-nacuuid';

/** Who may put NABs where, by location: told here apart from the code under test. */
const reach: Readonly<Record<string, readonly string[]>> = {
  default: [alice, mallory],
  alices: [alice],
  mallorys: [mallory],
  'half-marked': [],
  unwatched: [],
};

const hostile = hostileBackup(gen, {
  namespaces: [alice, mallory, alice, mallory, mallory, vault, oadpNamespace, 'kube-system', tenant('nowhere')],
  locations: [...Object.keys(reach), 'default', 'mallorys', 'nowhere', '__proto__', ''],
  homes: { [mallory]: 'mallorys' },
  names: ['daily', 'weekly', 'constructor'],
});

/** NABs that tenants make themselves, with labels and statuses as they please. */
const forgedNab = fc
  .record({
    namespace: fc.constantFrom(alice, mallory),
    name: fc.constantFrom('daily', 'weekly', 'constructor'),
    label: fc.option(fc.nat({ max: 30 }), { nil: undefined }),
    reference: fc.option(fc.nat({ max: 30 }), { nil: undefined }),
    notFound: fc.boolean(),
    deleteBackup: fc.constantFrom(undefined, true),
  })
  .map((made) => (ids: readonly string[]) => {
    const id = (index: number | undefined): string | undefined =>
      index === undefined ? undefined : (ids[index % Math.max(ids.length, 1)] ?? 'nobody');
    const syncedFrom = id(made.label);
    const conditions = [
      {
        type: 'Accepted',
        status: 'False',
        reason: 'VeleroBackupNotFound',
        message: 'x',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ];
    return gen.nonAdminBackup({
      namespace: made.namespace,
      name: made.name,
      nacuuid: id(made.reference),
      ...(syncedFrom === undefined ? {} : { syncedFrom }),
      spec: { backupSpec: { ttl: '1h0m0s' }, deleteBackup: made.deleteBackup },
      status: made.notFound ? { phase: 'BackingOff', conditions } : { phase: undefined, conditions: undefined },
    });
  });

const backupShape = z.object({
  metadata: z.object({
    name: z.string(),
    labels: z.record(z.string(), z.string()).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
  spec: z.object({ storageLocation: z.string().optional(), includedNamespaces: z.unknown() }),
});

/** Where a Backup may put a NAB at the very most; undefined for nowhere. */
function place(backup: JsonObject): { id: string; key: string } | undefined {
  const { metadata, spec } = backupShape.parse(backup);
  const id = metadata.labels['openshift.io/oadp-nab-origin-nacuuid'];
  const namespace = metadata.annotations['openshift.io/oadp-nab-origin-namespace'];
  const name = metadata.annotations['openshift.io/oadp-nab-origin-name'];
  const included = spec.includedNamespaces;
  const location = spec.storageLocation ?? '';
  if (id === undefined || id !== metadata.name || namespace === undefined || name === undefined) return undefined;
  if (!Array.isArray(included) || included.length !== 1 || included[0] !== namespace) return undefined;
  if (!Object.hasOwn(reach, location) || reach[location]?.includes(namespace) !== true) return undefined;
  return { id, key: `${namespace}/${name}` };
}

const keyOf = (object: JsonObject): string => {
  const metadata = objectAt(object, 'metadata');
  return `${stringAt(metadata, 'namespace') ?? ''}/${stringAt(metadata, 'name') ?? ''}`;
};

let controller: Controller;
let rounds = 0;
let refused = 0;
let came = 0;
/** By NACUUID; of earlier rounds too, since a create may be under way when its round ends. */
const allowed = new Map<string, string>();

beforeAll(async () => {
  await Promise.all(
    [
      gen.storageLocation(),
      gen.storageLocation({ name: 'unwatched', spec: { default: false } }),
      gen.storageLocation({ name: 'half-marked', labels: { 'openshift.io/oadp-nabsl-origin-nacuuid': 'half' } }),
      ...[
        [alice, 'alices'],
        [mallory, 'mallorys'],
      ].flatMap(([namespace = '', name = '']) => [
        gen.nonAdminStorageLocation({ namespace, nacuuid: name }),
        gen.ownedStorageLocation({ namespace, name }),
      ]),
    ].map((object) => objects.create(object)),
  );
  controller = await job.controller(['--protected-namespace', vault], {}, untilTheEndOfTheFile);
  await controller.firstPass();
});

/** What the server takes of the objects; what it refuses could not come from it either. */
async function createAll(wanted: readonly JsonObject[]): Promise<JsonObject[]> {
  const made = await Promise.all(
    wanted.map(async (object) => {
      try {
        return [await objects.create(object)];
      } catch (error) {
        if (!(error instanceof ApiError) || error.status >= 500) throw error;
        refused += 1;
        return [];
      }
    }),
  );
  return made.flat();
}

async function allNabs(): Promise<JsonObject[]> {
  return (await Promise.all(namespaces.map((namespace) => objects.list(kinds.nonAdminBackups, { namespace })))).flat();
}

async function round(wanted: readonly JsonObject[], forgers: readonly ((ids: readonly string[]) => JsonObject)[]) {
  rounds += 1;
  const ids = wanted.map((backup) => stringAt(objectAt(backup, 'metadata'), 'name') ?? '');
  const own = await createAll(forgers.map((forge) => forge(ids)));
  const backups = await createAll(wanted);
  const healthy = `healthy-${rounds}`;
  backups.push(await objects.create(gen.backup({ namespace: alice, name: healthy })));
  await eventually(async () => {
    const nab = await objects.get(kinds.nonAdminBackups, { namespace: alice, name: healthy });
    expect(stringAt(objectAt(nab ?? {}, 'status'), 'phase')).toBe('Created');
  }, 15_000);

  const plan = await job.json(planReport, ['plan', '--protected-namespace', vault]);
  const reasons = new Map(plan.decisions.map(({ backup, reason }) => [backup, reason]));
  for (const backup of backups) {
    const { metadata } = backupShape.parse(backup);
    const reason = reasons.get(metadata.name);
    // Without the labels of the non-admin controller it is none of ours; no forger here leaves them out.
    expect(Object.keys(actionOf), metadata.name).toContain(reason);
  }
  expect(plan.decisions).toHaveLength(backups.length);

  for (const found of backups.map(place)) if (found !== undefined) allowed.set(found.id, found.key);
  for (const nab of await allNabs()) {
    const made = own.find((each) => keyOf(each) === keyOf(nab));
    if (made === undefined) {
      came += 1;
      const id = stringAt(objectAt(objectAt(nab, 'metadata'), 'labels'), syncLabel) ?? '';
      expect(allowed.get(id), `${keyOf(nab)} from ${id}`).toBe(keyOf(nab));
      continue;
    }
    expect(nab['spec']).toEqual(made['spec']);
    expect(objectAt(nab, 'metadata')['labels']).toEqual(objectAt(made, 'metadata')['labels']);
    const [before, after] = [made, nab].map((each) => objectAt(objectAt(each, 'status'), 'veleroBackup')['nacuuid']);
    // Only an empty or a stale status is completed, and only from the Backup that may stand behind this very NAB.
    if (before !== after) {
      expect(before).toBeUndefined();
      expect(allowed.get(String(after)), `${keyOf(nab)} completed from ${String(after)}`).toBe(keyOf(nab));
    }
  }
  const faults = controller.log().filter(({ level }) => level === 'error' || level === 'fatal');
  expect(faults).toEqual([]);
  expect(controller.stderr).not.toContain('InternalError');

  // The Backups first, or their NABs would come back.
  for (const [kind, things] of [
    [kinds.backups, backups],
    [kinds.nonAdminBackups, await allNabs()],
  ] as const) {
    await Promise.all(
      things.map((object) => {
        const { namespace, name } = objectAt(object, 'metadata');
        return objects.delete(kind, { namespace: String(namespace), name: String(name) });
      }),
    );
  }
}

describe('hostile Backups and NABs, made at random', () => {
  it('lead to nothing but what each of them may have', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(hostile, { minLength: 10, maxLength: 30 }),
        fc.array(forgedNab, { maxLength: 5 }),
        round,
      ),
      {
        numRuns: Number(process.env['HOSTILE_ROUNDS'] ?? 6),
        plugins: [fc.interruptAfterTimeLimit(60_000)],
        endOnFailure: true,
      },
    );
    console.log(`${rounds} rounds: ${came} NABs came back, the API server refused ${refused} objects`);
    // Otherwise none of this says anything.
    expect(came).toBeGreaterThan(rounds);
  }, 300_000);
});
