import { beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { startNabSync } from '../../support/nab-sync.ts';
import { eventsIn } from '../main-job/support/events.ts';
import { mainJob, untilTheEndOfTheFile } from '../main-job/support/main-job.ts';
import { createCounter } from './support/create-counter.ts';
import { passOver } from './support/passes.ts';

/** A tenant's quota ends the pass of his namespace after few tries, and nobody else's (field case D6). */

const job = await mainJob();
const { gen, objects } = job;
const creates = await createCounter(job);

const counted = 'count/nonadminbackups.oadp.openshift.io';
const quotas = { group: '', version: 'v1', plural: 'resourcequotas', kind: 'ResourceQuota', namespaced: true };
/** Most that are under way in a namespace when the first refusal comes. */
const underWay = 12;

/** No controller manager runs here, so what is used is written by hand; the API server counts on from there. */
async function limit(namespace: string, hard: number, used = 0): Promise<void> {
  const status = { hard: { [counted]: String(hard) }, used: { [counted]: String(used) } };
  await objects.apply({
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'nabs', namespace },
    spec: { hard: { [counted]: String(hard) } },
  });
  await objects.setStatus(quotas, { namespace, name: 'nabs' }, status);
  // The API server goes by its own copy, which follows a moment later.
  await eventually(async () => {
    const path = `/apis/oadp.openshift.io/v1alpha1/namespaces/${namespace}/nonadminbackups?dryRun=All`;
    const body = gen.nonAdminBackup({ namespace, name: 'probe' });
    expect((await job.api.request('POST', path, { body })).status).toBe(used < hard ? 201 : 403);
  });
}

async function backUp(namespace: string, ...names: string[]): Promise<void> {
  await Promise.all(names.map((name) => objects.create(gen.backup({ namespace, name }))));
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `b${index}`);

beforeAll(async () => {
  await objects.create(gen.storageLocation());
});

describe('a namespace whose quota has room for 3 of its 40 NABs', () => {
  let full: string;
  let neighbours: string[];
  let pass: Awaited<ReturnType<typeof passOver>>;

  beforeAll(async () => {
    full = await job.createTenant('full');
    neighbours = [await job.createTenant('left'), await job.createTenant('right')];
    await backUp(full, ...numbered(40));
    for (const neighbour of neighbours) await backUp(neighbour, ...numbered(5));
    await limit(full, 3);
    pass = await passOver(job, [full, ...neighbours], creates.kubeconfig);
  });

  it('gets these 3, and its pass ends with the first refusal, not after 40', async () => {
    expect(await job.nabNames(full)).toHaveLength(3);
    expect(creates.in(full)).toBeLessThanOrEqual(3 + underWay);
  });

  it('has every other one reported as QuotaDenied, with its name and what the server said', () => {
    expect(pass.exitCode).toBe(1);
    expect(pass.report).toMatchObject({ outcome: 'Partial', counts: { seen: 50, created: 13, failed: 37 } });
    expect(pass.report.reasons).toEqual({ Missing: 13, QuotaDenied: 37 });
    expect(new Set(pass.report.failures.map(({ name }) => name)).size).toBe(37);
    for (const { namespace, message } of pass.report.failures) {
      expect(namespace).toBe(full);
      expect(message).toContain('exceeded quota: nabs');
    }
  });

  it('does not cost its neighbours anything', async () => {
    for (const neighbour of neighbours) expect(await job.nabNames(neighbour)).toHaveLength(5);
  });

  it('is told once, with the count', async () => {
    const denied = (await eventsIn(objects, full)).filter(({ reason }) => reason === 'QuotaDenied');
    expect(denied).toMatchObject([{ type: 'Warning', count: 1, involvedObject: { kind: 'Namespace', name: full } }]);
    expect(denied[0]?.message).toMatch(/^37 NonAdminBackup/);
  });

  it('has the rest when the quota is raised', async () => {
    await limit(full, 100, 3);
    const { exitCode, report } = await passOver(job, [full]);
    expect({ exitCode, failures: report.failures }).toEqual({ exitCode: 0, failures: [] });
    expect(await job.nabNames(full)).toHaveLength(40);
  });
});

describe('NABs with names as long as they may be', () => {
  it('are refused by a quota under its own reason, though the server’s sentence begins with 253 characters of name', async () => {
    const namespace = await job.createTenant('long');
    const name = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`;
    expect(name).toHaveLength(253);
    await backUp(namespace, name);
    await limit(namespace, 0);
    const { exitCode, report } = await passOver(job, [namespace]);
    expect(exitCode).toBe(1);
    expect(report.failures).toMatchObject([{ namespace, name, reason: 'QuotaDenied' }]);
    expect(report.failures[0]?.message).toContain('exceeded quota: nabs');
  });
});

describe('the controller', () => {
  it('tries one at a time, less and less often, and brings all back soon after the quota is raised', async () => {
    const namespace = await job.createTenant('patient');
    await backUp(namespace, ...numbered(30));
    await limit(namespace, 0);
    creates.reset();
    const controller = await startNabSync(['run', '--sync-period', '500ms'], {
      kubeconfig: creates.kubeconfig,
      oadpNamespace: job.oadpNamespace,
    });
    untilTheEndOfTheFile(async () => {
      await controller.stop();
    });
    const denied = async (): Promise<Awaited<ReturnType<typeof eventsIn>>> =>
      (await eventsIn(objects, namespace)).filter(({ reason }) => reason === 'QuotaDenied');
    await eventually(async () => {
      expect(await denied()).toHaveLength(1);
    });
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    // The first pass, and then one a try, after about 1, 2 and 4 seconds: not every half second, and not 30.
    expect(creates.in(namespace)).toBeLessThanOrEqual(underWay + 5);
    expect(await denied()).toMatchObject([{ count: 1 }]);
    await limit(namespace, 100);
    await eventually(async () => {
      expect(await job.nabNames(namespace)).toHaveLength(30);
    }, 20_000);
    expect((await controller.stop()).stderr).not.toMatch(/"level":"(error|fatal)"/);
  });
});
