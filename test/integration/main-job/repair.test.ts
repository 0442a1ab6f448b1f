import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { day, hour } from '../../support/gen/api-objects.ts';
import { fromNow } from '../../support/gen/live-objects.ts';
import { eventLines } from './support/events.ts';
import { mainJob, untilTheEndOfTheFile, type Controller } from './support/main-job.ts';
import { bareNab, expectedNab } from './support/nabs.ts';
import { metricsOf } from './support/scrape.ts';

const job = await mainJob();
const { gen, objects } = job;

/** What the NAC sets when it looks for a Backup that is away, and never takes back. */
const notFound = {
  type: 'Accepted',
  status: 'False',
  reason: 'VeleroBackupNotFound',
  message: 'gone with the cluster',
};
const longAgo = fromNow(-day);
const counters = {
  dataMoverDataUploads: { total: 3, completed: 2, failed: 1 },
  fileSystemPodVolumeBackups: { total: 1, completed: 1 },
};
const ownSpec = { backupSpec: { includedResources: ['pods'], ttl: '1h0m0s' } };

interface Shape {
  readonly metadata?: JsonObject;
  readonly spec?: JsonObject;
  readonly status?: JsonObject | undefined;
  /** Default true. */
  readonly synced?: boolean;
}

interface Pair {
  readonly backup: JsonObject;
  /** As it was before the controller could see it. */
  readonly nab: JsonObject;
}

let namespace: string;
let controller: Controller;
const pairs = new Map<string, Pair>();

/** A Backup and the NAB that is there for it, of the given name. */
async function prepare(name: string, { metadata, spec, status, synced = true }: Shape): Promise<void> {
  const { status: usual, ...bare } = gen.nonAdminBackup({
    namespace,
    name,
    ...(synced ? { syncedFrom: `${namespace}-${name}` } : {}),
    metadata: { ...metadata },
    spec: spec ?? ownSpec,
  });
  // The NAB first: a controller that already runs must not make it.
  const nab = await objects.create(status === undefined ? bare : { ...bare, status });
  const backup = await objects.create(gen.backup({ namespace, name, nacuuid: `${namespace}-${name}` }));
  pairs.set(name, { backup, nab });
}

function pair(name: string): Pair {
  const found = pairs.get(name);
  if (found === undefined) throw new Error(`no pair ${name}`);
  return found;
}

async function nabNow(name: string): Promise<JsonObject> {
  return (await objects.get(kinds.nonAdminBackups, { namespace, name })) ?? {};
}

function versionOf(object: JsonObject): string | undefined {
  return stringAt(objectAt(object, 'metadata'), 'resourceVersion');
}

/** The NAB that a repair has to leave: metadata and spec as they were, the status complete. */
function repairedNab(name: string): JsonObject {
  const { backup, nab } = pair(name);
  const { metadata, spec } = bareNab(nab);
  return { ...expectedNab(backup), metadata, spec };
}

function conditionsOf(nab: JsonObject): z.infer<typeof condition>[] {
  return z.array(condition).parse(objectAt(nab, 'status')['conditions']);
}
const condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: z.string(),
  lastTransitionTime: z.string(),
});

beforeAll(async () => {
  namespace = await job.createTenant('team');
  await objects.create(gen.storageLocation());
  const reference = (name: string): JsonObject => {
    const id = `${namespace}-${name}`;
    return { nacuuid: id, name: id, namespace: job.oadpNamespace };
  };
  const stale = (name: string, status: JsonObject = {}): JsonObject => ({
    phase: 'BackingOff',
    conditions: [{ ...notFound, lastTransitionTime: longAgo }],
    veleroBackup: reference(name),
    ...status,
  });

  await prepare('bare', {});
  await prepare('stale', { status: stale('stale') });
  await prepare('stale-in-another-phase', { status: stale('stale-in-another-phase', { phase: 'Created' }) });
  await prepare('stale-with-more', {
    status: stale('stale-with-more', {
      ...counters,
      queueInfo: { estimatedQueuePosition: 7 },
      conditions: [
        { ...notFound, lastTransitionTime: longAgo },
        { type: 'Queued', status: 'True', reason: 'Old', message: 'old', lastTransitionTime: longAgo },
        { type: 'Checked', status: 'Unknown', reason: 'ByHand', message: 'by hand', lastTransitionTime: longAgo },
      ],
    }),
  });

  const finalizers = ['nonadminbackup.oadp.openshift.io/finalizer'];
  await prepare('deleting', { metadata: { finalizers } });
  await objects.api.call('DELETE', `/apis/oadp.openshift.io/v1alpha1/namespaces/${namespace}/nonadminbackups/deleting`);
  pairs.set('deleting', { ...pair('deleting'), nab: await nabNow('deleting') });
  await prepare('unwanted', { spec: { ...ownSpec, deleteBackup: true } });
  await prepare('unwanted-and-stale', {
    spec: { ...ownSpec, deleteBackup: true },
    status: stale('unwanted-and-stale'),
  });
  await prepare('of-its-user', { synced: false, status: stale('of-its-user') });
  await prepare('begun', { status: { veleroBackup: reference('begun') } });
  await prepare('rejected', {
    status: {
      phase: 'BackingOff',
      conditions: [{ ...notFound, reason: 'InvalidBackupSpec', lastTransitionTime: longAgo }],
      veleroBackup: reference('rejected'),
    },
  });
  await prepare('well', {
    status: {
      phase: 'Created',
      conditions: [{ ...notFound, status: 'True', reason: 'BackupAccepted', lastTransitionTime: longAgo }],
      veleroBackup: reference('well'),
    },
  });

  controller = await job.controller([], { SYNC_PERIOD: '1s' }, untilTheEndOfTheFile);
  await controller.firstPass();
}, 60_000);

describe('the repair of a synced NAB', () => {
  it('gives a status to one that has none, as after the end of a process between create and status', async () => {
    expect(bareNab(await nabNow('bare'))).toEqual(repairedNab('bare'));
  });

  it.each(['stale', 'stale-in-another-phase'])(
    'takes back that its Backup was not found, whatever the phase: %s',
    async (name) => {
      const nab = await nabNow(name);
      // The condition that was there keeps its place.
      expect(bareNab(nab)).toEqual(repairedNab(name));
      for (const { lastTransitionTime } of conditionsOf(nab)) {
        expect(Date.parse(lastTransitionTime)).toBeGreaterThan(Date.now() - hour);
      }
    },
  );

  it("keeps the NAC's counters and conditions of others, and dates only what has changed", async () => {
    const nab = await nabNow('stale-with-more');
    const { status, ...rest } = bareNab(nab);
    const { status: due, ...dueRest } = repairedNab('stale-with-more');
    expect(rest).toEqual(dueRest);
    expect({ ...objectAt({ status }, 'status'), conditions: [] }).toEqual({
      ...objectAt({ due }, 'due'),
      ...counters,
      conditions: [],
    });
    const told = conditionsOf(nab).sort((a, b) => (a.type < b.type ? -1 : 1));
    expect(told.map(({ type, status: value, reason }) => `${type} ${value} ${reason}`)).toEqual([
      'Accepted True BackupAccepted',
      'Checked Unknown ByHand',
      'Queued True BackupScheduled',
      'Synced True RecreatedFromVeleroBackup',
    ]);
    expect(told.filter(({ lastTransitionTime }) => lastTransitionTime === longAgo).map(({ type }) => type)).toEqual([
      'Checked',
      'Queued',
    ]);
  });

  it('is told once for each, and counted', async () => {
    const lines = [
      'bare StatusMissing x1',
      ...['', '-in-another-phase', '-with-more'].map((of) => `stale${of} StatusStale x1`),
    ];
    await eventually(async () => {
      expect((await eventLines(objects, namespace)).sort()).toEqual(lines.sort());
    });
    expect((await metricsOf(controller)).value('nab_sync_repaired_total')).toBe(4);
  });
});

describe('what is not repaired', () => {
  it.each([
    ['deleting', 'a NAB that is being deleted'],
    ['unwanted', 'one whose owner wants the backup gone for good'],
    ['unwanted-and-stale', 'the same with a stale status'],
    ['of-its-user', 'one that its user made, and not a sync'],
    ['begun', 'one whose status the NAC has begun to write'],
    ['rejected', 'one that the NAC rejected for another reason'],
    ['well', 'one in order'],
  ])('%s: %s keeps its version through many passes', async (name) => {
    await controller.line('pass over all namespaces done', { backups: { Present: 11 } });
    expect(versionOf(await nabNow(name))).toBe(versionOf(pair(name).nab));
  });

  it('no more than once: later passes find everything in order and write nothing', async () => {
    const versions = async (): Promise<(string | undefined)[]> =>
      (await objects.list(kinds.nonAdminBackups, { namespace })).map(versionOf);
    const before = await versions();
    const passes = (): number => controller.log().filter(({ msg }) => msg === 'pass over all namespaces done').length;
    const passesBefore = passes();
    await eventually(() => {
      expect(passes()).toBeGreaterThanOrEqual(passesBefore + 2);
    });
    expect(await versions()).toEqual(before);
  });
});

describe('a repair while the controller runs', () => {
  it('follows at once when a NAB comes to say that its Backup is away, while it is there', async () => {
    const before = versionOf(await nabNow('bare'));
    await objects.setStatus(
      kinds.nonAdminBackups,
      { namespace, name: 'bare' },
      { phase: 'BackingOff', conditions: [{ ...notFound, lastTransitionTime: longAgo }] },
    );
    await eventually(async () => {
      const nab = await nabNow('bare');
      expect(bareNab(nab)).toEqual(repairedNab('bare'));
      expect(versionOf(nab)).not.toBe(before);
    });
  });

  it('waits for the Backup while that is away', async () => {
    const { status, ...nab } = gen.nonAdminBackup({ namespace, name: 'returns', syncedFrom: `${namespace}-returns` });
    const made = await objects.create(nab);
    // What is made after it is done after it.
    await prepare('just-after', {});
    await eventually(async () => {
      expect(bareNab(await nabNow('just-after'))).toEqual(repairedNab('just-after'));
    });
    expect(versionOf(await nabNow('returns'))).toBe(versionOf(made));
    const backup = await objects.create(gen.backup({ namespace, name: 'returns', nacuuid: `${namespace}-returns` }));
    pairs.set('returns', { backup, nab: made });
    await eventually(async () => {
      expect(bareNab(await nabNow('returns'))).toEqual(repairedNab('returns'));
    });
  });
});
