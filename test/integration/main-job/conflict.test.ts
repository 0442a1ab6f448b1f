import { beforeAll, describe, expect, it } from 'vitest';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { day } from '../../support/gen/api-objects.ts';
import { fromNow } from '../../support/gen/live-objects.ts';
import { eventLines, eventsIn } from './support/events.ts';
import { mainJob, untilTheEndOfTheFile, type Controller } from './support/main-job.ts';
import { bareNab, byName, expectedNab } from './support/nabs.ts';
import { explainReport, planReport } from './support/reports.ts';
import { metricsOf } from './support/scrape.ts';

const job = await mainJob();
const { gen, objects } = job;
let controller: Controller;
let taken: string;
let contested: string;
const inTheWay = new Map<string, JsonObject>();
const winners: JsonObject[] = [];
const losers: JsonObject[] = [];

beforeAll(async () => {
  await objects.create(gen.storageLocation());
  taken = await job.createTenant('taken');
  contested = await job.createTenant('contested');

  const { status, ...bare } = gen.nonAdminBackup({ namespace: taken, name: 'without-a-backup-yet' });
  for (const nab of [
    gen.nonAdminBackup({ namespace: taken, name: 'of-another-backup', nacuuid: 'another' }),
    gen.nonAdminBackup({ namespace: taken, name: 'synced-from-another', nacuuid: 'another', syncedFrom: 'another' }),
    bare,
  ]) {
    const name = stringAt(objectAt(nab, 'metadata'), 'name') ?? '';
    inTheWay.set(name, await objects.create(nab));
    await objects.create(gen.backup({ namespace: taken, name }));
  }

  const at = (offset: number): { status: JsonObject } => ({ status: { completionTimestamp: fromNow(offset) } });
  const tie = at(-day);
  const candidate = (name: string, nacuuid: string, shape: { status: JsonObject }): Promise<JsonObject> =>
    objects.create(gen.backup({ namespace: contested, name, nacuuid: `${contested}-${nacuuid}`, ...shape }));
  // The winner once first and once last, by name and by the time at which it was made.
  winners.push(await candidate('later', 'later-a', at(-day)));
  losers.push(await candidate('later', 'later-b', at(-3 * day)));
  losers.push(await candidate('later', 'later-c', at(-2 * day)));
  losers.push(await candidate('tie', 'tie-1', tie));
  winners.push(await candidate('tie', 'tie-3', tie));
  losers.push(await candidate('tie', 'tie-2', tie));

  controller = await job.controller([], { SYNC_PERIOD: '1s' }, untilTheEndOfTheFile);
  await controller.firstPass();
}, 60_000);

function nameOf(object: JsonObject | undefined): string {
  return stringAt(objectAt(object ?? {}, 'metadata'), 'name') ?? '';
}

describe('a name that another NAB has', () => {
  it('is left to it: that NAB stays as it is, to the version', async () => {
    for (const [name, nab] of inTheWay) {
      expect(await objects.get(kinds.nonAdminBackups, { namespace: taken, name })).toEqual(nab);
    }
    expect(await job.nabNames(taken)).toHaveLength(inTheWay.size);
  });

  it('is told on that NAB, once, in a warning that names no backup of anybody else', async () => {
    const passes = (): number => controller.log().filter(({ msg }) => msg === 'pass over all namespaces done').length;
    const lines = [...inTheWay.keys()].sort().map((name) => `${name} NameTaken x1`);
    await eventually(async () => {
      expect(await eventLines(objects, taken)).toEqual(lines);
    });
    // Later passes find the same and say nothing more.
    const before = passes();
    await eventually(() => {
      expect(passes()).toBeGreaterThanOrEqual(before + 2);
    });
    const events = await eventsIn(objects, taken);
    expect(events.map(({ count }) => count)).toEqual([1, 1, 1]);
    for (const { type, involvedObject, message } of events) {
      expect(type).toBe('Warning');
      expect(involvedObject).toMatchObject({ kind: 'NonAdminBackup', uid: uidOf(inTheWay.get(involvedObject.name)) });
      expect(message).not.toContain('another ');
    }
    expect(controller.log().filter(({ reason }) => reason === 'NameTaken')).toHaveLength(inTheWay.size);
  });

  it('is counted as a conflict, and is no failure', async () => {
    const metrics = await metricsOf(controller);
    expect(metrics.value('nab_sync_backups{action="conflict",reason="NameTaken"}')).toBe(3);
    expect(metrics.value('nab_sync_last_failure_timestamp_seconds')).toBe(0);
    const { counts } = await job.json(planReport, ['plan', '-n', taken]);
    expect(counts).toMatchObject({ conflict: 3, create: 0, repair: 0 });
  });

  it('is not told again to one and the same NAB when the program starts anew, but counted on its event', async () => {
    await controller.stop();
    controller = await job.controller([], { SYNC_PERIOD: '0' }, untilTheEndOfTheFile);
    await controller.firstPass();
    await eventually(async () => {
      const lines = [...inTheWay.keys()].sort().map((name) => `${name} NameTaken x2`);
      expect(await eventLines(objects, taken)).toEqual(lines);
    });
  });
});

function uidOf(object: JsonObject | undefined): string | undefined {
  return stringAt(objectAt(object ?? {}, 'metadata'), 'uid');
}

describe('several backups of one name', () => {
  it('the one that completed last comes back, in a tie the one with the larger NACUUID', async () => {
    expect(await job.nabs(contested)).toEqual(winners.map((backup) => expectedNab(backup)).sort(byName));
  });

  it('the others are superseded, by the one that came back', async () => {
    const { decisions } = await job.json(planReport, ['plan', '-n', contested]);
    const reasons = Object.fromEntries(decisions.map(({ backup, reason }) => [backup, reason]));
    const superseded = losers.map((backup) => [nameOf(backup), 'Superseded']);
    expect(reasons).toEqual(
      Object.fromEntries([...superseded, ...winners.map((backup) => [nameOf(backup), 'Present'])]),
    );
    const { explanations } = await job.json(explainReport, ['explain', nameOf(losers[0])]);
    expect(explanations[0]?.decision.message).toContain(nameOf(winners[0]));
  });

  it('the next one follows when the first is deleted with its NAB', async () => {
    const [first] = winners;
    await objects.deleteObject(first ?? {});
    await objects.delete(kinds.nonAdminBackups, { namespace: contested, name: 'later' });
    const [, next] = losers;
    await eventually(async () => {
      const nab = await objects.get(kinds.nonAdminBackups, { namespace: contested, name: 'later' });
      expect(bareNab(nab ?? {})).toEqual(expectedNab(next ?? {}));
    });
  });
});
