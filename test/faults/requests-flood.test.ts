import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { objectAt, stringAt } from '../../src/kube/json.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { answerOf, ask } from '../support/sync-requests.ts';
import { faultBudget, stated } from './budget.ts';
import { Replica } from './replica.ts';
import { Restore } from './restore.ts';
import { Stage } from './stage.ts';

const { long } = faultBudget();
const flood = long ? 1000 : 200;
const flooded = 'team-0';
const calm = ['team-1', 'team-2', 'team-3', 'team-4'];
const during = ['team-5', 'team-6', 'team-7', 'team-8'];
/** Fewer than a namespace may have one after the other without waiting. */
const samplesOfEach = 4;

let stage: Stage;
let restore: Restore;
let replica: Replica;

beforeAll(async () => {
  stage = await Stage.open();
  restore = new Restore(stage);
  await restore.prepare({ tenants: 9, backups: 5 });
  replica = await Replica.create(stage, { args: ['--no-leader-elect'] });
  await replica.start();
  await restore.untilRight(60_000);
});

afterAll(async () => {
  await replica.close();
  await stage.close();
});

async function msOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

async function untilNab(namespace: string): Promise<void> {
  const name = await restore.addBackup(namespace);
  while ((await stage.objects.get(kinds.nonAdminBackups, { namespace, name })) === undefined) await sleep(2);
}

/** How long tenants wait for the answer to a request, and for a NAB to come back; in ms, sorted. */
async function latencies(namespaces: readonly string[]): Promise<{ answers: number[]; nabs: number[] }> {
  const answers: number[] = [];
  const nabs: number[] = [];
  for (let sample = 0; sample < samplesOfEach; sample += 1) {
    for (const namespace of namespaces) {
      answers.push(
        await msOf(async () => answerOf(stage.objects, namespace, await ask(stage.objects, namespace), 60_000)),
      );
      nabs.push(await msOf(() => untilNab(namespace)));
    }
  }
  return { answers: answers.sort((a, b) => a - b), nabs: nabs.sort((a, b) => a - b) };
}

function shown(sorted: readonly number[]): string {
  const at = (part: number) => Math.round(sorted[Math.floor((sorted.length - 1) * part)] ?? 0);
  return `median ${at(0.5)}, most ${at(1)} ms`;
}

it(`${flood} requests of one tenant cost few syncs, get an answer each, and keep nobody else waiting`, async () => {
  const before = await latencies(calm);
  const began = performance.now();
  let asked = 0;
  const makers = Array.from({ length: 8 }, async () => {
    while (asked < flood) {
      asked += 1;
      await ask(stage.objects, flooded);
    }
  });
  const meanwhile = latencies(during);
  await Promise.all(makers);
  const made = performance.now() - began;
  const whileFlooded = await meanwhile;
  const unanswered = async (): Promise<number> => {
    const requests = await stage.objects.list(kinds.syncRequests, { namespace: flooded });
    const phases = requests.map(({ status }) => stringAt(objectAt({ status }, 'status'), 'phase'));
    expect(phases.filter((phase) => !['Pending', 'Running', 'Succeeded'].includes(phase ?? ''))).toEqual([]);
    return phases.filter((phase) => phase !== 'Succeeded').length;
  };
  while ((await unanswered()) > 0) await sleep(100);
  const answered = performance.now() - began;
  const syncs = replica.logLines.filter(
    ({ msg, namespace }) => msg === 'sync requests answered' && namespace === flooded,
  );
  process.stdout.write(
    `${flood} requests made in ${Math.round(made)} ms, answered in ${Math.round(answered)} ms by ${syncs.length} syncs; ` +
      `answer to others: before ${shown(before.answers)}, meanwhile ${shown(whileFlooded.answers)}; ` +
      `NAB of others: before ${shown(before.nabs)}, meanwhile ${shown(whileFlooded.nabs)}\n`,
  );
  expect(syncs.length).toBeLessThanOrEqual(5 + Math.ceil(answered / 5_000));
  expect(whileFlooded.answers.at(-1)).toBeLessThan(stated(5_000));
  expect(whileFlooded.nabs.at(-1)).toBeLessThan(stated(5_000));
  expect(replica.logLines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
}, 300_000);
