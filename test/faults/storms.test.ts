import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { faultBudget, stated } from './budget.ts';
import type { FaultRule, Target } from './fault.ts';
import { Replica } from './replica.ts';
import { Restore } from './restore.ts';
import { Stage } from './stage.ts';

const { long } = faultBudget();
const faultMs = long ? 30_000 : 2_000;

/**
 * Requests a second, after the first second, without the further pages of lists: seven reflectors, each with a list and a
 * watch every second or so at the worst, the election and events. A loop without a pause would make hundreds.
 */
const meanASecond = 25;
const backInSyncMs = stated(6_000);
/** Lists and watches that only an admin can mend are tried every 15 s at the least, and refused writes every minute. */
const backAfterAdminMs = stated(20_000);
const backAfterRefusalsMs = long ? 65_000 : backInSyncMs;

let stage: Stage;
let restore: Restore;
/** Reads lists in small pages. */
let paged: Replica;
/** Reads lists as streams. */
let streaming: Replica;

beforeAll(async () => {
  stage = await Stage.open();
  restore = new Restore(stage);
  await restore.prepare({ tenants: 4, backups: 5 });
  paged = await Replica.create(stage, { pageLimit: 3 });
  streaming = await Replica.create(stage);
});

afterAll(async () => {
  await paged.close();
  await streaming.close();
  await stage.close();
});

/** A list counts once, however many pages it has. */
function requestsMade(replica: Replica): number {
  return replica.proxy.requests.filter(({ laterPage }) => !laterPage).length;
}

const watches: Target = { verbs: ['watch'] };
const nabs: Target = { verbs: ['create'], resources: ['nonadminbackups'] };

const faults: readonly (readonly [string, FaultRule, number])[] = [
  ['every watch ends at once (field case C10)', { fault: { kind: 'closesEarly' }, on: watches }, backInSyncMs],
  [
    'every watch begins with an ERROR 410',
    { fault: { kind: 'errorEvent', code: 410, reason: 'Expired' }, on: watches },
    backInSyncMs,
  ],
  [
    'every watch begins with an ERROR 500',
    { fault: { kind: 'errorEvent', code: 500, reason: 'InternalError' }, on: watches },
    backInSyncMs,
  ],
  [
    'every watch is refused with 410',
    { fault: { kind: 'status', status: 410, body: 'status' }, on: watches },
    backInSyncMs,
  ],
  ['every watch begins with garbage', { fault: { kind: 'garbageLine', line: '{' }, on: watches }, backInSyncMs],
  [
    'every list is refused with 410 in the middle (field case C16)',
    { fault: { kind: 'status', status: 410, body: 'status' }, on: { laterPage: true } },
    backInSyncMs,
  ],
  ['every request gets 500', { fault: { kind: 'status', status: 500, body: 'status' } }, backInSyncMs],
  [
    'every request gets 429 with Retry-After',
    { fault: { kind: 'status', status: 429, retryAfter: 1, body: 'status' } },
    backInSyncMs,
  ],
  ['every request gets a page', { fault: { kind: 'nonsense', body: '<html></html>' } }, backInSyncMs],
  ['every connection is reset (field cases C2, C3)', { fault: { kind: 'reset', when: 'before' } }, backInSyncMs],
  ['every answer breaks off', { fault: { kind: 'reset', when: 'midAnswer' } }, backInSyncMs],
  [
    'every token is refused (field case C15)',
    { fault: { kind: 'status', status: 401, body: 'status' } },
    backAfterAdminMs,
  ],
  [
    'every create of a NAB is forbidden (field case D17)',
    { fault: { kind: 'status', status: 403, body: 'status' }, on: nabs },
    backAfterRefusalsMs,
  ],
  ['the answer to every create is lost', { fault: { kind: 'lostAnswer' }, on: nabs }, backInSyncMs],
  [
    'every status write meets a conflict',
    { fault: { kind: 'status', status: 409, body: 'status' }, on: { subresource: 'status' } },
    // Looked at again every 5 s, since no event tells of a change that has not happened.
    2 * backInSyncMs,
  ],
];

async function expectNoStorm(replica: Replica, rule: FaultRule, withinMs: number): Promise<string> {
  // What strikes only a request that begins shows only where one does.
  if (rule.on?.laterPage === true || (rule.on === watches && rule.fault.kind === 'status')) replica.proxy.resetAll();
  const injected = replica.proxy.inject(rule);
  const name = await restore.addBackup('team-0');
  await restore.addBackup('team-1');
  await sleep(1_000);
  const before = requestsMade(replica);
  await sleep(faultMs);
  const mean = (requestsMade(replica) - before) / (faultMs / 1_000);
  expect(injected.hits).toBeGreaterThan(0);
  expect(mean).toBeLessThanOrEqual(meanASecond);

  replica.proxy.heal();
  await restore.deleteNab('team-0', name);
  const tookMs = await restore.untilRight(withinMs);
  return `${mean.toFixed(1)} requests a second; in sync ${Math.round(tookMs)} ms later`;
}

// One after the other, since each of them would do the work of the other.
describe.each([
  ['in pages', () => paged, faults],
  ['as streams', () => streaming, faults.filter(([, { on }]) => on === watches || on === undefined)],
])('where lists come %s', (how, running, some) => {
  beforeAll(async () => {
    await running().start();
    await restore.untilRight(60_000);
  });

  afterEach(() => {
    running().proxy.heal();
  });

  afterAll(async () => {
    await running().stop();
  });

  describe(`a fault that lasts ${faultMs / 1_000} s makes no storm, and is got over soon after`, () => {
    it.each(some)('%s', async (what, rule, withinMs) => {
      const told = await expectNoStorm(running(), rule, withinMs);
      process.stdout.write(`${what}, lists ${how}: ${told}\n`);
    });

    it('and nobody has thought that a fault was his own', () => {
      expect(running().logLines.filter(({ level }) => level === 'error')).toEqual([]);
      expect(running().unexpectedExits).toEqual([]);
    });
  });
});
