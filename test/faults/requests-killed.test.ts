import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { objectAt, stringAt } from '../../src/kube/json.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { answerOf, ask, finalStatus } from '../support/sync-requests.ts';
import { faultBudget } from './budget.ts';
import { Replica } from './replica.ts';
import { Restore } from './restore.ts';
import { wrongEvents } from './rounds/verdict.ts';
import { oadpNamespace, Stage } from './stage.ts';

const { long } = faultBudget();
const kills = long ? 50 : 3;
const tenants = ['team-0', 'team-1', 'team-2'];
const addedEachRound = 5;

let stage: Stage;
let restore: Restore;
/** One that leads at once, and one that has to wait for the Lease of the one that was killed. */
let hasty: Replica;
let electing: Replica;

beforeAll(async () => {
  stage = await Stage.open();
  restore = new Restore(stage);
  hasty = await Replica.create(stage, { args: ['--no-leader-elect', '--concurrency', '2'] });
  electing = await Replica.create(stage, { args: ['--concurrency', '2'] });
});

afterAll(async () => {
  await hasty.close();
  await electing.close();
  await stage.close();
});

interface Asked {
  readonly namespace: string;
  readonly name: string;
}

async function phaseOf({ namespace, name }: Asked): Promise<string> {
  const request = await stage.objects.get(kinds.syncRequests, { namespace, name });
  return stringAt(objectAt(request ?? {}, 'status'), 'phase') ?? 'gone';
}

/** uids of all NABs by `namespace/name`. */
async function nabs(): Promise<Map<string, string>> {
  const found = await stage.objects.list(kinds.nonAdminBackups);
  return new Map(
    found.map((nab) => {
      const { namespace, name, uid } = objectAt(nab, 'metadata');
      return [`${String(namespace)}/${String(name)}`, String(uid)];
    }),
  );
}

it(
  `after ${kills} kills in mid-request every request has a true final status, and every NAB is there once`,
  async () => {
    await restore.prepare({ tenants: tenants.length, backups: addedEachRound });
    // So that a sync takes long enough to be killed in its middle.
    for (const { proxy } of [hasty, electing]) {
      proxy.inject({
        fault: { kind: 'slowHeaders', ms: 15 },
        on: { verbs: ['create'], resources: ['nonadminbackups'] },
      });
    }
    const uids = new Map<string, string>();
    const seenPhases: Record<string, number> = {};
    let resumed = 0;
    for (let round = 0; round < kills; round += 1) {
      const replica = round % 10 === 9 || round === kills - 1 ? electing : hasty;
      await replica.start();
      // It is at work.
      await answerOf(stage.objects, 'team-0', await ask(stage.objects, 'team-0'), 60_000);
      const before = addedEachRound * (round + 1);
      await Promise.all(
        tenants.flatMap((tenant) => Array.from({ length: addedEachRound }, () => restore.addBackup(tenant))),
      );
      const asked: Asked[] = [];
      const askIn = async (namespace: string): Promise<void> => {
        asked.push({ namespace, name: await ask(stage.objects, namespace) });
      };
      await Promise.all([...tenants, ...tenants, oadpNamespace].map(askIn));
      await sleep(Math.random() * 600);
      await replica.kill();
      for (const request of asked) {
        const phase = await phaseOf(request);
        seenPhases[phase] = (seenPhases[phase] ?? 0) + 1;
      }
      // Somebody else asks while nobody is there to answer.
      await askIn('team-0');
      await replica.start();
      for (const request of asked) {
        const { namespace, name } = request;
        const status = finalStatus.parse(await answerOf(stage.objects, namespace, name, 60_000));
        expect(status).toMatchObject({ phase: 'Succeeded', oadpNamespace, history: { consecutiveFailures: 0 } });
        const { seen, ...counts } = status.counts;
        expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(seen);
        const covered = namespace === oadpNamespace ? tenants.length : 1;
        expect(status.namespaces).toBe(covered);
        // The last of this round's backups may not have been heard of when the sync began.
        expect(seen).toBeGreaterThanOrEqual(before * covered);
        expect(seen).toBeLessThanOrEqual((before + addedEachRound) * covered);
        expect(status.written.length + status.omitted.written).toBe(counts.created + counts.repaired);
        for (const written of status.written) {
          expect(namespace === oadpNamespace || written.namespace === namespace).toBe(true);
          expect(written.veleroBackup).toBe(`${written.namespace}-${written.name}`);
        }
        if (JSON.stringify(status.conditions).includes('interrupted')) resumed += 1;
        // Final is final: whatever comes later, it stays as it was read.
        expect(await answerOf(stage.objects, namespace, name)).toEqual(status);
      }
      await restore.untilRight(30_000);
      // Nobody deletes a NAB here, so one that has another uid was made twice.
      for (const [nab, uid] of await nabs()) {
        expect(uids.get(nab) ?? uid).toBe(uid);
        uids.set(nab, uid);
      }
      await replica.kill();
    }
    process.stdout.write(
      `${kills} kills, ${kills * 8} requests; when killed they were ${JSON.stringify(seenPhases)}; ${resumed} say that they were begun anew\n`,
    );
    expect(uids.size).toBe(restore.size);
    expect(await wrongEvents(stage.objects, 2 * restore.size, 2 * kills)).toEqual([]);
    for (const replica of [hasty, electing]) {
      expect(replica.unexpectedExits).toEqual([]);
      expect(replica.logLines.filter(({ level }) => level === 'error')).toEqual([]);
    }
  },
  60_000 + kills * 60_000,
);
