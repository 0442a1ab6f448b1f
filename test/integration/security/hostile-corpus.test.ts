import isEqual from 'lodash/isEqual.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import { resourcePath, type JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { mainJob, untilTheEndOfTheFile, type Controller } from '../main-job/support/main-job.ts';
import { onceReport, planReport } from '../main-job/support/reports.ts';
import { hostileBackups } from './support/hostile.ts';

/** Everything in test/hostile, made on the real server in front of a controller that runs. */

const job = await mainJob();
const { gen, objects, oadpNamespace } = job;
const tenant = await job.createTenant('tenant');
const neighbour = await job.createTenant('neighbour');
const corpus = await hostileBackups(gen, { tenant, oadp: oadpNamespace });

let controller: Controller;
let plan: z.infer<typeof planReport>;
let once: z.infer<typeof onceReport>;
let exitCode: number | null;
/** As the server took them, by name of the Backup. */
const taken = new Map<string, JsonObject>();

beforeAll(async () => {
  await objects.create(gen.storageLocation());
  controller = await job.controller([], {}, untilTheEndOfTheFile);
  await controller.firstPass();
  const refused: string[] = [];
  await Promise.all(
    corpus.map(async ({ title, nacuuid, backup }) => {
      try {
        taken.set(nacuuid, await objects.create(backup));
      } catch (error) {
        refused.push(`${title}: ${String(error)}`);
      }
    }),
  );
  // What no server takes needs no test here.
  expect(refused).toEqual([]);
  // Behind all of them, in the same namespace and in another one.
  for (const namespace of [tenant, neighbour]) await objects.create(gen.backup({ namespace, name: 'healthy' }));
  await eventually(async () => {
    for (const namespace of [tenant, neighbour]) {
      const nab = await objects.get(kinds.nonAdminBackups, { namespace, name: 'healthy' });
      expect(stringAt(objectAt(nab ?? {}, 'status'), 'phase')).toBe('Created');
    }
  }, 30_000);
  const due = corpus.filter(({ reason }) => reason === 'Missing').length;
  await eventually(async () => {
    expect(await job.nabNames(tenant)).toHaveLength(due + 1);
  }, 30_000);
  // Statuses follow the NABs, the largest of them late.
  const failing = new Set(corpus.flatMap(({ failure, nacuuid }) => (failure === undefined ? [] : [nacuuid])));
  await eventually(
    async () => {
      plan = await job.json(planReport, ['plan']);
      const open = plan.decisions.filter(
        ({ action, backup }) => !failing.has(backup) && !['none', 'skip'].includes(action),
      );
      expect(open).toEqual([]);
    },
    60_000,
    500,
  );
  const pass = await job.command(['once', '-o', 'json', '--no-leader-elect']);
  exitCode = pass.exitCode;
  once = onceReport.parse(JSON.parse(pass.stdout));
  expect(pass.stderr).not.toMatch(/\n\s+at |"level":"(error|fatal)"/);
}, 120_000);

afterAll(async () => {
  // Some are a megabyte, and would be listed whole when the namespaces are emptied.
  await Promise.all([...taken.keys()].map((name) => objects.delete(kinds.backups, { namespace: oadpNamespace, name })));
  await controller.stop();
});

const nabOf = async (name: string): Promise<JsonObject | undefined> =>
  await objects.get(kinds.nonAdminBackups, { namespace: tenant, name });

describe('a Backup of test/hostile', () => {
  it.each(corpus.map((each) => [each.title, each] as const))('%s', async (_, { reason, failure, name, nacuuid }) => {
    const [decision, ...more] = plan.decisions.filter(({ backup }) => backup === nacuuid);
    expect(more).toEqual([]);
    const failed = once.failures.filter((each) => each.namespace === tenant && each.name === name);
    if (reason !== 'Missing') {
      expect(decision).toMatchObject({ action: 'skip', reason });
      expect(failed).toEqual([]);
      return;
    }
    if (failure !== undefined) {
      expect(failed).toMatchObject([{ reason: failure }]);
      return;
    }
    expect(decision).toMatchObject({ action: 'none', reason: 'Present' });
    const nab = (await nabOf(name)) ?? {};
    const backup = taken.get(nacuuid) ?? {};
    const { finalizers, ownerReferences, annotations, labels } = objectAt(nab, 'metadata');
    expect({ finalizers, ownerReferences, annotations }).toEqual({});
    expect(labels).toEqual({ 'openshift.io/oadp-nab-synced-from-nacuuid': nacuuid });
    const { storageLocation, ...spec } = objectAt(backup, 'spec');
    expect(storageLocation).toBe('default');
    // Not by toEqual, which does not look at a key `__proto__`.
    expect(isEqual(entries(objectAt(objectAt(nab, 'spec'), 'backupSpec')), entries(spec))).toBe(true);
    const copy = objectAt(objectAt(nab, 'status'), 'veleroBackup');
    expect(isEqual(entries(objectAt(copy, 'spec')), entries(objectAt(backup, 'spec')))).toBe(true);
    expect(isEqual(entries(objectAt(copy, 'status')), entries(objectAt(backup, 'status')))).toBe(true);
    expect(copy).toMatchObject({ nacuuid, name: nacuuid, namespace: oadpNamespace });
  });

  it('leads to no NAB but those that are due', async () => {
    const due = corpus.filter(({ reason }) => reason === 'Missing').map(({ name }) => `${tenant}/${name}`);
    expect(await job.nabNames(tenant, neighbour, oadpNamespace)).toEqual(
      [...due, `${tenant}/healthy`, `${neighbour}/healthy`].sort(),
    );
  });

  it('fails only where that is expected, and in nobody else’s namespace', () => {
    const expected = corpus.filter(({ failure }) => failure !== undefined);
    expect(exitCode).toBe(expected.length === 0 ? 0 : 1);
    expect(once.failures.map(({ name }) => name).sort()).toEqual(expected.map(({ name }) => name).sort());
  });
});

/** An object as nested lists of its entries, sorted: comparisons of objects pass over a key `__proto__`. */
function entries(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(entries);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .map(([key, each]: [string, unknown]) => [key, entries(each)])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
}

describe('the controller that saw them come', () => {
  it('has met no fault of its own', () => {
    const bad = controller.log().filter(({ level }) => level === 'error' || level === 'fatal');
    expect(bad).toEqual([]);
    expect(controller.stderr).not.toContain('InternalError');
  });

  it('is alive and ready', async () => {
    const listening = controller.log().find(({ pages }) => Array.isArray(pages) && pages.includes('/livez'));
    for (const page of ['/livez', '/readyz']) {
      const { status } = await fetch(`http://${String(listening?.['address'])}${page}`);
      expect(status, page).toBe(200);
    }
  });

  it('has written nothing to its log that a terminal would act on, and no line of megabytes', () => {
    for (const line of controller.stderr.split('\n')) {
      expect(line).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
      expect(line.length).toBeLessThan(10_000);
    }
  });

  it('still brings back a NAB at once', async () => {
    const ref = { namespace: neighbour, name: 'healthy' };
    await job.api.call('DELETE', resourcePath(kinds.nonAdminBackups, ref));
    await eventually(async () => {
      const nab = await objects.get(kinds.nonAdminBackups, ref);
      expect(stringAt(objectAt(nab ?? {}, 'status'), 'phase')).toBe('Created');
    }, 3_000);
  });

  it('does not write again and again what cannot be written', async () => {
    const name = corpus.find(({ failure }) => failure === 'TooLarge')?.name ?? '';
    const version = objectAt((await nabOf(name)) ?? {}, 'metadata')['resourceVersion'];
    const lines = (): number => controller.log().filter((line) => line['name'] === name).length;
    const before = lines();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(lines()).toBe(before);
    expect(objectAt((await nabOf(name)) ?? {}, 'metadata')['resourceVersion']).toBe(version);
  });
});
