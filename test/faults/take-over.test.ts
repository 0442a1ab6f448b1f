import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { objectAt, stringAt } from '../../src/kube/json.ts';
import { leaseResource } from '../../src/kube/lease-record.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { faultBudget, stated } from './budget.ts';
import { Replica } from './replica.ts';
import { Restore } from './restore.ts';
import { wrongEvents } from './rounds/verdict.ts';
import { oadpNamespace, Stage } from './stage.ts';

const { long } = faultBudget();
const takeOvers = long ? 50 : 3;

/** Lease duration and retry period, and what a busy machine needs for two requests and a look of the test's. */
const takeOverMs = stated(15_000 + 2_000 + 1_000);

let stage: Stage;
let restore: Restore;
const replicas: Replica[] = [];

beforeAll(async () => {
  stage = await Stage.open();
  restore = new Restore(stage);
});

afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.close()));
  await stage.close();
});

/** How a leader comes to its end. Each resolves when it is broken, to what makes it a candidate again. */
const ends = {
  /** SIGKILL. */
  killed: async (replica: Replica) => {
    await replica.kill();
    return () => replica.start();
  },
  /** SIGSTOP: when it goes on, it still thinks that it leads. */
  frozen: (replica: Replica) => {
    replica.freeze();
    return Promise.resolve(() => {
      replica.thaw();
      return Promise.resolve();
    });
  },
  /** Cut off from the API server: requests hang, and arrive when the network is back. */
  'cut off': (replica: Replica) => {
    replica.proxy.stall();
    return Promise.resolve(() => {
      replica.proxy.unstall();
      return Promise.resolve();
    });
  },
} as const;

type End = keyof typeof ends;
const order: readonly End[] = ['killed', 'frozen', 'cut off'];

async function leaseHolder(): Promise<string> {
  const lease = await stage.objects.get(leaseResource, { namespace: oadpNamespace, name: 'nab-sync' });
  return stringAt(objectAt(lease ?? {}, 'spec'), 'holderIdentity') ?? '';
}

async function leader(): Promise<Replica | undefined> {
  const holder = await leaseHolder();
  return replicas.find(({ identity }) => identity === holder);
}

async function untilLed(by: (holder: string) => boolean, timeoutMs: number): Promise<number> {
  const began = performance.now();
  for (;;) {
    const tookMs = performance.now() - began;
    const holder = await leaseHolder();
    if (holder !== '' && by(holder)) return tookMs;
    if (tookMs > timeoutMs) throw new Error(`after ${Math.round(tookMs)} ms the Lease is held by "${holder}"`);
    await sleep(20);
  }
}

/** Writes of NABs that got through to the API server since a moment of `performance.now()`. */
function writesSince(replica: Replica, since: number): number {
  return replica.proxy.requests.filter(
    ({ at, verb, resource, answered }) =>
      at >= since &&
      resource === kinds.nonAdminBackups.plural &&
      verb !== 'list' &&
      verb !== 'watch' &&
      verb !== 'get' &&
      answered !== undefined,
  ).length;
}

it(
  `after ${takeOvers} forced take-overs no NAB is lost, none is wrong, and each take-over came in time (field cases A10, D9, D10)`,
  async () => {
    await restore.prepare({ tenants: 3, backups: 5 });
    for (let index = 0; index < 2; index += 1) replicas.push(await Replica.create(stage));
    for (const replica of replicas) await replica.start();
    await untilLed(() => true, 30_000);
    await restore.untilRight(30_000);

    const times: string[] = [];
    for (let round = 0; round < takeOvers; round += 1) {
      const end = order[round % order.length] ?? 'killed';
      const old = await leader();
      if (old === undefined) throw new Error('nobody leads');
      const lost = old.identity;
      // In the middle of a restore: some of it falls to the one, some to the other.
      await Promise.all(Array.from({ length: 15 }, (_, index) => restore.addBackup(`team-${index % 3}`)));
      const makeCandidate = await ends[end](old);
      // The last renewal was up to a retry period ago, so this only bounds the take-over from above.
      const tookMs = await untilLed((holder) => holder !== lost, takeOverMs + 10_000);
      const takenAt = performance.now();
      expect(tookMs).toBeLessThanOrEqual(takeOverMs);
      await restore.untilRight(30_000);

      await makeCandidate();
      if (end !== 'killed') {
        // What it had in mind when it was stopped must not be written any more.
        await restore.addBackup('team-0');
        await restore.untilRight(30_000);
        await sleep(1_000);
        expect(writesSince(old, takenAt)).toBe(0);
      }
      times.push(`${end} ${(tookMs / 1_000).toFixed(1)} s`);
    }
    process.stdout.write(`take-overs: ${times.join(', ')}\n`);
    expect(await restore.wrong()).toEqual([]);
    const writes = replicas.reduce((sum, replica) => sum + writesSince(replica, 0), 0);
    expect(await wrongEvents(stage.objects, writes, takeOvers + 2)).toEqual([]);
    for (const replica of replicas) {
      expect(replica.unexpectedExits).toEqual([]);
      expect(replica.logLines.filter(({ level }) => level === 'error')).toEqual([]);
      expect((await replica.stop())?.exitCode).toBe(0);
    }
    expect(await leaseHolder()).toBe('');
  },
  60_000 + takeOvers * 60_000,
);
