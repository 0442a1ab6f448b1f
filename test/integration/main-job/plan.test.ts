import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import { actionOf, type DecisionReason } from '../../../src/sync/reasons.ts';
import { mainJob } from './support/main-job.ts';
import { explainReport, planReport } from './support/reports.ts';
import { versionsIn } from './support/versions.ts';
import { worldOfReasons, type Case, type WorldOfReasons } from './support/world-of-reasons.ts';

const job = await mainJob();
let world: WorldOfReasons;
let plan: z.infer<typeof planReport>;

beforeAll(async () => {
  world = await worldOfReasons(job);
  plan = await job.json(planReport, ['plan', ...world.flags]);
}, 60_000);

const backupName = ({ backup }: Case): string => stringAt(objectAt(backup, 'metadata'), 'name') ?? '';

function theCase(title: string): Case {
  const found = world.cases.find((each) => each.title === title);
  if (found === undefined) throw new Error(`no case "${title}"`);
  return found;
}

describe('plan', () => {
  it('decides about every labelled Backup as its case calls for, and about nothing else', () => {
    const decided = plan.decisions.map(({ backup, action, reason }) => ({ backup, action, reason }));
    const due = world.cases.map((each) => ({
      title: each.title,
      backup: backupName(each),
      action: actionOf[each.reason],
      reason: each.reason,
    }));
    const titled = decided.map((each) => ({ title: due.find(({ backup }) => backup === each.backup)?.title, ...each }));
    const byBackup = (a: { backup: string }, b: { backup: string }): number => (a.backup < b.backup ? -1 : 1);
    expect(titled.sort(byBackup)).toEqual(due.sort(byBackup));
  });

  it('gives each of the reasons that there are', () => {
    const given = new Set<string>(plan.decisions.map(({ reason }) => reason));
    expect([...given].sort()).toEqual(Object.keys(actionOf).sort());
    expect(given.size).toBe(21);
  });

  it('counts the actions, those without a backup too', () => {
    const due: Record<string, number> = { create: 0, repair: 0, none: 0, skip: 0, waiting: 0, conflict: 0 };
    for (const { reason } of world.cases) {
      const action = actionOf[reason] === 'wait' ? 'waiting' : actionOf[reason];
      due[action] = (due[action] ?? 0) + 1;
    }
    expect(plan.counts).toEqual(due);
  });

  it('is sorted by namespace, name and Backup, byte by byte', () => {
    const keys = plan.decisions.map(({ namespace, name, backup }) => [namespace, name, backup].join('\0'));
    expect(keys).toEqual([...keys].sort());
  });

  it('says the same when asked again, and in every format', async () => {
    const [again, yaml, table] = await Promise.all([
      job.command(['plan', ...world.flags, '-o', 'json']),
      job.command(['plan', ...world.flags, '-o', 'yaml']),
      job.command(['plan', ...world.flags]),
    ]);
    expect(JSON.parse(again.stdout)).toEqual(plan);
    expect(parse(yaml.stdout)).toEqual(plan);
    const [header = '', ...rows] = table.stdout.trimEnd().split('\n');
    expect(header.split(/ {3,}/)).toEqual(['NAMESPACE', 'NAME', 'ACTION', 'REASON', 'BACKUP', 'MESSAGE']);
    expect(rows).toHaveLength(plan.decisions.length);
    expect([again, yaml, table].map(({ exitCode, stderr }) => ({ exitCode, stderr }))).toEqual(
      Array.from({ length: 3 }, () => ({ exitCode: 0, stderr: '' })),
    );
  });

  it('shows what a Backup claims without what a terminal would act on', () => {
    const { backup } = { backup: backupName(theCase('a name that would move the cursor')) };
    const shown = plan.decisions.find((each) => each.backup === backup);
    expect(shown?.name).toBe('\\u{1b}[2Jdaily');
    expect(JSON.stringify(plan)).not.toMatch(/\\u001b/i);
  });

  it('tells of the errors that Velero met while it deleted a backup', () => {
    const backup = backupName(theCase('a delete request with errors'));
    expect(plan.decisions.find((each) => each.backup === backup)?.message).toContain('the bucket does not answer');
  });

  it('with -n looks at what claims those namespaces only', async () => {
    const [one, two, list, none] = await Promise.all(
      [
        ['-n', world.bank],
        ['-n', world.bank, '-n', job.tenant('missing')],
        ['-n', `${world.bank},${job.tenant('missing')}`],
        ['-n', job.tenant('nobody')],
      ].map((args) => job.json(planReport, ['plan', ...world.flags, ...args])),
    );
    const claiming = (...namespaces: string[]): typeof plan.decisions =>
      plan.decisions.filter(({ namespace }) => namespaces.includes(namespace));
    expect(one?.decisions).toEqual(claiming(world.bank));
    expect(two?.decisions).toEqual(claiming(world.bank, job.tenant('missing')));
    expect(list).toEqual(two);
    expect(none).toEqual({
      decisions: [],
      counts: { create: 0, repair: 0, none: 0, skip: 0, waiting: 0, conflict: 0 },
    });
  });

  it('follows its flags: without them other namespaces and locations count', async () => {
    const { decisions } = await job.json(planReport, ['plan']);
    const reasonOf = (title: string): string | undefined =>
      decisions.find(({ backup }) => backup === backupName(theCase(title)))?.reason;
    expect(reasonOf('in a location that the admin named')).toBe('UnwatchedStorageLocation');
    expect(reasonOf('a namespace without the label')).toBe('Missing');
    expect(reasonOf(`claims ${job.tenant('vault')}`)).toBe('NamespaceMissing');
    expect(reasonOf('claims openshift-monitoring')).toBe('ProtectedNamespace');
  });

  it('writes nothing, not even a Lease', async () => {
    const before = await versionsIn(job, world.namespaces);
    expect(Object.keys(before).length).toBeGreaterThan(world.cases.length);
    await job.json(planReport, ['plan', ...world.flags]);
    expect(await versionsIn(job, world.namespaces)).toEqual(before);
    expect(Object.keys(before).filter((key) => key.startsWith('leases'))).toEqual([]);
  });
});

describe('explain', () => {
  const explain = async (target: string): Promise<z.infer<typeof explainReport>['explanations']> =>
    (await job.json(explainReport, ['explain', target, ...world.flags])).explanations;

  it('gives for a Backup the decision of the plan, and the trail that led to it', async () => {
    // By how many rules there are until one decides: the further a backup gets, the more are looked at.
    const titles = {
      'no NACUUID': 1,
      'bank forges for apps': 7,
      'still runs': 10,
      'a NAB without a status': 13,
      'Velero never read it': 15,
      completed: 18,
    };
    await Promise.all(
      Object.entries(titles).map(async ([title, decidedAt]) => {
        const name = backupName(theCase(title));
        const [explained, ...others] = await explain(name);
        expect(others).toEqual([]);
        const { trail, decision, ...identity } = explained ?? { trail: [], decision: {} };
        expect({ ...identity, ...decision }).toEqual(plan.decisions.find(({ backup }) => backup === name));
        expect(trail.map(({ rule, outcome }) => [rule, outcome])).toEqual(
          Array.from({ length: 18 }, (_, index) => [
            index + 1,
            index + 1 < decidedAt ? 'passed' : index + 1 === decidedAt ? 'decided' : 'notReached',
          ]),
        );
        // What no rule came to look at is not shown as if one had.
        expect(trail.slice(decidedAt).map(({ values }) => values)).toEqual(trail.slice(decidedAt).map(() => ({})));
      }),
    );
  });

  it('of NAMESPACE/NAME is about every Backup that claims it', async () => {
    const explained = await explain(`${world.apps}/made-anew`);
    const reasons: [string, DecisionReason][] = explained.map(({ backup, decision }) => [
      backup,
      z.enum(['Superseded', 'Missing']).parse(decision.reason),
    ]);
    const due = [theCase('an older one'), theCase('a newer one')].map((each) => [backupName(each), each.reason]);
    expect(reasons.sort()).toEqual(due.sort());
  });

  it('is for people, too', async () => {
    const { exitCode, stdout } = await job.command(['explain', `${world.apps}/completed`, ...world.flags]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^Reason: +Missing$/m);
    expect(stdout.split('\n').filter((line) => /^\d+ +(passed|decided|not reached) /.test(line))).toHaveLength(18);
  });

  it.each([
    ['a NAB that no Backup claims', 'nobody/nothing'],
    ['a Backup that there is not', 'nothing'],
  ])('of %s says so in one line and fails', async (_, target) => {
    const { exitCode, stdout, stderr } = await job.command(['explain', target]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(/^nab-sync: .*matches.*\n$/);
    expect(stderr).toContain(target);
  });
});
