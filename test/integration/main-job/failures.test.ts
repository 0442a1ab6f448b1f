import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { eventually } from '../../support/eventually.ts';
import { eventsIn } from './support/events.ts';
import { mainJob } from './support/main-job.ts';
import { byName, expectedNab } from './support/nabs.ts';
import { onceReport } from './support/reports.ts';

const job = await mainJob();
const { gen, objects } = job;

const lastWords = z.strictObject({
  time: z.iso.datetime(),
  version: z.string(),
  command: z.string(),
  exitCode: z.int(),
  code: z.string(),
  message: z.string(),
  failures: z.array(
    z.strictObject({ namespace: z.string(), name: z.string(), reason: z.string(), message: z.string() }),
  ),
  omittedFailures: z.int().positive().optional(),
  counts: z.record(z.string(), z.int().nonnegative()),
});

/** Lets the namespace have so many NABs and no more; returns when the API server goes by it. */
async function limitNabs(namespace: string, most: number): Promise<void> {
  const hard = { 'count/nonadminbackups.oadp.openshift.io': String(most) };
  await objects.create({
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'few', namespace },
    spec: { hard },
    // Counting is the controller manager's business, and there is none here.
    status: { hard, used: { 'count/nonadminbackups.oadp.openshift.io': '0' } },
  });
  const probes = Array.from({ length: most + 1 }, (_, index) => `probe-${index}`);
  await eventually(async () => {
    const path = `/apis/oadp.openshift.io/v1alpha1/namespaces/${namespace}/nonadminbackups?dryRun=All`;
    const { status: answer } = await job.api.request('POST', path, {
      body: gen.nonAdminBackup({ namespace, name: probes[0] ?? '' }),
    });
    expect(answer).toBe(most === 0 ? 403 : 201);
  });
}

let full: string;
let open: string;
let opened: JsonObject[];

beforeAll(async () => {
  await objects.create(gen.storageLocation());
  full = await job.createTenant('full');
  open = await job.createTenant('open');
  await limitNabs(full, 0);
  const names = Array.from({ length: 60 }, (_, index) => `a-backup-with-quite-a-long-name-of-its-own-${index}`);
  await Promise.all(names.map((name) => objects.create(gen.backup({ namespace: full, name }))));
  opened = await Promise.all(['one', 'two'].map((name) => objects.create(gen.backup({ namespace: open, name }))));
});

describe('a pass in which writes are refused', () => {
  it('fails for those, brings back all others, and leaves last words that fit', async () => {
    const path = await job.file('last-words', '');
    const { exitCode, stdout, stderr } = await job.command(['once', '-o', 'json', '--termination-log', path]);
    expect(exitCode).toBe(1);
    const report = onceReport.parse(JSON.parse(stdout));
    expect(report).toMatchObject({ outcome: 'Partial', counts: { seen: 62, created: 2, failed: 60 } });
    expect(report.reasons).toEqual({ Missing: 2, QuotaDenied: 60 });
    expect(report.failures).toHaveLength(60);
    const names = report.failures.map(({ name }) => name);
    expect(names).toEqual([...names].sort());
    for (const { namespace, reason, message } of report.failures) {
      expect({ namespace, reason }).toEqual({ namespace: full, reason: 'QuotaDenied' });
      expect(message).toContain('exceeded quota: few');
    }
    expect(stderr).not.toMatch(/\n\s+at /);

    const text = await readFile(path, 'utf8');
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4_096);
    const words = lastWords.parse(JSON.parse(text));
    expect(words).toMatchObject({ command: 'once', exitCode: 1, code: 'Partial' });
    expect(words.message).toBe('60 of 62 backups could not be brought back');
    expect(words.counts).toEqual(report.counts);
    expect(words.failures.length).toBeGreaterThan(0);
    expect(words.failures).toEqual(report.failures.slice(0, words.failures.length));
    expect(words.failures.length + (words.omittedFailures ?? 0)).toBe(60);

    expect(await job.nabs(full, open)).toEqual(opened.map((backup) => expectedNab(backup)).sort(byName));
  });

  it('tells the tenant once, with the number', async () => {
    const events = await eventsIn(objects, full);
    expect(events).toMatchObject([
      { type: 'Warning', reason: 'QuotaDenied', count: 1, involvedObject: { kind: 'Namespace', name: full } },
    ]);
    expect(events[0]?.message).toMatch(/^60 /);
  });

  it('is called Failed where nothing at all went well, and can be limited to what does go', async () => {
    const failed = await job.command(['once', '-n', full, '-o', 'json']);
    expect(failed.exitCode).toBe(1);
    expect(onceReport.parse(JSON.parse(failed.stdout))).toMatchObject({ outcome: 'Failed', counts: { failed: 60 } });
    const well = await job.json(onceReport, ['once', '-n', open]);
    expect(well).toMatchObject({ outcome: 'Succeeded', counts: { seen: 2, present: 2, failed: 0 } });
  });

  it('is a table for people, with the failures in it', async () => {
    const { stdout } = await job.command(['once', '-n', full]);
    expect(stdout).toMatch(/^OUTCOME +SEEN /);
    expect(stdout).toMatch(/^Failed +60 /m);
    expect(stdout.match(/^t\S+-full +a-backup-\S+ +QuotaDenied +/gm)).toHaveLength(60);
  });

  it('leaves no last words where nothing failed', async () => {
    const path = await job.file('no-last-words', '');
    const { exitCode } = await job.command(['once', '-n', open, '--termination-log', path]);
    expect(exitCode).toBe(0);
    expect(await readFile(path, 'utf8')).toBe('');
  });
});
