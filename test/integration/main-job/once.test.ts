import countBy from 'lodash/countBy.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { objectAt } from '../../../src/kube/json.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { actionOf } from '../../../src/sync/reasons.ts';
import { eventsIn } from './support/events.ts';
import { mainJob } from './support/main-job.ts';
import { byName, expectedNab } from './support/nabs.ts';
import { onceReport } from './support/reports.ts';
import { versionsIn } from './support/versions.ts';
import { nabOf, worldOfReasons, type WorldOfReasons } from './support/world-of-reasons.ts';

const job = await mainJob();
let world: WorldOfReasons;
let namesBefore: string[];
let versionsBefore: Record<string, string>;
let report: z.infer<typeof onceReport>;
let began: number;

beforeAll(async () => {
  world = await worldOfReasons(job);
  namesBefore = await job.nabNames(...world.namespaces);
  versionsBefore = await versionsIn(job, world.namespaces);
  began = Date.now();
  report = await job.json(onceReport, ['once', ...world.flags]);
}, 60_000);

/** What `once` writes beside NABs. */
const ofTheProgram = /^(leases|events|configmaps) /;

describe('once, in a cluster in which every reason occurs', () => {
  it('reports as documented: outcome, times, counts, reasons, failures', () => {
    const outcomes = countBy(world.cases, ({ reason }) => actionOf[reason]);
    expect(report).toEqual({
      outcome: 'Succeeded',
      startTime: report.startTime,
      completionTime: report.completionTime,
      counts: {
        seen: world.cases.length,
        created: outcomes['create'],
        repaired: outcomes['repair'],
        present: outcomes['none'],
        skipped: outcomes['skip'],
        waiting: outcomes['wait'],
        conflict: outcomes['conflict'],
        failed: 0,
      },
      reasons: countBy(world.cases, 'reason'),
      failures: [],
    });
    expect(Object.keys(report.reasons)).toHaveLength(21);
    expect(Date.parse(report.startTime)).toBeGreaterThanOrEqual(began);
    expect(Date.parse(report.completionTime)).toBeGreaterThanOrEqual(Date.parse(report.startTime));
  });

  it('makes the NABs that are due, each exactly as designed, and no other anywhere', async () => {
    const due = world.cases.filter(({ reason }) => reason === 'Missing');
    const after = await job.nabNames(...world.namespaces);
    const made = after.filter((name) => !namesBefore.includes(name));
    expect(made).toEqual(due.map(({ claim }) => `${claim.namespace}/${claim.name}`).sort());
    expect(after.filter((name) => namesBefore.includes(name))).toEqual(namesBefore);

    const nabs = (await job.nabs(...world.namespaces)).filter((nab) => made.includes(keyOf(nab)));
    expect(nabs).toEqual(due.map(({ backup, nabslName }) => expectedNab(backup, nabslName)).sort(byName));
  });

  it('touches of what was there only the NABs in need of a status', async () => {
    const repaired = new Set(
      world.cases
        .filter(({ reason }) => actionOf[reason] === 'repair')
        .map(({ claim }) => `nonadminbackups ${claim.namespace}/${claim.name}`),
    );
    const after = await versionsIn(job, world.namespaces);
    const changed = Object.keys(versionsBefore).filter((key) => after[key] !== versionsBefore[key]);
    expect(changed.sort()).toEqual([...repaired].sort());
  });

  it('leaves spec and metadata of a repaired NAB as they were', async () => {
    for (const each of world.cases.filter(({ reason }) => reason === 'StatusMissing' || reason === 'StatusStale')) {
      const nab = await nabOf(job, each);
      expect(nab).toMatchObject({
        metadata: { generation: 1, labels: { 'openshift.io/oadp-nab-synced-from-nacuuid': each.claim.nacuuid } },
        spec: { backupSpec: {} },
        status: { phase: 'Created', veleroBackup: { nacuuid: each.claim.nacuuid } },
      });
    }
  });

  it('tells the tenants what came back or cannot, and nothing of what others claimed', async () => {
    const told = await eventsIn(job.objects, world.apps);
    const claims = world.cases.filter(({ claim }) => claim.namespace === world.apps);
    const conflicts = claims.filter(({ reason }) => reason === 'NameTaken').map(({ claim }) => claim.name);
    expect(
      told.filter(({ reason }) => reason === 'NameTaken').map(({ involvedObject }) => involvedObject.name),
    ).toEqual(conflicts.sort());
    expect(new Set(told.map(({ reason }) => reason))).toEqual(
      new Set(['RecreatedFromVeleroBackup', 'StatusMissing', 'StatusStale', 'NameTaken']),
    );
    const silent = claims.filter(({ reason }) => actionOf[reason] === 'skip');
    // Some share their name with one that did come back.
    const spoken = new Set(claims.filter((each) => !silent.includes(each)).map(({ claim }) => claim.name));
    const names = told.map(({ involvedObject }) => involvedObject.name);
    for (const { claim, backup } of silent) {
      if (!spoken.has(claim.name)) expect(names).not.toContain(claim.name);
      const { name } = objectAt(backup, 'metadata');
      expect(told.filter(({ message }) => message.includes(String(name)))).toEqual([]);
    }
  });

  it('has nothing left to do the second time: everything stays in its version', async () => {
    const before = await versionsIn(job, world.namespaces);
    const { exitCode, stdout, stderr } = await job.command(['once', ...world.flags, '-o', 'yaml']);
    expect({ exitCode, stderr: stderr.includes('"level":"error"') }).toEqual({ exitCode: 0, stderr: false });
    const second = onceReport.parse(parse(stdout));
    const { created, repaired, present } = report.counts;
    expect(second.counts).toEqual({
      ...report.counts,
      created: 0,
      repaired: 0,
      present: present + created + repaired,
    });
    const after = await versionsIn(job, world.namespaces);
    const changed = Object.keys(after).filter((key) => !ofTheProgram.test(key) && after[key] !== before[key]);
    expect(changed).toEqual([]);
    expect(Object.keys(after).sort()).toEqual(Object.keys(before).sort());
  });
});

function keyOf(nab: JsonObject): string {
  const { metadata } = z.object({ metadata: z.object({ namespace: z.string(), name: z.string() }) }).parse(nab);
  return `${metadata.namespace}/${metadata.name}`;
}
