import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import * as kinds from '../../src/oadp/kinds.ts';
import { eventually } from '../support/eventually.ts';
import { Replica } from './replica.ts';
import { Restore } from './restore.ts';
import { Stage } from './stage.ts';

/** Field case D11: lists that are empty without an error. Nothing in them can be told from the truth. */
let stage: Stage;
let restore: Restore;
const replicas: Replica[] = [];

beforeAll(async () => {
  stage = await Stage.open();
  restore = new Restore(stage);
});

afterAll(async () => {
  await stage.close();
});

afterEach(async () => {
  await Promise.all(replicas.splice(0).map((replica) => replica.close()));
  await stage.reset();
  restore = new Restore(stage);
});

async function makeReplica(): Promise<Replica> {
  const replica = await Replica.create(stage, { args: ['--no-leader-elect'] });
  replicas.push(replica);
  return replica;
}

function writes({ proxy }: Replica): number {
  return proxy.requests.filter(
    ({ verb, resource }) => verb !== 'get' && verb !== 'list' && verb !== 'watch' && resource !== 'events',
  ).length;
}

describe('lists that are empty without an error', () => {
  it('at the start make nothing, and the next lists bring everything', async () => {
    await restore.prepare({ tenants: 3, backups: 5 });
    const replica = await makeReplica();
    const lie = replica.proxy.inject({ fault: { kind: 'emptyList' } });
    await replica.start();
    await eventually(() => {
      expect(lie.hits).toBeGreaterThanOrEqual(7);
    });
    await sleep(500);
    expect(writes(replica)).toBe(0);
    expect(await restore.restored()).toBe(0);
    lie.remove();
    replica.proxy.resetAll();
    await restore.untilRight(30_000);
  });

  it.each([
    ['of everything', undefined],
    ...Object.values(kinds).map(({ plural }) => [`of ${plural}`, [plural]] as const),
  ] as const)('in the middle, %s, harm nothing that is there', async (_, resources) => {
    await restore.prepare({ tenants: 3, backups: 5 });
    const replica = await makeReplica();
    await replica.start();
    await restore.untilRight(30_000);
    const lie = replica.proxy.inject({
      fault: { kind: 'emptyList' },
      ...(resources === undefined ? {} : { on: { resources } }),
    });
    replica.proxy.resetAll();
    await eventually(() => {
      expect(lie.hits).toBeGreaterThan(0);
    });
    await sleep(1_500);
    expect(await restore.wrong()).toEqual([]);
    lie.remove();
    replica.proxy.resetAll();
    await restore.addBackup('team-0');
    await restore.untilRight(30_000);
  });

  it('of NABs do not make it ask for the same NABs again and again', async () => {
    await restore.prepare({ tenants: 3, backups: 5 });
    const replica = await makeReplica();
    await replica.start();
    await restore.untilRight(30_000);
    replica.proxy.inject({ fault: { kind: 'emptyList' }, on: { resources: ['nonadminbackups'] }, times: 1 });
    replica.proxy.resetAll();
    await sleep(3_000);
    const before = writes(replica);
    await sleep(3_000);
    expect(writes(replica) - before).toBe(0);
  });
});

describe('a token', () => {
  it('that is replaced is taken up at once, though the old one is refused', async () => {
    await restore.prepare({ tenants: 2, backups: 2 });
    const replica = await makeReplica();
    await replica.start();
    await restore.untilRight(30_000);
    await replica.rotateToken();
    replica.proxy.resetAll();
    await restore.addBackup('team-0');
    await restore.untilRight(5_000);
  });
});
