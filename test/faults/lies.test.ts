import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import * as kinds from '../../src/oadp/kinds.ts';
import { eventually } from '../support/eventually.ts';
import { faultBudget } from './budget.ts';
import { Replica } from './replica.ts';
import { Restore } from './restore.ts';
import { Stage } from './stage.ts';

const { long } = faultBudget();

/** Field case D11: lists that are empty without an error. Nothing in them can be told from the truth. */
let stage: Stage;
let restore: Restore;
let replica: Replica;

beforeAll(async () => {
  stage = await Stage.open();
  restore = new Restore(stage);
  await restore.prepare({ tenants: 3, backups: 5 });
  replica = await Replica.create(stage, { args: ['--no-leader-elect'] });
});

afterAll(async () => {
  await replica.close();
  await stage.close();
});

afterEach(() => {
  replica.proxy.heal();
});

/** Writes of NABs, whatever came of them. */
function writes({ proxy }: Replica): number {
  return proxy.requests.filter(
    ({ verb, resource }) => resource === kinds.nonAdminBackups.plural && ['create', 'update', 'patch'].includes(verb),
  ).length;
}

// One after the other, on the same replica.
describe('lists that are empty without an error', () => {
  it('at the start make nothing, and the next lists bring everything', async () => {
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

  it.each(
    [
      ['everything', undefined] as const,
      ...Object.values(kinds).map(({ plural }) => [plural, [plural]] as const),
    ].filter(([what]) => long || ['everything', 'namespaces', 'nonadminbackups'].includes(what)),
  )('of %s, in the middle, harm nothing that is there', async (_, resources) => {
    const lie = replica.proxy.inject({
      fault: { kind: 'emptyList' },
      ...(resources === undefined ? {} : { on: { resources } }),
    });
    replica.proxy.resetAll();
    await eventually(() => {
      expect(lie.hits).toBeGreaterThan(0);
    });
    await sleep(1_000);
    expect(await restore.wrong()).toEqual([]);
    lie.remove();
    replica.proxy.resetAll();
    await restore.addBackup('team-0');
    await restore.untilRight(30_000);
  });

  it('of NABs do not make it ask for the same NABs again and again', async () => {
    replica.proxy.inject({ fault: { kind: 'emptyList' }, on: { resources: ['nonadminbackups'] }, times: 1 });
    replica.proxy.resetAll();
    await eventually(async () => {
      const before = writes(replica);
      await sleep(1_500);
      expect(writes(replica) - before).toBe(0);
    }, 15_000);
  });
});

describe('events (field cases C9, C21)', () => {
  it('that come again late do not bring back what was deleted', async () => {
    replica.proxy.inject({
      fault: { kind: 'duplicateEvents', late: true },
      on: { verbs: ['watch'], resources: ['nonadminbackups'] },
    });
    for (let round = 0; round < 4; round += 1) {
      // Another name each time: somebody who deletes the same NAB again and again is backed off from.
      const names = await Promise.all([0, 1, 2].map((tenant) => restore.addBackup(`team-${tenant}`)));
      await restore.untilRight(30_000);
      await Promise.all(names.map((name, tenant) => restore.deleteNab(`team-${tenant}`, name)));
      await restore.untilRight(30_000);
    }
  });

  it('that change places do not leave an older state behind', async () => {
    replica.proxy.inject({ fault: { kind: 'reorderedEvents' }, on: { verbs: ['watch'], resources: ['backups'] } });
    for (let round = 0; round < 4; round += 1) {
      const name = await restore.addBackup('team-0', 'InProgress');
      await sleep(500);
      await restore.setPhases('team-0', name, ['Deleting', 'Completed']);
      await restore.untilRight(30_000);
    }
  });
});

describe('a token', () => {
  it('that is replaced is taken up at once, though the old one is refused', async () => {
    await replica.rotateToken();
    replica.proxy.resetAll();
    await restore.addBackup('team-0');
    await restore.untilRight(30_000);
  });
});
