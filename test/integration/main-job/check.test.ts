import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { checkNames } from '../../../src/controller/check/verdict.ts';
import { leaseName } from '../../../src/controller/sync-setup.ts';
import { leaseResource, newLease } from '../../../src/kube/lease-record.ts';
import { qualifiedName, type JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { rights } from '../../../src/controller/rights.ts';
import { isolated } from '../../support/isolated.ts';
import { runNabSync } from '../../support/nab-sync.ts';
import { install, type Installation } from '../security/support/installation.ts';
import { meddlingProxy } from './support/meddling-proxy.ts';

/** `check` with the rights of the installed ServiceAccount, in a cluster in which one thing after another is misconfigured. */

const here = await isolated();
const { objects } = here;
let nabSync: Installation;
let tenant: string;

const checkReport = z.strictObject({
  checks: z.array(
    z.strictObject({
      check: z.enum(checkNames),
      status: z.enum(['OK', 'WARN', 'FAIL']),
      message: z.string(),
      next: z.string().optional(),
    }),
  ),
  counts: z.strictObject({ OK: z.number(), WARN: z.number(), FAIL: z.number() }),
});

interface Checked {
  readonly exitCode: number | null;
  /** `check STATUS: message → next` of each result that is not OK. */
  readonly complaints: readonly string[];
}

async function check(args: readonly string[] = [], kubeconfig = nabSync.kubeconfig): Promise<Checked> {
  const { exitCode, stdout, stderr } = await runNabSync(
    ['check', '-o', 'json', '--namespace-selector', 'backups=on', ...args],
    { kubeconfig, oadpNamespace: nabSync.oadpNamespace },
  );
  if (stdout === '') throw new Error(`exit code ${String(exitCode)}: ${stderr}`);
  const { checks, counts } = checkReport.parse(JSON.parse(stdout));
  expect(exitCode).toBe(counts.FAIL === 0 ? 0 : 1);
  return {
    exitCode,
    complaints: checks
      .filter(({ status }) => status !== 'OK')
      .map(({ check: name, status, message, next = '' }) => `${name} ${status}: ${message} → ${next}`),
  };
}

/** Creates objects that go at the end of the test. */
async function present(...wanted: readonly JsonObject[]): Promise<void> {
  for (const object of wanted) {
    await objects.create(object);
    onTestFinished(() => objects.deleteObject(object));
  }
}

async function patched(
  resource: typeof kinds.backups,
  name: string,
  patch: JsonObject,
  undo: JsonObject,
): Promise<void> {
  const ref = { namespace: nabSync.oadpNamespace, name };
  await objects.patch(resource, ref, patch);
  onTestFinished(async () => {
    await objects.patch(resource, ref, undo);
  });
}

/** A Lease whose holder renewed it so many milliseconds ago. */
function lease(holder: string, renewedMsAgo: number): JsonObject {
  const { oadpNamespace } = nabSync;
  const claim = { identity: holder, durationMs: 15_000, now: Date.now() - renewedMsAgo };
  return newLease(leaseName, oadpNamespace, claim);
}

const alive = 'pod-1_00000000-0000-4000-8000-000000000000';

beforeAll(async () => {
  nabSync = await install(here, 'adp');
  tenant = await here.createTenant('team', { backups: 'on' });
  await objects.create(nabSync.gen.storageLocation());
  await objects.create(nabSync.gen.dataProtectionApplication());
  await objects.create(nabSync.gen.ownedStorageLocation({ namespace: tenant }));
  await objects.create(nabSync.gen.nonAdminStorageLocation({ namespace: tenant }));
  // Leaves its status and a free Lease behind.
  await runNabSync(['once'], nabSync);
  await objects.delete(leaseResource, { namespace: nabSync.oadpNamespace, name: leaseName });
});

describe('check', () => {
  it('says OK to everything where all is in order, ends with 0, and writes nothing', async () => {
    await present(lease(alive, 0));
    expect(await check()).toEqual({ exitCode: 0, complaints: [] });
    const table = await runNabSync(['check', '--namespace-selector', 'backups=on'], nabSync);
    const [header = '', ...rows] = table.stdout.trimEnd().split('\n');
    expect(header).toMatch(/^CHECK {3,}STATUS {3,}MESSAGE$/);
    expect(rows.map((row) => row.split(/ +/).slice(0, 2))).toEqual(checkNames.map((name) => [name, 'OK']));
    expect(table.stdout).toContain(`system:serviceaccount:${nabSync.oadpNamespace}:`);
    expect(table.stderr).toBe('');
  });
});

describe('check finds, and says what to do about it,', () => {
  it('1: a right that is missing, each by its name', async () => {
    await present(lease(alive, 0));
    const missing = rights.filter(
      ({ verb, resource }) =>
        (verb === 'create' && resource === kinds.nonAdminBackups) || (verb === 'list' && resource === kinds.backups),
    );
    await nabSync.withdraw(...missing);
    onTestFinished(() => nabSync.restore());
    const { exitCode, complaints } = await check();
    expect(exitCode).toBe(1);
    expect(complaints).toHaveLength(2);
    for (const { verb, resource } of missing) {
      const pattern = new RegExp(
        `^rights FAIL: .* may not ${verb} ${qualifiedName(resource)}, .*→ grant ${verb} as the `,
      );
      expect(complaints).toContainEqual(expect.stringMatching(pattern));
    }
  });

  it('2: an OADP namespace that is not there, or not the right one', async () => {
    const nowhere = await check(['--oadp-namespace', here.tenant('nowhere')], here.adminKubeconfig);
    expect(nowhere.exitCode).toBe(1);
    expect(nowhere.complaints).toContainEqual(
      expect.stringMatching(/^oadp-namespace FAIL: there is no namespace .*--oadp-namespace/),
    );
    const wrong = await check(['--oadp-namespace', tenant], here.adminKubeconfig);
    expect(wrong.exitCode).toBe(0);
    expect(wrong.complaints).toContainEqual(expect.stringMatching(/^dpa WARN: there is no DataProtectionApplication/));
    expect(wrong.complaints).toContainEqual(expect.stringMatching(/^storage-locations WARN: no .* is the default/));
  });

  it('3: a DPA that does not enable non-admin backups', async () => {
    await present(lease(alive, 0));
    await patched(
      kinds.dataProtectionApplications,
      'dpa',
      { spec: { nonAdmin: { enable: false } } },
      { spec: { nonAdmin: { enable: true } } },
    );
    expect((await check()).complaints).toEqual([expect.stringMatching(/^dpa WARN: .* → set spec\.nonAdmin\.enable/)]);
  });

  it('4: a second DPA that enables them', async () => {
    const second = nabSync.gen.dataProtectionApplication();
    await present(lease(alive, 0), { ...second, metadata: { name: 'other', namespace: nabSync.oadpNamespace } });
    expect((await check()).complaints).toEqual([
      expect.stringMatching(/^dpa WARN: several .*\(dpa, other\); dpa is used/),
    ]);
  });

  it('5: periods in the wrong order, on either side', async () => {
    await present(lease(alive, 0));
    expect((await check(['--sync-period', '10s'])).complaints).toEqual([
      expect.stringMatching(/^periods WARN: the sync period of 10s is not longer than .* → raise --sync-period/),
    ]);
    await patched(
      kinds.dataProtectionApplications,
      'dpa',
      { spec: { nonAdmin: { backupSyncPeriod: '2h', garbageCollectionPeriod: '1h' } } },
      { spec: { nonAdmin: { backupSyncPeriod: null, garbageCollectionPeriod: null } } },
    );
    expect((await check()).complaints).toEqual([
      expect.stringMatching(
        /^periods WARN: the sync period of 2h0m0s is not shorter than the 1h0m0s .* → lower spec\.nonAdmin\.backupSyncPeriod/,
      ),
    ]);
  });

  it('6: an interval that the DPA switches off', async () => {
    await present(lease(alive, 0));
    await patched(
      kinds.dataProtectionApplications,
      'dpa',
      { spec: { nonAdmin: { backupSyncPeriod: '0s' } } },
      { spec: { nonAdmin: { backupSyncPeriod: null } } },
    );
    expect((await check()).complaints).toEqual([
      expect.stringMatching(/^periods WARN: there is no interval, .*SYNC_PERIOD/),
    ]);
    expect((await check(['--sync-period', '5m'])).complaints).toEqual([]);
  });

  it('7: a storage location that is named and is not there, and one that Velero cannot read', async () => {
    await present(lease(alive, 0));
    const { exitCode, complaints } = await check(['--storage-location', 'yesterday']);
    expect({ exitCode, complaints }).toEqual({
      exitCode: 1,
      complaints: [expect.stringMatching(/^storage-locations FAIL: there is no BackupStorageLocation "yesterday"/)],
    });
    await patched(
      kinds.backupStorageLocations,
      'default',
      { status: { phase: 'Unavailable' } },
      { status: { phase: 'Available' } },
    );
    expect((await check()).complaints).toEqual([expect.stringMatching(/^storage-locations WARN: .*not Available/)]);
  });

  it('8: a tenant’s location without its owner, and one with an owner that is not its own', async () => {
    const other = await here.createTenant('other');
    await present(lease(alive, 0), nabSync.gen.ownedStorageLocation({ namespace: other }));
    expect((await check()).complaints).toEqual([expect.stringMatching(/^location-owners WARN: .* is not there/)]);
    await present(nabSync.gen.nonAdminStorageLocation({ namespace: other, nacuuid: 'a-later-one' }));
    expect((await check()).complaints).toEqual([
      expect.stringMatching(/^location-owners WARN: .* a new one of an old name/),
    ]);
  });

  it('9: clocks that differ', async () => {
    await present(lease(alive, 0));
    const proxy = await meddlingProxy(nabSync.kubeconfig, () => undefined, {
      date: new Date(Date.now() + 3_600_000).toUTCString(),
    });
    onTestFinished(() => proxy.close());
    const meddled = await here.file('skewed.kubeconfig', proxy.kubeconfig);
    const { exitCode, complaints } = await check([], meddled);
    expect(exitCode).toBe(1);
    expect(complaints[0]).toMatch(
      /^clock FAIL: this machine’s clock is (1h|59m|1h0m)\w* behind the API server’s → set/,
    );
  });

  it('10: a Lease that nobody holds, that a stranger holds, or whose holder has stopped', async () => {
    expect((await check()).complaints).toEqual([expect.stringMatching(/^lease WARN: nobody holds/)]);
    for (const [held, pattern] of [
      [lease('velero-server', 0), /^lease WARN: "velero-server", which is no nab-sync, holds/],
      [lease(alive, 600_000), /^lease WARN: "pod-1_.*has not renewed it for \d+m/],
    ] as const) {
      await objects.create(held);
      expect((await check()).complaints).toEqual([expect.stringMatching(pattern)]);
      await objects.deleteObject(held);
    }
  });

  it('11: that any namespace of the right name gets the backups, or that none does', async () => {
    await present(lease(alive, 0));
    expect((await check(['--namespace-selector', ''])).complaints).toEqual([
      expect.stringMatching(/^namespace-selector WARN: .*whoever created it/),
    ]);
    expect((await check(['--namespace-selector', `no=${tenant}`])).complaints).toEqual([
      expect.stringMatching(/^namespace-selector WARN: no namespace has the labels/),
    ]);
  });

  it('12: passes that fail', async () => {
    await present(lease(alive, 0));
    await patched(
      { ...kinds.backups, group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap' },
      'nab-sync-status',
      { data: { consecutiveFailures: '3', lastFailureMessage: 'exceeded quota' } },
      { data: { consecutiveFailures: '0' } },
    );
    expect((await check()).complaints).toEqual([
      expect.stringMatching(/^last-sync WARN: the last 3 passes had failures .*: exceeded quota/),
    ]);
  });

  it('a server that cannot be asked, by one line and exit code 1', async () => {
    const broken = await here.file('broken.kubeconfig', here.api.kubeconfigFor({ token: 'no-token' }));
    const { exitCode, stdout, stderr } = await runNabSync(['check'], { ...nabSync, kubeconfig: broken });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(/^nab-sync: .*credentials refused/);
  });
});
