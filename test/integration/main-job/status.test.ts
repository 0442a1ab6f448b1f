import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { configMapResource, statusConfigMapName } from '../../../src/controller/sync-status.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { mainJob } from './support/main-job.ts';
import { metricsOf } from './support/scrape.ts';

const job = await mainJob();
const { gen, objects, oadpNamespace } = job;
await objects.create(gen.storageLocation());
const namespace = await job.createTenant('team');
await objects.create(gen.backup({ namespace }));

const ref = { namespace: oadpNamespace, name: statusConfigMapName };
const nonAdminQuota = {
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'no-nabs', namespace },
  spec: { hard: { 'count/nonadminbackups.oadp.openshift.io': '0' } },
  status: {
    hard: { 'count/nonadminbackups.oadp.openshift.io': '0' },
    used: { 'count/nonadminbackups.oadp.openshift.io': '0' },
  },
};

const statusReport = z.strictObject({
  lastAttemptTime: z.iso.datetime().optional(),
  lastSuccessfulSyncTime: z.iso.datetime().optional(),
  lastFailureTime: z.iso.datetime().optional(),
  lastFailureMessage: z.string().optional(),
  consecutiveFailures: z.number(),
  reasons: z.record(z.string(), z.number()),
});

const status = (): Promise<z.infer<typeof statusReport>> => job.json(statusReport, ['status']);

async function kept(): Promise<JsonObject> {
  return (await objects.get(configMapResource, ref)) ?? {};
}

// One story: each step goes on from what the one before it left.
describe('the status', () => {
  it('before anything was synced is empty, and says why', async () => {
    expect(await status()).toEqual({ consecutiveFailures: 0, reasons: {} });
    expect((await job.command(['status'])).stderr).toContain('nothing was synced yet');
  });

  it('of a pass with a failure has the attempt, the failure and its message, and no success', async () => {
    const quota = await objects.create(nonAdminQuota);
    expect((await job.command(['once'])).exitCode).toBe(1);
    const after = await status();
    expect(after).toEqual({
      lastAttemptTime: after.lastAttemptTime,
      lastFailureTime: after.lastFailureTime,
      lastFailureMessage: expect.stringMatching(
        `^1 backup could not be brought back: ${namespace}/daily: QuotaDenied: .*exceeded quota`,
      ) as string,
      consecutiveFailures: 1,
      reasons: { QuotaDenied: 1 },
    });
    expect(after.lastAttemptTime).toBeDefined();
    expect(after.lastFailureTime).toBeDefined();
    await objects.deleteObject(quota);
  });

  it('is not touched by a look at some namespaces only', async () => {
    const before = await kept();
    expect((await job.command(['once', '-n', job.tenant('other')])).exitCode).toBe(0);
    expect(await kept()).toEqual(before);
  });

  it('survives a restart: run goes on from it, in its metrics too, and a success keeps the last failure', async () => {
    const before = await status();
    const controller = await job.controller();
    await controller.firstPass();
    const after = await eventually(async () => {
      const found = await status();
      expect(found.lastSuccessfulSyncTime).toBeDefined();
      return found;
    });
    expect(after).toEqual({
      ...before,
      lastAttemptTime: after.lastAttemptTime,
      lastSuccessfulSyncTime: after.lastSuccessfulSyncTime,
      consecutiveFailures: 0,
      // As the first pass decided it: the NAB was missing, and is present from then on.
      reasons: { Present: 1 },
    });
    const metrics = await metricsOf(controller);
    const failed = metrics.value('nab_sync_last_failure_timestamp_seconds');
    expect(failed).toBe(Date.parse(before.lastFailureTime ?? '') / 1000);
    expect(metrics.value('nab_sync_consecutive_failures')).toBe(0);
  });

  it('is written once a pass at most', async () => {
    const controller = await job.controller(['--sync-period', '1s']);
    const passes = (): number => controller.log().filter(({ msg }) => msg === 'pass over all namespaces done').length;
    await eventually(() => {
      expect(passes()).toBeGreaterThanOrEqual(3);
    });
    const updated = 'nab_sync_requests_total{verb="update",resource="configmaps",code="OK"}';
    const writes = (await metricsOf(controller)).value(updated);
    expect(writes).toBeGreaterThan(0);
    expect(writes).toBeLessThanOrEqual(passes());
  });

  it('that somebody broke by hand harms nothing and is written anew, with the labels that it has', async () => {
    await objects.patch(configMapResource, ref, {
      metadata: { labels: { team: 'blue' } },
      data: { lastSuccessfulSyncTime: 'soon', consecutiveFailures: '-7', reasons: '{]', extra: '\u001b[2J' },
    });
    const shown = await job.command(['status']);
    expect(shown.exitCode).toBe(0);
    expect(shown.stderr).toContain('lastSuccessfulSyncTime, consecutiveFailures, reasons');
    expect(shown.stdout).toContain('Last successful sync:   never');

    expect((await job.command(['once'])).exitCode).toBe(0);
    const after = await status();
    expect(after).toMatchObject({ consecutiveFailures: 0, reasons: { Present: 1 } });
    expect(after.lastSuccessfulSyncTime).toBeDefined();
    const { metadata, data } = z
      .object({
        metadata: z.object({ labels: z.record(z.string(), z.string()) }),
        data: z.record(z.string(), z.string()),
      })
      .parse(await kept());
    expect(metadata.labels).toMatchObject({ team: 'blue' });
    expect(Object.keys(data)).not.toContain('extra');
  });

  it('that cannot be written is told in the log, and the work is done all the same', async () => {
    await objects.patch(configMapResource, ref, { immutable: true });
    await objects.delete(kinds.nonAdminBackups, { namespace, name: 'daily' });
    const { exitCode, stderr } = await job.command(['once']);
    expect(exitCode).toBe(0);
    expect(stderr).toContain('status of the passes not kept');
    expect(await job.nabNames(namespace)).toEqual([`${namespace}/daily`]);
    await objects.delete(configMapResource, ref);
  });
});
