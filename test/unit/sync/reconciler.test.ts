import { describe, expect, test, vi } from 'vitest';
import { Reconciler, type NamespaceReport } from '../../../src/sync/reconciler.ts';
import {
  at,
  bareNonAdminBackup,
  hour,
  minute,
  namespaceObject,
  nonAdminBackup,
  noon,
  second,
  storageLocation,
  veleroBackup,
} from '../../support/gen/api-objects.ts';
import { backupsNamed, passWorld, slotsOf, type PassWorld } from './support/pass.ts';
import { eventRecorder, logRecorder, type Told } from './support/recorders.ts';
import type { SceneObjects } from './support/scene.ts';
import { failing, type Answer, type Call } from './support/scripted-client.ts';

interface ReconcilerWorld extends PassWorld {
  readonly reconciler: Reconciler;
  readonly reconcile: (options?: { live?: boolean; stop?: AbortSignal }) => Promise<NamespaceReport>;
  /** Told since the last call. */
  readonly events: () => Told[];
  readonly lines: ReturnType<typeof logRecorder>['lines'];
}

/** One slot, so that the order of requests is settled. */
function reconcilerWorld(objects: SceneObjects = {}, answer?: Answer): ReconcilerWorld {
  const world = passWorld(objects, answer, { slots: slotsOf(1) });
  const events = eventRecorder();
  const { log, lines } = logRecorder();
  const reconciler = new Reconciler({ ...world.context, events, log });
  return {
    ...world,
    reconciler,
    reconcile: ({ live = false, stop = new AbortController().signal } = {}) =>
      reconciler.reconcile('team-a', { live, stop }),
    events: () => events.told.splice(0),
    lines,
  };
}

const denying =
  (names: readonly string[], code: 'Invalid' | 'Forbidden' | 'TooLarge', facts = {}) =>
  (call: Call) =>
    call.verb === 'create' && names.includes(call.name) ? failing(call, code, facts) : undefined;

const quota = { message: 'exceeded quota: few, requested: 1, used: 5, limited: 5', deniedBy: 'admission' } as const;

function outcomes({ items }: NamespaceReport): Record<string, string> {
  return Object.fromEntries(items.map(({ backup, outcome, reason }) => [backup.name, `${outcome} ${reason}`]));
}

describe('a reconcile', () => {
  test('brings a namespace to the state that its backups call for, and has nothing to do the next time', async () => {
    const { reconcile, client } = reconcilerWorld({
      backups: [...backupsNamed(['a', 'b']), veleroBackup({ nacuuid: 'x', name: 'x', status: { phase: 'New' } })],
      nonAdminBackups: [nonAdminBackup({ name: 'b', nacuuid: 'b' })],
    });
    const report = await reconcile();
    expect(report).toMatchObject({ namespace: 'team-a', retry: undefined, againInMs: undefined });
    expect(outcomes(report)).toEqual({ a: 'created Missing', b: 'present Present', x: 'skipped NotFinished' });
    const requests = client.calls.length;
    expect(outcomes(await reconcile())).toMatchObject({ a: 'present Present', b: 'present Present' });
    expect(client.calls).toHaveLength(requests);
  });

  test('that meets a fault of ours says so of each backup, and is tried again', async () => {
    const { reconcile, context, lines } = reconcilerWorld({ backups: backupsNamed(['a', 'b']) });
    const fault = vi.spyOn(context.state, 'namespace').mockImplementation(() => {
      throw new TypeError('not a function');
    });
    const report = await reconcile();
    expect(outcomes(report)).toEqual({ a: 'failed InternalError', b: 'failed InternalError' });
    expect(report.retry).toEqual({ retryAfterMs: undefined });
    expect(lines).toMatchObject([{ level: 50, namespace: 'team-a', msg: 'reconcile failed' }]);
    fault.mockRestore();
    expect(outcomes(await reconcile())).toEqual({ a: 'created Missing', b: 'created Missing' });
  });

  test('that meets a fault of ours when all is done reports what was done', async () => {
    const { reconcile, context, client, lines } = reconcilerWorld({ backups: backupsNamed(['a']) });
    const known = context.state.namespace.bind(context.state);
    let looks = 0;
    // Looked at for the record, then by the rules, and at last for the events.
    const fault = vi.spyOn(context.state, 'namespace').mockImplementation((name) => {
      looks += 1;
      if (lines.length === 0 && client.calls.some(({ verb }) => verb === 'update')) throw new TypeError('no');
      return known(name);
    });
    const report = await reconcile();
    fault.mockRestore();
    expect(looks).toBeGreaterThan(1);
    expect(outcomes(report)).toEqual({ a: 'created Missing' });
    expect(lines.at(-1)).toMatchObject({ level: 50, msg: 'reconcile failed' });
    expect(outcomes(await reconcile())).toEqual({ a: 'present Present' });
  });

  test.each([
    ['hurries when its namespace changes meanwhile', 'team-a', ['get daily', 'other']],
    ['does not hurry when another one does', 'team-b', ['other', 'get daily']],
  ])('%s', async (_, changed, expected) => {
    const order: string[] = [];
    const { reconcile, reconciler, context } = reconcilerWorld({ backups: backupsNamed(['daily']) }, (call) => {
      if (call.verb === 'get') order.push(`get ${call.name}`);
      return undefined;
    });
    const { promise: held, resolve: release } = Promise.withResolvers<undefined>();
    const holding = context.slots.run('create', () => held);
    const other = context.slots.run('create', async () => {
      await Promise.resolve();
      order.push('other');
    });
    const report = reconcile();
    reconciler.hurry(changed);
    release(undefined);
    await Promise.all([holding, other]);
    expect(outcomes(await report)).toEqual({ daily: 'created Missing' });
    expect(order).toEqual(expected);
  });

  test('of a namespace that no backup claims does nothing and remembers nothing', async () => {
    const { reconcile, reconciler } = reconcilerWorld({ backups: [] });
    expect(await reconcile()).toEqual({ namespace: 'team-a', items: [], retry: undefined, againInMs: undefined });
    expect(reconciler.results().size).toBe(0);
  });

  test('that failed wants to be tried again, as late as the server asked', async () => {
    const { reconcile } = reconcilerWorld({ backups: backupsNamed(['a', 'b']) }, (call) =>
      call.verb === 'create'
        ? failing(call, 'ServerError', { retryAfterMs: call.name === 'a' ? 3000 : 9000 })
        : undefined,
    );
    expect((await reconcile()).retry).toEqual({ retryAfterMs: 9000 });
  });

  test('that failed without being asked to wait does so after its back-off', async () => {
    const { reconcile } = reconcilerWorld({}, denying(['daily'], 'Forbidden', quota));
    expect((await reconcile()).retry).toEqual({ retryAfterMs: undefined });
  });

  test('that waits says when it wants to look again, a millisecond after the earliest of its times', async () => {
    const backups = [
      veleroBackup({ nacuuid: 'a', name: 'a', metadata: { creationTimestamp: at(-second) } }),
      veleroBackup({ nacuuid: 'b', name: 'b', metadata: { creationTimestamp: at(-minute) } }),
      veleroBackup({ nacuuid: 'c', name: 'c', metadata: { creationTimestamp: at(-2 * second) } }),
      veleroBackup({ nacuuid: 'd', name: 'd', status: { phase: 'New' } }),
    ];
    const storageLocations = [storageLocation({ status: { lastSyncedTime: undefined } })];
    const { reconcile, clock } = reconcilerWorld({ backups, storageLocations });
    expect((await reconcile()).againInMs).toBe(minute + 1);
    clock.now += minute;
    expect(outcomes(await reconcile())).toMatchObject({ a: 'waiting LocationSyncing', b: 'created Missing' });
  });
});

describe('a namespace', () => {
  /** All slots free, so that only the pass itself says how many creates go at once. */
  function freely(objects: SceneObjects, answer?: Answer) {
    const world = passWorld(objects, answer);
    const reconciler = new Reconciler({ ...world.context, events: eventRecorder(), log: logRecorder().log });
    const begun = async (): Promise<string[]> => {
      const before = world.client.calls.length;
      await reconciler.reconcile('team-a', { live: false, stop: new AbortController().signal });
      return world.client.calls.slice(before, before + 3).map(({ verb }) => verb);
    };
    return { world, begun };
  }

  test('of which nothing is known begins with one create; one that takes NABs with many', async () => {
    const { world, begun } = freely({ backups: backupsNamed(['a', 'b', 'c', 'd']) });
    expect(await begun()).toEqual(['get', 'create', 'get']);
    world.scene.nonAdminBackups.clear();
    expect(await begun()).toEqual(['get', 'get', 'get']);
  });

  test.each([
    ['Forbidden', quota, ['get', 'create']],
    ['ServerError', {}, ['get', 'create', 'get']],
    ['TooLarge', {}, ['get', 'get', 'get']],
  ] as const)('that met %s begins again so: %j %j', async (code, facts, beginning) => {
    let failures = 0;
    const { world, begun } = freely({ backups: backupsNamed(['a', 'b', 'c', 'd']) }, (call) => {
      if (call.verb !== 'create' || call.name !== 'd' || failures > 1) return undefined;
      failures += 1;
      return failing(call, code, facts);
    });
    await begun();
    for (const name of ['a', 'b', 'c']) world.scene.nonAdminBackups.delete(`team-a/${name}`);
    // What fails for good is spared, so something else has to be due.
    expect((await begun()).slice(0, beginning.length)).toEqual(beginning);
  });

  test('whose backups all went is forgotten: what failed for good is tried again when it is back', async () => {
    const { reconcile, client, scene } = reconcilerWorld({}, denying(['daily'], 'TooLarge'));
    await reconcile();
    scene.put.backup(veleroBackup({ namespace: 'team-b' }));
    await reconcile();
    scene.put.backup(veleroBackup());
    await reconcile();
    expect(client.count('create')).toBe(2);
  });
});

describe('a denial', () => {
  test('is followed by one probing create, and by all once it succeeds', async () => {
    let used = true;
    const { reconcile, client } = reconcilerWorld({ backups: backupsNamed(['a', 'b', 'c']) }, (call) =>
      used && call.verb === 'create' ? failing(call, 'Forbidden', quota) : undefined,
    );
    expect(outcomes(await reconcile())).toEqual({
      a: 'failed QuotaDenied',
      b: 'failed QuotaDenied',
      c: 'failed QuotaDenied',
    });
    await reconcile();
    expect(client.count('create')).toBe(2);
    used = false;
    expect(outcomes(await reconcile())).toEqual({ a: 'created Missing', b: 'created Missing', c: 'created Missing' });
  });

  test('does not let those that are denied keep the others from their turn, however many they are', async () => {
    // Twenty that a policy denies completed later than the one that it lets through, so each pass begins with them.
    const bad = Array.from({ length: 20 }, (_, index) => `bad-${String(index).padStart(2, '0')}`);
    const { reconcile, client } = reconcilerWorld(
      { backups: backupsNamed(['good', ...bad]) },
      denying(bad, 'Invalid', { deniedBy: 'admission' }),
    );
    let passes = 0;
    let good: string | undefined;
    while (passes < 10 && good !== 'created Missing') {
      good = outcomes(await reconcile())['good'];
      passes += 1;
    }
    expect(good).toBe('created Missing');
    expect(passes).toBe(5);
    // Five in each of the four passes before, and five more behind the one that succeeded.
    expect(client.count('create')).toBe(4 * 5 + 1 + 5);
  });

  test('keeps trying the denied ones in turn', async () => {
    const bad = Array.from({ length: 12 }, (_, index) => `bad-${String(index).padStart(2, '0')}`);
    const { reconcile, client } = reconcilerWorld(
      { backups: backupsNamed(bad) },
      denying(bad, 'Invalid', { deniedBy: 'admission' }),
    );
    for (let pass = 0; pass < 12; pass += 1) await reconcile();
    const tries = bad.map((name) => client.calls.filter((call) => call.verb === 'create' && call.name === name).length);
    // Sixty tries in all.
    expect(Math.min(...tries)).toBeGreaterThanOrEqual(4);
    expect(Math.max(...tries)).toBeLessThanOrEqual(6);
  });
});

describe('what fails for good', () => {
  const causes = [{ field: 'spec.backupSpec', message: 'no' }];

  test.each(['Invalid', 'TooLarge'] as const)(
    '(%s) is told once and not tried again while Backup and namespace stay as they are',
    async (code) => {
      const { reconcile, client, events } = reconcilerWorld({}, denying(['daily'], code, { causes }));
      const first = await reconcile();
      expect(outcomes(first)).toEqual({ 'team-a-daily-1': `failed ${code}` });
      expect(first.retry).toBeUndefined();
      expect(events()).toHaveLength(1);
      const requests = client.calls.length;
      for (let pass = 0; pass < 3; pass += 1) {
        const again = await reconcile();
        expect(outcomes(again)).toEqual({ 'team-a-daily-1': `failed ${code}` });
        expect(again.retry).toBeUndefined();
      }
      expect(client.calls).toHaveLength(requests);
      expect(events()).toEqual([]);
    },
  );

  test('is tried again when the Backup changes', async () => {
    const { reconcile, client, scene } = reconcilerWorld({}, denying(['daily'], 'TooLarge'));
    await reconcile();
    scene.put.backup(veleroBackup({ metadata: { resourceVersion: '101' } }));
    await reconcile();
    expect(client.count('create')).toBe(2);
    await reconcile();
    expect(client.count('create')).toBe(2);
  });

  test('is tried again when the Backup is another object of the same version', async () => {
    const { reconcile, client, scene } = reconcilerWorld({}, denying(['daily'], 'TooLarge'));
    await reconcile();
    scene.put.backup(veleroBackup({ metadata: { uid: 'another' } }));
    await reconcile();
    expect(client.count('create')).toBe(2);
  });

  test('is tried again when the namespace changes', async () => {
    const { reconcile, client, scene } = reconcilerWorld({}, denying(['daily'], 'TooLarge'));
    await reconcile();
    scene.put.namespace(namespaceObject({ metadata: { resourceVersion: '8' } }));
    await reconcile();
    expect(client.count('create')).toBe(2);
  });

  test('does not hide that the backup expires', async () => {
    const backups = [veleroBackup({ status: { expiration: at(hour) } })];
    const { reconcile, clock } = reconcilerWorld({ backups }, denying(['daily'], 'TooLarge'));
    await reconcile();
    clock.now = noon + hour;
    expect(outcomes(await reconcile())).toEqual({ 'team-a-daily-1': 'skipped Expired' });
  });

  test('also holds for a status that is too large beside its spec', async () => {
    const bare = bareNonAdminBackup();
    const { reconcile, client } = reconcilerWorld({ nonAdminBackups: [bare] }, (call) => {
      if (call.verb === 'update') return failing(call, 'TooLarge');
      return call.name === 'daily' ? bare : undefined;
    });
    await reconcile();
    const requests = client.calls.length;
    expect(outcomes(await reconcile())).toEqual({ 'team-a-daily-1': 'failed TooLarge' });
    expect(client.calls).toHaveLength(requests);
  });

  test('does not keep the others from being created', async () => {
    const { reconcile } = reconcilerWorld({ backups: backupsNamed(['a', 'huge', 'c']) }, denying(['huge'], 'TooLarge'));
    expect(outcomes(await reconcile())).toEqual({
      a: 'created Missing',
      huge: 'failed TooLarge',
      c: 'created Missing',
    });
  });
});

describe('somebody who removes NABs as fast as they are written', () => {
  test('is backed off from: three in a row at once, then with growing pauses', async () => {
    const { reconcile, client, scene, clock } = reconcilerWorld();
    const written: number[] = [];
    for (let pass = 0; pass < 400; pass += 1) {
      const before = client.count('create');
      const report = await reconcile();
      if (client.count('create') > before) written.push(clock.now - noon);
      else expect(report.againInMs).toBeGreaterThan(0);
      scene.nonAdminBackups.clear();
      clock.now += second;
    }
    const pauses = written.slice(1).map((moment, index) => moment - (written[index] ?? 0));
    expect(pauses).toEqual([1, 1, 2, 4, 8, 16, 32, 64, 128].map((seconds) => seconds * second));
  });

  test('is told as waiting, with the time', async () => {
    const { reconcile, scene } = reconcilerWorld();
    for (let times = 0; times < 3; times += 1) {
      await reconcile();
      scene.nonAdminBackups.clear();
    }
    const { items, againInMs } = await reconcile();
    expect(items).toMatchObject([{ outcome: 'waiting', reason: 'Missing' }]);
    expect(items[0]?.message).toBe(
      'Its NonAdminBackup was written 3 times in a row, and somebody keeps removing or changing it; tried again at 2026-01-15T12:00:02Z.',
    );
    expect(againInMs).toBe(2 * second + 1);
  });

  test('does not hold up a namespace that was created anew', async () => {
    const { reconcile, scene, client } = reconcilerWorld();
    for (let times = 0; times < 3; times += 1) {
      await reconcile();
      scene.nonAdminBackups.clear();
    }
    scene.put.namespace(namespaceObject({ metadata: { uid: 'born-again' } }));
    await reconcile();
    expect(client.count('create')).toBe(4);
  });

  test('is forgotten after ten quiet minutes', async () => {
    const { reconcile, scene, client, clock } = reconcilerWorld();
    for (let times = 0; times < 3; times += 1) {
      await reconcile();
      scene.nonAdminBackups.clear();
    }
    clock.now += 10 * minute;
    for (let times = 0; times < 3; times += 1) {
      await reconcile();
      scene.nonAdminBackups.clear();
    }
    expect(client.count('create')).toBe(6);
  });
});

describe('what is told', () => {
  test('is what changed: nothing of a pass that finds everything as it was', async () => {
    const { reconcile, events, lines } = reconcilerWorld({
      backups: backupsNamed(['a', 'b', 'c']),
      nonAdminBackups: [nonAdminBackup({ name: 'b', nacuuid: 'another' })],
    });
    await reconcile();
    expect(events().map(({ reason, regarding }) => `${reason} ${regarding.name}`)).toEqual([
      'RecreatedFromVeleroBackup a',
      'RecreatedFromVeleroBackup c',
      'NameTaken b',
    ]);
    lines.splice(0);
    await reconcile();
    await reconcile();
    expect(events()).toEqual([]);
    expect(lines).toEqual([]);
  });

  test('is told again when it is true again', async () => {
    const world = reconcilerWorld({ nonAdminBackups: [nonAdminBackup({ nacuuid: 'another' })] });
    await world.reconcile();
    expect(world.events()).toHaveLength(1);
    world.scene.nonAdminBackups.clear();
    await world.reconcile();
    world.scene.put.nonAdminBackup(nonAdminBackup({ nacuuid: 'another' }));
    await world.reconcile();
    expect(world.events().map(({ reason }) => reason)).toEqual(['RecreatedFromVeleroBackup', 'NameTaken']);
  });

  test('a NAB that is removed and written again is told each time', async () => {
    const { reconcile, scene, events } = reconcilerWorld();
    await reconcile();
    scene.nonAdminBackups.clear();
    await reconcile();
    expect(events().map(({ reason }) => reason)).toEqual(['RecreatedFromVeleroBackup', 'RecreatedFromVeleroBackup']);
  });

  test('in the log is bounded: twenty lines of their own, then one that counts', async () => {
    const names = Array.from({ length: 100 }, (_, index) => `b${String(index)}`);
    const { reconcile, lines } = reconcilerWorld({ backups: backupsNamed(names) });
    await reconcile();
    expect(lines).toHaveLength(21);
    expect(lines[0]).toEqual({
      level: 30,
      namespace: 'team-a',
      name: 'b0',
      backup: 'b0',
      outcome: 'created',
      reason: 'Missing',
      detail: 'Its NonAdminBackup was re-created.',
      msg: 'NonAdminBackup re-created',
    });
    expect(lines[20]).toEqual({
      level: 30,
      namespace: 'team-a',
      backups: 100,
      changed: { Missing: 100 },
      msg: 'namespace reconciled',
    });
  });

  test('in the log is loud where somebody should look, and quiet where all is well', async () => {
    const { reconcile, lines } = reconcilerWorld(
      {
        backups: [
          ...backupsNamed(['denied', 'taken']),
          veleroBackup({ nacuuid: 'old', name: 'old', status: { phase: 'New' } }),
        ],
        nonAdminBackups: [nonAdminBackup({ name: 'taken', nacuuid: 'another' })],
      },
      denying(['denied'], 'Forbidden', quota),
    );
    await reconcile();
    expect(lines.map(({ level, reason, msg }) => [level, reason, msg])).toEqual([
      [40, 'QuotaDenied', 'NonAdminBackup not re-created'],
      [40, 'NameTaken', 'NonAdminBackup not re-created'],
      [30, undefined, 'namespace reconciled'],
    ]);
    const quiet = reconcilerWorld({ nonAdminBackups: [nonAdminBackup()] });
    await quiet.reconcile();
    expect(quiet.lines.map(({ level, msg }) => [level, msg])).toEqual([[20, 'namespace reconciled']]);
  });

  test('of a fault of nab-sync itself is told with what was thrown, for its stack', async () => {
    const fault = new TypeError('a fault of ours');
    const { reconcile, lines } = reconcilerWorld({}, ({ verb }) => {
      if (verb === 'create') throw fault;
      return undefined;
    });
    await reconcile();
    expect(lines[0]).toMatchObject({
      level: 40,
      reason: 'InternalError',
      err: { stack: expect.stringContaining('TypeError: a fault of ours') as string },
    });
  });

  test('in counts is the latest result of every backup, over all namespaces', async () => {
    const { reconcile, reconciler, scene } = reconcilerWorld({
      backups: [...backupsNamed(['a', 'b']), veleroBackup({ nacuuid: 'x', name: 'x', namespace: 'team-b' })],
    });
    const stop = new AbortController().signal;
    const counts = () => [...reconciler.results()].map(([{ outcome, reason }, count]) => [outcome, reason, count]);
    await reconcile();
    await reconciler.reconcile('team-b', { live: false, stop });
    expect(counts()).toEqual([
      ['present', 'Present', 2],
      ['skipped', 'NamespaceMissing', 1],
    ]);
    scene.put.namespace(namespaceObject({ name: 'team-b' }));
    await reconciler.reconcile('team-b', { live: true, stop });
    expect(counts()).toEqual([['present', 'Present', 3]]);
    // As if its last backup had gone while another replica led: nobody reconciles the namespace any more.
    scene.put.backup(veleroBackup({ nacuuid: 'x', name: 'x', namespace: 'team-a' }));
    expect(counts()).toEqual([['present', 'Present', 2]]);
  });
});

test('a stop leaves what was not tried as failed, so that the next start does it', async () => {
  const { reconcile, client } = reconcilerWorld();
  const report = await reconcile({ stop: AbortSignal.abort() });
  expect(outcomes(report)).toEqual({ 'team-a-daily-1': 'failed Aborted' });
  expect(client.calls).toEqual([]);
  expect(outcomes(await reconcile())).toEqual({ 'team-a-daily-1': 'created Missing' });
});

test('where a namespace just came back its creates go ahead of those of a resync', async () => {
  const inB = (name: string) => veleroBackup({ nacuuid: `b-${name}`, name: `b-${name}`, namespace: 'team-b' });
  const backups = [...backupsNamed(['a1', 'a2', 'a3']), inB('1'), inB('2')];
  const namespaces = ['team-a', 'team-b'].map((name) => namespaceObject({ name }));
  const { reconciler, reconcile, client } = reconcilerWorld({ backups, namespaces });
  await Promise.all([reconcile(), reconciler.reconcile('team-b', { live: true, stop: new AbortController().signal })]);
  const created = client.calls.filter(({ verb }) => verb === 'create').map(({ name }) => name);
  // The first was under way already; from then on theirs go first, one that tries out the namespace and then the rest.
  expect(created.slice(0, 2)).toEqual(['a3', 'b-2']);
  expect(created.indexOf('b-1')).toBeLessThan(created.indexOf('a1'));
});

test('a process that lost its Lease without knowing writes nothing', async () => {
  const { reconciler, client } = reconcilerWorld();
  const stop = new AbortController().signal;
  const report = await reconciler.reconcile('team-a', { live: false, stop, isLeading: () => false });
  expect(outcomes(report)).toEqual({ 'team-a-daily-1': 'failed Aborted' });
  expect(client.calls).toEqual([]);
});
