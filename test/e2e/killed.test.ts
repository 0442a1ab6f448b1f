import { beforeAll, describe, expect, it } from 'vitest';
import { objectAt, stringAt } from '../../src/kube/json.ts';
import type { JsonObject } from '../../src/kube/resource.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { eventsIn } from '../integration/main-job/support/events.ts';
import { mainJob } from '../integration/main-job/support/main-job.ts';
import { byName, expectedNab } from '../integration/main-job/support/nabs.ts';
import { planReport } from '../integration/main-job/support/reports.ts';
import { eventually } from '../support/eventually.ts';

/** The process is killed in the middle of its work, again and again: nothing that it knew may be needed afterwards. */
const job = await mainJob();
const { gen, objects } = job;
let namespaces: string[];
let backups: JsonObject[];

beforeAll(async () => {
  await objects.create(gen.storageLocation());
  namespaces = await Promise.all(Array.from({ length: 4 }, (_, index) => job.createTenant(`team-${index}`)));
  backups = await Promise.all(
    namespaces.flatMap((namespace) =>
      Array.from({ length: 25 }, (_, index) => objects.create(gen.backup({ namespace, name: `b${index}` }))),
    ),
  );
}, 60_000);

async function nabsNow(): Promise<JsonObject[]> {
  return (await Promise.all(namespaces.map((namespace) => objects.list(kinds.nonAdminBackups, { namespace })))).flat();
}

function uidOf(object: JsonObject): string {
  return stringAt(objectAt(object, 'metadata'), 'uid') ?? '';
}

describe('a controller that is killed in the middle of its work', () => {
  it('leaves nothing that the next one cannot complete, and no NAB is made twice', async () => {
    const seen = new Set<string>();
    let withoutStatus = 0;
    for (const most of [5, 50]) {
      // The Lease of a killed holder would be waited for; that is another test's concern.
      const controller = await job.controller(['--no-leader-elect', '--concurrency', '2']);
      const nabs = await eventually(
        async () => {
          const found = await nabsNow();
          expect(found.length).toBeGreaterThanOrEqual(most);
          return found;
        },
        20_000,
        1,
      );
      controller.signal('SIGKILL');
      expect((await controller.exited).exitCode).toBeNull();
      const left = await nabsNow();
      withoutStatus += left.filter((nab) => nab['status'] === undefined).length;
      for (const nab of [...nabs, ...left]) seen.add(uidOf(nab));
    }
    console.log(`${withoutStatus} NABs were left without a status by two kills`);
    expect(withoutStatus).toBeGreaterThan(0);

    const last = await job.controller(['--no-leader-elect']);
    await last.firstPass();
    expect(await job.nabs(...namespaces)).toEqual(backups.map((backup) => expectedNab(backup)).sort(byName));
    // What was there is what is there: completed, not made anew.
    const uids = (await nabsNow()).map(uidOf);
    expect([...seen].filter((uid) => !uids.includes(uid))).toEqual([]);
    const { counts } = await job.json(planReport, ['plan']);
    expect(counts).toEqual({ create: 0, repair: 0, none: 100, skip: 0, waiting: 0, conflict: 0 });
    for (const namespace of namespaces) {
      const events = await eventsIn(objects, namespace);
      expect(events.every(({ type }) => type === 'Normal')).toBe(true);
    }
  });
});
