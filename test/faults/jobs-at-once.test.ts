import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { z } from 'zod';
import { eventResource } from '../../src/kube/event-object.ts';
import { startNabSync, type NabSyncExit, type NabSyncProcess } from '../support/nab-sync.ts';
import { faultBudget } from './budget.ts';
// Declares what the run's setup provides.
import type {} from './global-setup.ts';
import { Restore } from './restore.ts';
import { oadpNamespace, Stage } from './stage.ts';

const { long } = faultBudget();
const rounds = long ? 50 : 3;
const atOnce = 4;

let stage: Stage;
let restore: Restore;
let kubeconfig: string;

beforeAll(async () => {
  stage = await Stage.open();
  restore = new Restore(stage);
  const { admin } = stage.controlPlane;
  kubeconfig = await stage.file('job', admin.kubeconfigFor({ token: await stage.token(), namespace: oadpNamespace }));
});

afterAll(async () => {
  await stage.close();
});

interface Job {
  readonly process: NabSyncProcess;
  readonly lastWords: string;
}

/** The pod of a Job, as the manifest starts it. */
async function startJob(): Promise<Job> {
  const lastWords = await stage.file('termination-log', '');
  const process = await startNabSync(['once', '--output', 'json', '--termination-log', lastWords], {
    kubeconfig,
    oadpNamespace,
    program: inject('faultsBundle'),
  });
  return { process, lastWords };
}

const report = z.looseObject({
  outcome: z.string(),
  counts: z.record(z.string(), z.int()),
  holder: z.string().optional(),
});

async function expectGoodEnd({ process, lastWords }: Job): Promise<z.infer<typeof report>> {
  const exit: NabSyncExit = await process.exited;
  expect({ exitCode: exit.exitCode, stderr: exit.stderr }).toMatchObject({ exitCode: 0 });
  expect(exit.stderr).not.toMatch(/"level":"(warn|error|fatal)"/);
  expect(await readFile(lastWords, 'utf8')).toBe('');
  const told = report.parse(JSON.parse(exit.stdout));
  expect(['Succeeded', 'Skipped']).toContain(told.outcome);
  // Whoever leaves the work to another says to whom.
  expect(told.holder === undefined).toBe(told.outcome === 'Succeeded');
  return told;
}

const eventShape = z.object({
  involvedObject: z.object({ namespace: z.string(), name: z.string() }),
  reason: z.string(),
  count: z.int(),
  source: z.object({ component: z.string().optional() }).optional(),
});

/** That every NAB was told of in one event, once. */
async function expectNoDuplicateEvent(): Promise<void> {
  const told = (await stage.objects.list(eventResource))
    .map((event) => eventShape.parse(event))
    .filter(({ source }) => source?.component === 'nab-sync');
  const about = told.map(
    ({ involvedObject, reason }) => `${involvedObject.namespace}/${involvedObject.name} ${reason}`,
  );
  expect(about.length).toBe(new Set(about).size);
  expect(told.filter(({ count }) => count !== 1)).toEqual([]);
}

it(
  `${rounds} rounds of ${atOnce} Jobs at once: the same end state as of one, no error, no event twice`,
  async () => {
    await restore.prepare({ tenants: 3, backups: 2 });
    const outcomes: Record<string, number> = {};
    for (let round = 0; round < rounds; round += 1) {
      // As few of a namespace as are told in events of their own.
      await Promise.all([0, 1, 2].map((tenant) => restore.addBackup(`team-${tenant}`)));
      const jobs = await Promise.all(Array.from({ length: atOnce }, () => startJob()));
      const told = await Promise.all(jobs.map((job) => expectGoodEnd(job)));
      for (const { outcome } of told) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      const created = told.reduce((sum, { counts }) => sum + (counts['created'] ?? 0), 0);
      expect(created).toBe(round === 0 ? 9 : 3);
      expect(await restore.wrong()).toEqual([]);
      await expectNoDuplicateEvent();
    }
    process.stdout.write(`${rounds} rounds of ${atOnce} Jobs: ${JSON.stringify(outcomes)}\n`);
  },
  60_000 + rounds * 60_000,
);

it('a Job that is killed in the middle and started again ends like one that was not', async () => {
  await Promise.all(Array.from({ length: 30 }, (_, index) => restore.addBackup(`team-${index % 3}`)));
  const due = restore.size;
  const killed = await startJob();
  await restore.untilRestored(due - 25);
  killed.process.signal('SIGKILL');
  expect((await killed.process.exited).exitCode).toBeNull();
  // The Job controller starts the next pod after ten seconds or so, and the Lease is waited for.
  await sleep(1_000);
  const told = await expectGoodEnd(await startJob());
  expect(told.outcome).toBe('Succeeded');
  expect(told.counts['seen']).toBe(due);
  expect(await restore.wrong()).toEqual([]);
}, 120_000);
