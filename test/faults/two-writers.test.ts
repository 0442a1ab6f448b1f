import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { Replica } from './replica.ts';
import { Restore } from './restore.ts';
import { wrongEvents } from './rounds/verdict.ts';
import { Stage } from './stage.ts';

let stage: Stage;
const replicas: Replica[] = [];

beforeAll(async () => {
  stage = await Stage.open();
});

afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.close()));
  await stage.close();
});

it('two writers without a Lease give one result (field case A10)', async () => {
  const restore = new Restore(stage);
  await restore.prepare({ tenants: 5, backups: 40 });
  replicas.push(
    await Replica.create(stage, { args: ['--no-leader-elect'] }),
    await Replica.create(stage, { args: ['--no-leader-elect'] }),
  );
  // Neither gets ahead while the other still starts.
  const held = replicas.map(({ proxy }) =>
    proxy.inject({ fault: { kind: 'hold' }, on: { verbs: ['create'], resources: ['nonadminbackups'] } }),
  );
  await Promise.all(replicas.map((replica) => replica.start()));
  await eventually(() => {
    expect(Math.min(...held.map(({ hits }) => hits))).toBeGreaterThan(0);
  }, 30_000);
  for (const hold of held) hold.remove();
  await restore.untilRight(60_000);

  // Both have really tried to write, or nothing was tested; what the one made, the other found there.
  const created = replicas.map(
    ({ proxy }) => proxy.requests.filter(({ verb, resource, answered }) => isCreated(verb, resource, answered)).length,
  );
  expect(created.reduce((sum, count) => sum + count, 0)).toBe(restore.size);

  // What happens later finds both awake.
  await restore.deleteNab('team-0', 'nab-0');
  await Promise.all(Array.from({ length: 10 }, (_, index) => restore.addBackup(`team-${index % 5}`)));
  await restore.untilRight(60_000);
  expect(await wrongEvents(stage.objects, restore.size + 1, 2)).toEqual([]);
  for (const replica of replicas) {
    expect(replica.logLines.filter(({ level }) => level === 'error')).toEqual([]);
    expect((await replica.stop())?.exitCode).toBe(0);
  }
});

function isCreated(verb: string, resource: string, answered: number | undefined): boolean {
  return verb === 'create' && resource === 'nonadminbackups' && answered === 201;
}
