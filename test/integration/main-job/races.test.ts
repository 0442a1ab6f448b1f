import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { z } from 'zod';
import { objectAt } from '../../../src/kube/json.ts';
import { resourcePath, type JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { fromNow } from '../../support/gen/live-objects.ts';
import { startNamespaceDeletion } from '../../support/namespaces.ts';
import { runNabSync } from '../../support/nab-sync.ts';
import { eventLines } from './support/events.ts';
import { mainJob } from './support/main-job.ts';
import { meddlingProxy, type Meddler, type PassingRequest } from './support/meddling-proxy.ts';
import { byName, expectedNab } from './support/nabs.ts';
import { onceReport } from './support/reports.ts';

/**
 * What others do in the gaps between nab-sync's own requests: between its lists and its last look at the Backup, between that
 * and the create, between the create and the status. Every pass here has a second NAB to make, which must come back whatever
 * happens to the first.
 */
const job = await mainJob();
const { gen, objects, oadpNamespace } = job;
let tenants = 0;
let namespace: string;
let backup: JsonObject;
let neighbour: JsonObject;

beforeAll(async () => {
  await objects.create(gen.storageLocation());
});

/** A tenant with the backups `daily` and `neighbour`. */
async function tenantWithTwo(): Promise<void> {
  tenants += 1;
  namespace = await job.createTenant(`team-${tenants}`);
  backup = await objects.create(gen.backup({ namespace, name: 'daily', nacuuid: `${namespace}-daily` }));
  // Completed earlier, so its turn comes later.
  neighbour = await objects.create(
    gen.backup({ namespace, name: 'neighbour', status: { completionTimestamp: fromNow(-172_800_000) } }),
  );
}

const backupName = (): string => `${namespace}-daily`;
const nabRef = (): { namespace: string; name: string } => ({ namespace, name: 'daily' });

/** A look at the Backup itself, just before its NAB is created. */
const readsBackup = ({ method, path, before }: PassingRequest): boolean =>
  method === 'GET' &&
  before === 0 &&
  path === resourcePath(kinds.backups, { namespace: oadpNamespace, name: backupName() });
/** The first create in the namespace: that of `daily`, since the newest goes first. */
const createsNab = ({ method, path, before }: PassingRequest): boolean =>
  method === 'POST' && before === 0 && path === resourcePath(kinds.nonAdminBackups, { namespace });
const writesStatus = ({ method, path, before }: PassingRequest): boolean =>
  method === 'PUT' &&
  before === 0 &&
  path === resourcePath(kinds.nonAdminBackups, { ...nabRef(), subresource: 'status' });

/** A pass over the namespace, with one thing that happens just before a certain request of it. */
async function pass(
  when: (request: PassingRequest) => boolean,
  meanwhile: () => Promise<unknown>,
): Promise<{ exitCode: number | null; report: z.infer<typeof onceReport> }> {
  let happened = 0;
  const meddler: Meddler = async (request) => {
    if (when(request)) {
      happened += 1;
      await meanwhile();
    }
    return undefined;
  };
  const result = await passThrough(meddler);
  expect(happened).toBe(1);
  return result;
}

async function passThrough(meddler: Meddler): Promise<{ exitCode: number | null; report: z.infer<typeof onceReport> }> {
  const proxy = await meddlingProxy(job.kubeconfig, meddler);
  onTestFinished(() => proxy.close());
  const kubeconfig = await job.file('meddled.kubeconfig', proxy.kubeconfig);
  const args = ['once', '-n', namespace, '-o', 'json', '--no-leader-elect', '--concurrency', '1'];
  const { exitCode, stdout, stderr } = await runNabSync(args, { kubeconfig, oadpNamespace });
  if (stdout === '') throw new Error(`no report: ${stderr}`);
  return { exitCode, report: onceReport.parse(JSON.parse(stdout)) };
}

/** That the pass did well, with this outcome for `daily`, and that `neighbour` came back. */
async function doneWith(
  { exitCode, report }: Awaited<ReturnType<typeof pass>>,
  counts: Partial<z.infer<typeof onceReport>['counts']>,
  reasons: Record<string, number>,
): Promise<void> {
  expect(report.failures).toEqual([]);
  expect({ exitCode, outcome: report.outcome }).toEqual({ exitCode: 0, outcome: 'Succeeded' });
  expect(report.counts).toMatchObject({ seen: 2, failed: 0, ...counts });
  expect(report.reasons).toEqual(reasons);
  const nabs = await job.nabs(namespace);
  expect(nabs).toContainEqual(expectedNab(neighbour));
}

async function withoutDaily(): Promise<void> {
  expect(await job.nabs(namespace)).toEqual([expectedNab(neighbour)]);
}

describe('between the lists and the last look at the Backup', () => {
  it('the Backup goes: no NAB is made for it', async () => {
    await tenantWithTwo();
    const result = await pass(readsBackup, () => objects.deleteObject(backup));
    await doneWith(result, { created: 1, skipped: 1 }, { BeingDeleted: 1, Missing: 1 });
    await withoutDaily();
  });

  it('Velero begins to delete it: no NAB is made for it', async () => {
    await tenantWithTwo();
    const ref = { namespace: oadpNamespace, name: backupName() };
    const result = await pass(readsBackup, () => objects.setStatus(kinds.backups, ref, { phase: 'Deleting' }));
    await doneWith(result, { created: 1, skipped: 1 }, { BeingDeleted: 1, Missing: 1 });
    await withoutDaily();
  });

  it('it comes to claim another namespace: no NAB is made for it, neither here nor there', async () => {
    await tenantWithTwo();
    const other = await job.createTenant(`other-${tenants}`);
    const ref = { namespace: oadpNamespace, name: backupName() };
    const result = await pass(readsBackup, () =>
      objects.patch(kinds.backups, ref, {
        metadata: { annotations: { 'openshift.io/oadp-nab-origin-namespace': other } },
        spec: { includedNamespaces: [other] },
      }),
    );
    await doneWith(result, { created: 1, skipped: 1 }, { IdentityMismatch: 1, Missing: 1 });
    await withoutDaily();
    expect(await job.nabs(other)).toEqual([]);
  });

  it('it comes to include more than its namespace: no NAB is made for it', async () => {
    await tenantWithTwo();
    const ref = { namespace: oadpNamespace, name: backupName() };
    const result = await pass(readsBackup, () =>
      objects.patch(kinds.backups, ref, { spec: { includedNamespaces: ['*'] } }),
    );
    await doneWith(result, { created: 1, skipped: 1 }, { ForeignContent: 1, Missing: 1 });
    await withoutDaily();
  });

  it('its spec changes: the NAB is made from what it is now', async () => {
    await tenantWithTwo();
    const ref = { namespace: oadpNamespace, name: backupName() };
    let changed: JsonObject = {};
    const result = await pass(readsBackup, async () => {
      changed = await objects.patch(kinds.backups, ref, { spec: { ttl: '1h0m0s' } });
    });
    await doneWith(result, { created: 2 }, { Missing: 2 });
    expect(await job.nabs(namespace)).toEqual([changed, neighbour].map((each) => expectedNab(each)).sort(byName));
  });
});

describe('between that and the create, another writer makes a NAB of the name (409)', () => {
  it('for the same backup, complete: it is there, which is all that is wanted', async () => {
    await tenantWithTwo();
    let nab: JsonObject = {};
    const result = await pass(createsNab, async () => {
      const id = backupName();
      nab = await objects.create(gen.nonAdminBackup({ ...nabRef(), nacuuid: id, syncedFrom: id }));
    });
    await doneWith(result, { created: 1, present: 1 }, { Missing: 1, Present: 1 });
    expect(await objects.get(kinds.nonAdminBackups, nabRef())).toEqual(nab);
  });

  it('for the same backup, its status still to come: it is completed', async () => {
    await tenantWithTwo();
    const result = await pass(createsNab, async () => {
      const { status, ...bare } = gen.nonAdminBackup({ ...nabRef(), syncedFrom: backupName() });
      await objects.create({ ...bare, spec: { backupSpec: { includedNamespaces: [namespace], ttl: '720h0m0s' } } });
    });
    await doneWith(result, { created: 1, repaired: 1 }, { Missing: 1, StatusMissing: 1 });
    expect(await job.nabs(namespace)).toEqual([backup, neighbour].map((each) => expectedNab(each)).sort(byName));
  });

  it.each([
    ['for another backup', 'of-another-backup'],
    ['of its user, who has just made it', undefined],
  ])('%s: it is left alone, and the conflict is told', async (_, nacuuid) => {
    await tenantWithTwo();
    let nab: JsonObject = {};
    const result = await pass(createsNab, async () => {
      nab = await objects.create(gen.nonAdminBackup({ ...nabRef(), nacuuid }));
    });
    await doneWith(result, { created: 1, conflict: 1 }, { Missing: 1, NameTaken: 1 });
    expect(await objects.get(kinds.nonAdminBackups, nabRef())).toEqual(nab);
    expect(await eventLines(objects, namespace)).toContain('daily NameTaken x1');
  });
});

describe('between that and the create, the namespace', () => {
  it('begins to go: nothing is made in it, and nothing has failed', async () => {
    await tenantWithTwo();
    const { exitCode, report } = await pass(createsNab, () => startNamespaceDeletion(objects, namespace));
    expect({ exitCode, failures: report.failures }).toEqual({ exitCode: 0, failures: [] });
    expect(report.reasons).toEqual({ NamespaceTerminating: 2 });
    expect(await job.nabs(namespace)).toEqual([]);
  });

  it('is gone: nothing has failed', async () => {
    await tenantWithTwo();
    const { exitCode, report } = await pass(createsNab, () => job.deleteTenant(`team-${tenants}`));
    expect({ exitCode, failures: report.failures }).toEqual({ exitCode: 0, failures: [] });
    expect(report.reasons).toEqual({ NamespaceMissing: 2 });
  });
});

describe('between the create and the status', () => {
  it('the NAC begins the status: it is the NAC’s to finish', async () => {
    await tenantWithTwo();
    const status = {
      phase: 'New',
      veleroBackup: { nacuuid: backupName(), name: backupName(), namespace: oadpNamespace },
    };
    const result = await pass(writesStatus, () => objects.setStatus(kinds.nonAdminBackups, nabRef(), status));
    await doneWith(result, { created: 2 }, { Missing: 2 });
    const nab = await objects.get(kinds.nonAdminBackups, nabRef());
    expect(objectAt(nab ?? {}, 'status')).toEqual(status);
  });

  it('the NAC adds its finalizer: the status is still missing, and the next pass completes it', async () => {
    await tenantWithTwo();
    const finalizers = ['nonadminbackup.oadp.openshift.io/finalizer'];
    const result = await pass(writesStatus, () =>
      objects.patch(kinds.nonAdminBackups, nabRef(), { metadata: { finalizers } }),
    );
    await doneWith(result, { created: 2 }, { Missing: 2 });
    const second = await job.json(onceReport, ['once', '-n', namespace, '--no-leader-elect']);
    expect(second.counts.present + second.counts.repaired).toBe(2);
    const due = expectedNab(backup);
    expect(await job.nabs(namespace)).toContainEqual({
      ...due,
      metadata: { ...objectAt(due, 'metadata'), finalizers },
    });
  });

  it('its user deletes the NAB: it stays away for this pass, and nothing has failed', async () => {
    await tenantWithTwo();
    const result = await pass(writesStatus, () => objects.delete(kinds.nonAdminBackups, nabRef()));
    await doneWith(result, { created: 2 }, { Missing: 2 });
    await withoutDaily();
  });

  it('its user deletes it and makes a new one of the name: that one gets no status of ours', async () => {
    await tenantWithTwo();
    let own: JsonObject = {};
    const result = await pass(writesStatus, async () => {
      await objects.delete(kinds.nonAdminBackups, nabRef());
      const { status, ...bare } = gen.nonAdminBackup(nabRef());
      own = await objects.create(bare);
    });
    await doneWith(result, { created: 2 }, { Missing: 2 });
    expect(await objects.get(kinds.nonAdminBackups, nabRef())).toEqual(own);
  });
});

describe('an answer that the API server does not usually give', () => {
  const status = (code: number, reason: string, message: string): { status: number; body: JsonObject } => ({
    status: code,
    body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message },
  });

  it('concerns the one backup that got it: the neighbour comes back, and the exit code tells', async () => {
    await tenantWithTwo();
    const { exitCode, report } = await passThrough((request) =>
      createsNab(request) ? Promise.resolve(status(500, 'InternalError', 'etcd has hiccups')) : undefined,
    );
    expect({ exitCode, outcome: report.outcome }).toEqual({ exitCode: 1, outcome: 'Partial' });
    expect(report.counts).toMatchObject({ created: 1, failed: 1 });
    expect(report.failures).toMatchObject([{ namespace, name: 'daily', reason: 'ServerError' }]);
    expect(report.failures[0]?.message).toContain('etcd has hiccups');
    await withoutDaily();
  });

  it('to a status leaves the NAB for the next pass to complete', async () => {
    await tenantWithTwo();
    const { exitCode, report } = await passThrough((request) =>
      writesStatus(request) ? Promise.resolve(status(500, 'InternalError', 'etcd has hiccups')) : undefined,
    );
    expect(exitCode).toBe(1);
    expect(report.failures).toMatchObject([{ namespace, name: 'daily', reason: 'ServerError' }]);
    const second = await job.json(onceReport, ['once', '-n', namespace, '--no-leader-elect']);
    expect(second.counts).toMatchObject({ repaired: 1, present: 1, failed: 0 });
    expect(await job.nabs(namespace)).toEqual([backup, neighbour].map((each) => expectedNab(each)).sort(byName));
  });
});

describe('four passes that all found the same NABs missing', () => {
  it('make each once; the others find it there, and none of them fails', async () => {
    await tenantWithTwo();
    let arrived = 0;
    let letGo: () => void = () => undefined;
    const allHere = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    // Each is held at its first create until all have come so far.
    const meddler: Meddler = async ({ method, path }) => {
      if (method !== 'POST' || path !== resourcePath(kinds.nonAdminBackups, { namespace })) return undefined;
      arrived += 1;
      if (arrived === 4) letGo();
      await allHere;
      return undefined;
    };
    const results = await Promise.all(Array.from({ length: 4 }, () => passThrough(meddler)));
    expect(results.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0]);
    expect(results.flatMap(({ report }) => report.failures)).toEqual([]);
    const sum = (key: 'created' | 'repaired' | 'present'): number =>
      results.reduce((total, { report }) => total + report.counts[key], 0);
    expect(sum('created')).toBe(2);
    expect(sum('repaired') + sum('present')).toBe(6);
    expect(await job.nabs(namespace)).toEqual([backup, neighbour].map((each) => expectedNab(each)).sort(byName));
    const told = await eventLines(objects, namespace);
    expect(told.filter((line) => line.includes('RecreatedFromVeleroBackup'))).toEqual([
      'daily RecreatedFromVeleroBackup x1',
      'neighbour RecreatedFromVeleroBackup x1',
    ]);
  });
});
