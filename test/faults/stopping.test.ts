import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { objectAt } from '../../src/kube/json.ts';
import { leaseResource } from '../../src/kube/lease-record.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { eventually } from '../support/eventually.ts';
import { faultBudget, stated } from './budget.ts';
import { Replica } from './replica.ts';
import { Restore } from './restore.ts';
import { oadpNamespace, Stage } from './stage.ts';

const { long } = faultBudget();

/** Writes under way have 5 s; a little more for a machine that is busy. */
const stopMs = stated(7_000);
/** For all of it, on a machine that has much else to do. */
const restoreMs = 60_000;
/** Until the first write of a start that has no Lease to wait for; with one it would be 15 s at least. */
const firstWriteMs = stated(10_000);

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

async function makeReplica(...args: string[]): Promise<Replica> {
  const replica = await Replica.create(stage, { args });
  replicas.push(replica);
  return replica;
}

async function leaseHolder(): Promise<unknown> {
  const lease = await stage.objects.get(leaseResource, { namespace: oadpNamespace, name: 'nab-sync' });
  return objectAt(lease ?? {}, 'spec')['holderIdentity'];
}

describe('SIGTERM', () => {
  it('in the middle of a restore: exits 0 soon, gives the Lease back, and the next start completes the rest at once', async () => {
    await restore.prepare({ tenants: 4, backups: 60 });
    const replica = await makeReplica();
    await replica.start();
    await restore.untilRestored(50);
    const began = performance.now();
    const exit = await replica.stop();
    expect(performance.now() - began).toBeLessThan(stopMs);
    expect(exit?.exitCode).toBe(0);
    expect(await leaseHolder()).toBe('');
    const before = await restore.restored();
    expect(before).toBeLessThan(restore.size);

    const restarted = performance.now();
    await replica.start();
    await restore.untilRestored(before + 1);
    expect(performance.now() - restarted).toBeLessThan(firstWriteMs);
    await restore.untilRight(restoreMs);
  });

  it('lets a write finish that is under way, and begins none', async () => {
    await restore.prepare({ tenants: 1, backups: 30 });
    const replica = await makeReplica();
    const hold = replica.proxy.inject({
      fault: { kind: 'hold' },
      on: { verbs: ['create'], resources: ['nonadminbackups'] },
    });
    await replica.start();
    await eventually(() => {
      expect(hold.hits).toBeGreaterThan(0);
    });
    const underWay = hold.hits;
    const stopped = replica.stop();
    await sleep(300);
    hold.remove();
    expect((await stopped)?.exitCode).toBe(0);
    expect(await restore.restored()).toBe(underWay);
    expect(await leaseHolder()).toBe('');
  });

  it('while the API server does not answer: exits 0 within its grace', async () => {
    await restore.prepare({ tenants: 4, backups: 50 });
    const replica = await makeReplica();
    await replica.start();
    await restore.untilRestored(20);
    stage.controlPlane.pause('kube-apiserver');
    await sleep(500);
    const began = performance.now();
    const exit = await replica.stop();
    stage.controlPlane.resume('kube-apiserver');
    expect(exit?.exitCode).toBe(0);
    expect(performance.now() - began).toBeLessThan(stated(20_000));
  });

  it('twice: exits at once', async () => {
    await restore.prepare({ tenants: 1, backups: 10 });
    const replica = await makeReplica();
    const hold = replica.proxy.inject({
      fault: { kind: 'hold' },
      on: { resources: ['nonadminbackups'], verbs: ['create'] },
    });
    await replica.start();
    await eventually(() => {
      expect(hold.hits).toBeGreaterThan(0);
    });
    const began = performance.now();
    const stopped = replica.stop();
    await sleep(300);
    replica.signal('SIGTERM');
    expect((await stopped)?.exitCode).toBe(143);
    expect(performance.now() - began).toBeLessThan(stated(1_500));
  });
});

describe('SIGKILL', () => {
  it('between create and status: the next start writes the status', async () => {
    await restore.prepare({ tenants: 2, backups: 20 });
    const replica = await makeReplica('--no-leader-elect');
    const hold = replica.proxy.inject({ fault: { kind: 'hold' }, on: { subresource: 'status' } });
    await replica.start();
    await eventually(() => {
      expect(hold.hits).toBeGreaterThan(0);
    });
    await replica.kill();
    hold.remove();
    const bare = await stage.objects.list(kinds.nonAdminBackups);
    expect(bare.length).toBeGreaterThan(0);
    expect(bare.filter((nab) => 'phase' in objectAt(nab, 'status'))).toEqual([]);

    await replica.start();
    await restore.untilRight(restoreMs);
  });

  it('with a create under way whose answer never comes: the next start takes over what was made', async () => {
    await restore.prepare({ tenants: 2, backups: 20 });
    const replica = await makeReplica('--no-leader-elect');
    const lost = replica.proxy.inject({
      fault: { kind: 'lostAnswer' },
      on: { verbs: ['create'], resources: ['nonadminbackups'] },
    });
    await replica.start();
    await eventually(() => {
      expect(lost.hits).toBeGreaterThan(3);
    });
    await replica.kill();
    lost.remove();
    await replica.start();
    await restore.untilRight(restoreMs);
  });

  it('at random moments of a restore, again and again: the last start completes it', async () => {
    await restore.prepare({ tenants: 5, backups: 60 });
    const replica = await makeReplica('--no-leader-elect');
    const moments: number[] = [];
    for (let kill = 0; kill < (long ? 30 : 4); kill += 1) {
      await replica.start();
      // Most of them after the start-up, in the middle of the writes.
      const ms = Math.round(300 + 1_500 * Math.random());
      await sleep(ms);
      await replica.kill();
      moments.push(ms);
    }
    console.log(`killed after ${moments.join(', ')} ms; ${await restore.restored()} of ${restore.size} were there`);
    await replica.start();
    await restore.untilRight(restoreMs);
  });
});
