import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { runNabSync } from '../../support/nab-sync.ts';
import { eventsIn } from '../main-job/support/events.ts';
import { mainJob } from '../main-job/support/main-job.ts';
import { meddlingProxy } from '../main-job/support/meddling-proxy.ts';
import { onceReport } from '../main-job/support/reports.ts';

/**
 * The list told of an honest Backup, and what Velero has read from the bucket by the time that the NAB is created is a
 * forged one. A proxy changes it in that gap, for certain. Beside test/integration/main-job/races.test.ts, about identity.
 */

const job = await mainJob();
const { gen, objects, oadpNamespace } = job;
const originName = 'openshift.io/oadp-nab-origin-name';
const originNamespace = 'openshift.io/oadp-nab-origin-namespace';
const originNacuuid = 'openshift.io/oadp-nab-origin-nacuuid';

let alice: string;
let mallory: string;
let round = 0;
let id: string;

const ref = (): { namespace: string; name: string } => ({ namespace: oadpNamespace, name: id });
const patch = (change: JsonObject): Promise<JsonObject> => objects.patch(kinds.backups, ref(), change);

beforeAll(async () => {
  await objects.create(gen.storageLocation());
  for (const name of ['alice', 'mallory']) {
    const namespace = await job.createTenant(name);
    await objects.create(gen.nonAdminStorageLocation({ namespace, nacuuid: `${name}s` }));
    await objects.create(gen.ownedStorageLocation({ namespace, name: `${name}s` }));
  }
  [alice, mallory] = [job.tenant('alice'), job.tenant('mallory')];
});

beforeEach(async () => {
  round += 1;
  id = `backup-${round}`;
  await objects.create(
    gen.backup({ namespace: mallory, name: id, nacuuid: id, spec: { storageLocation: 'mallorys' } }),
  );
});

/** Runs `once`; the change is made just before it reads the Backup. */
async function onceMeddled(change: () => Promise<unknown>): Promise<ReturnType<typeof onceReport.parse>> {
  let done = false;
  const proxy = await meddlingProxy(job.kubeconfig, async ({ method, path }) => {
    if (method === 'GET' && path.endsWith(`/backups/${id}`) && !done) {
      done = true;
      await change();
    }
    return undefined;
  });
  try {
    const kubeconfig = await job.file('meddled', proxy.kubeconfig);
    const args = ['once', '-o', 'json', '--no-leader-elect'];
    const { stdout } = await runNabSync(args, { kubeconfig, oadpNamespace });
    expect(done).toBe(true);
    return onceReport.parse(JSON.parse(stdout));
  } finally {
    await proxy.close();
    await objects.delete(kinds.backups, ref());
  }
}

async function nothingCame(): Promise<void> {
  for (const namespace of [alice, mallory, oadpNamespace]) {
    expect(await objects.list(kinds.nonAdminBackups, { namespace }), namespace).toEqual([]);
    expect(await eventsIn(objects, namespace), namespace).toEqual([]);
  }
}

async function recreate(shape: Parameters<typeof gen.backup>[0]): Promise<void> {
  await objects.delete(kinds.backups, ref());
  await objects.create(gen.backup({ nacuuid: id, ...shape }));
}

describe('a Backup that becomes a forged one between the list and its NAB gives no NAB, neither here nor there', () => {
  const forgeries: readonly (readonly [string, string, () => Promise<unknown>])[] = [
    [
      'claims to be Alice’s',
      'IdentityMismatch',
      () => patch({ metadata: { annotations: { [originNamespace]: alice } }, spec: { includedNamespaces: [alice] } }),
    ],
    ['claims another name', 'IdentityMismatch', () => patch({ metadata: { annotations: { [originName]: 'other' } } })],
    [
      'carries a copy of another NACUUID',
      'IdentityMismatch',
      () => patch({ metadata: { labels: { [originNacuuid]: 'alices-daily' } } }),
    ],
    [
      'lies in Alice’s bucket now',
      'StorageLocationOwnerMismatch',
      () => patch({ spec: { storageLocation: 'alices' } }),
    ],
    ['lies nowhere now', 'UnknownStorageLocation', () => patch({ spec: { storageLocation: 'nowhere' } })],
    [
      'includes Alice’s namespace as well',
      'ForeignContent',
      () => patch({ spec: { includedNamespaces: [mallory, alice] } }),
    ],
    [
      'is a new one of the old name that claims to be Alice’s',
      'IdentityMismatch',
      () => recreate({ namespace: alice, name: id }),
    ],
    [
      'is a new one of the old name that is not finished',
      'NotFinished',
      () =>
        recreate({
          namespace: mallory,
          name: id,
          spec: { storageLocation: 'mallorys' },
          status: { phase: 'InProgress', completionTimestamp: undefined },
        }),
    ],
    [
      'has a path for its namespace',
      'IdentityMismatch',
      () => patch({ metadata: { annotations: { [originNamespace]: '../kube-system' } } }),
    ],
    [
      'is not one of the non-admin controller’s any more',
      'IdentityMismatch',
      () => patch({ metadata: { labels: { 'app.kubernetes.io/managed-by': null } } }),
    ],
  ];

  it.each(forgeries)('%s: %s', async (_, reason, change) => {
    const report = await onceMeddled(change);
    expect(report.reasons).toEqual({ [reason]: 1 });
    expect(report.counts).toMatchObject({ seen: 1, skipped: 1, failed: 0 });
    await nothingCame();
  });
});

describe('a NAB in need of a status', () => {
  it('gets none from a Backup that becomes a forged one after the list', async () => {
    const { status, ...bare } = gen.nonAdminBackup({ namespace: mallory, name: id, syncedFrom: id });
    expect(status).toBeDefined();
    const made = await objects.create(bare);
    const report = await onceMeddled(() => patch({ spec: { includedNamespaces: [alice], storageLocation: 'alices' } }));
    expect(report.counts).toMatchObject({ repaired: 0, failed: 0 });
    const nab = await objects.get(kinds.nonAdminBackups, { namespace: mallory, name: id });
    expect(stringAt(objectAt(nab ?? {}, 'metadata'), 'resourceVersion')).toBe(
      stringAt(objectAt(made, 'metadata'), 'resourceVersion'),
    );
  });
});
