import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import * as kinds from '../../src/oadp/kinds.ts';
import { eventually } from '../support/eventually.ts';
import { faultBudget } from './budget.ts';
import { Replica } from './replica.ts';
import { Restore } from './restore.ts';
import { Stage } from './stage.ts';

/** What takes minutes of waiting: only in the long form (FAULT_MINUTES). */
describe.skipIf(!faultBudget().long)('in the long run', () => {
  let stage: Stage;
  let restore: Restore;
  let replica: Replica;

  beforeAll(async () => {
    stage = await Stage.open();
    restore = new Restore(stage);
    await restore.prepare({ tenants: 2, backups: 2 });
    replica = await Replica.create(stage, { args: ['--no-leader-elect'] });
    await replica.start();
    await restore.untilRight(30_000);
  });

  afterAll(async () => {
    await replica.close();
    await stage.close();
  });

  afterEach(() => {
    replica.proxy.heal();
  });

  const watchesOpened = (): number => replica.proxy.requests.filter(({ verb }) => verb === 'watch').length;

  it('an open watch lives for more than 90 s, with events and without (field case C1)', async () => {
    const before = watchesOpened();
    for (let second = 0; second < 100; second += 10) {
      await sleep(10_000);
      if (second === 50) await restore.addBackup('team-0');
    }
    expect(watchesOpened()).toBe(before);
    await restore.addBackup('team-1');
    await restore.untilRight(3_000);
  }, 200_000);

  it('a watch that went silent is given up after 150 s, and what it missed is found (field case C4)', async () => {
    const lost = replica.proxy.inject({
      fault: { kind: 'halfOpen' },
      on: { verbs: ['watch'], resources: [kinds.backups.plural] },
      times: 1,
    });
    expect(lost.hits).toBe(1);
    await restore.addBackup('team-0');
    await restore.untilRight(165_000);
  }, 240_000);

  it('a list that is never answered is given up after 30 s (field case C5)', async () => {
    const lost = replica.proxy.inject({
      fault: { kind: 'halfOpen' },
      on: { verbs: ['list'], resources: [kinds.backups.plural] },
      times: 1,
    });
    replica.proxy.resetAll();
    await eventually(() => {
      expect(lost.hits).toBe(1);
    });
    await restore.addBackup('team-0');
    await restore.untilRight(45_000);
  }, 120_000);
});
