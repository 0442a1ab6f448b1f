import { describe, expect, onTestFinished, test } from 'vitest';
import { objectAt } from '../../../src/kube/json.ts';
import { oadpNamespace, veleroBackup } from '../../support/gen/api-objects.ts';
import { DeskWorld, item, type DeskOptions } from './support/desk.ts';
import type { RequestShape } from './support/sync-requests.ts';

const second = 1000;

/** A desk that is stopped at the end of the test. */
function deskWith(requests: readonly RequestShape[] = [], options: DeskOptions = {}): DeskWorld {
  const world = new DeskWorld(requests, options);
  onTestFinished(async () => {
    await world.close();
  });
  return world;
}

function names(count: number): RequestShape[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `r${String(index).padStart(3, '0')}`,
    createdAt: index,
  }));
}

describe('a request', () => {
  test('that waits when the time as leader begins is taken up at once, and answered by the next reconcile', async () => {
    const world = deskWith([{}]);
    expect(world.enqueued).toEqual(['team-a']);
    world.items.set('team-a', [item('created', 'Missing'), item('failed', 'QuotaDenied', 'other')]);
    await world.clock.advance(0);
    expect(world.status('team-a', 'request')).toMatchObject({
      phase: 'Partial',
      observedGeneration: 1,
      startTime: '2026-01-01T00:00:00.000Z',
      completionTime: '2026-01-01T00:00:00.000Z',
      conditions: [
        { type: 'Complete', status: 'True', reason: 'Partial' },
        { type: 'Succeeded', status: 'False', reason: 'Partial' },
      ],
      oadpNamespace,
      counts: { seen: 2, created: 1, failed: 1 },
      history: { consecutiveFailures: 1 },
    });
  });

  test('that is made later is taken up when it is seen', async () => {
    const world = deskWith();
    await world.clock.advance(second);
    world.make({});
    await world.clock.advance(0);
    expect(world.status('team-a', 'request')).toMatchObject({
      phase: 'Succeeded',
      startTime: '2026-01-01T00:00:01.000Z',
    });
  });

  test('is Running while the reconcile has not ended', async () => {
    const world = deskWith([{}], { reconciles: false });
    await world.clock.advance(5 * second);
    expect(world.status('team-a', 'request')).toMatchObject({
      phase: 'Running',
      conditions: [
        { type: 'Complete', status: 'False' },
        { type: 'Succeeded', status: 'Unknown' },
      ],
    });
    world.reconcile('team-a');
    await world.clock.advance(0);
    expect(world.status('team-a', 'request')).toMatchObject({
      phase: 'Succeeded',
      startTime: '2026-01-01T00:00:00.000Z',
      completionTime: '2026-01-01T00:00:05.000Z',
    });
    expect(world.writes).toEqual(['Running team-a/request', 'Succeeded team-a/request']);
  });

  test('is not answered by a reconcile that was under way when it came', async () => {
    const world = deskWith([], { reconciles: false });
    const hand = world.desk.begin('team-a');
    world.make({});
    hand({ namespace: 'team-a', items: [], retry: undefined, againInMs: undefined });
    await world.clock.advance(0);
    expect(world.phases()).toEqual({ 'team-a/request': 'Running' });
  });

  test('that has its answer is left alone', async () => {
    const world = deskWith([{ status: { phase: 'Failed', completionTime: '2026-01-01T00:00:00Z' } }]);
    await world.clock.advance(60 * second);
    expect(world.writes).toEqual([]);
    expect(world.enqueued).toEqual([]);
  });

  test('that goes away before its answer is nobody’s concern, and one of its name is another', async () => {
    const world = deskWith([{}], { reconciles: false });
    await world.clock.advance(0);
    world.remove('team-a', 'request');
    world.make({ uid: 'another' });
    world.reconcile('team-a');
    await world.clock.advance(0);
    expect(world.phases()).toEqual({ 'team-a/request': 'Running' });
    world.reconcile('team-a');
    await world.clock.advance(0);
    expect(world.phases()).toEqual({ 'team-a/request': 'Succeeded' });
  });
});

describe('requests that wait together', () => {
  test('share one sync, whoever came while it had not begun; those that come later share the next', async () => {
    const world = deskWith(names(3), { reconciles: false });
    await world.clock.advance(0);
    expect(world.enqueued).toEqual(['team-a']);
    world.make({ name: 'later-1' });
    world.make({ name: 'later-2' });
    world.reconcile('team-a');
    await world.clock.advance(0);
    expect(world.enqueued).toEqual(['team-a', 'team-a']);
    expect(world.phases()).toMatchObject({ 'team-a/r002': 'Succeeded', 'team-a/later-1': 'Running' });
    world.reconcile('team-a');
    await world.clock.advance(0);
    expect(new Set(Object.values(world.phases()))).toEqual(new Set(['Succeeded']));
  });

  test('have one history: a sync that failed for all of them failed once', async () => {
    const world = deskWith(names(5));
    world.items.set('team-a', [item('failed', 'QuotaDenied')]);
    await world.clock.advance(0);
    expect(objectAt(world.status('team-a', 'r004'), 'history')).toMatchObject({ consecutiveFailures: 1 });
    world.make({ name: 'again' });
    await world.clock.advance(0);
    expect(objectAt(world.status('team-a', 'again'), 'history')).toMatchObject({ consecutiveFailures: 2 });
  });

  test('a thousand of them cost one sync and an answer each, and twenty are shown as Running', async () => {
    const world = deskWith(names(1000), { reconciles: false });
    await world.clock.advance(0);
    expect(world.writes).toHaveLength(20);
    world.reconcile('team-a');
    await world.clock.advance(0);
    expect(world.enqueued).toEqual(['team-a']);
    expect(world.writes).toHaveLength(1020);
  });

  test('one after the other, they bring about five syncs at once, and one every five seconds', async () => {
    const world = deskWith();
    for (let index = 0; index < 100; index += 1) {
      world.make({ name: `r${index}` });
      await world.clock.advance(second / 10);
    }
    // Ten seconds have passed.
    expect(world.enqueued.length).toBeLessThanOrEqual(7);
    await world.clock.advance(5 * second);
    expect(new Set(Object.values(world.phases()))).toEqual(new Set(['Succeeded']));
  });

  test('of one namespace do not keep that of another waiting', async () => {
    const world = deskWith([...names(1000), { namespace: 'team-b', name: 'mine' }], {
      scene: { backups: [veleroBackup(), veleroBackup({ namespace: 'team-b', nacuuid: 'b' })] },
    });
    await world.clock.advance(0);
    // Four writes are under way at a time, of one namespace one: whatever team-a has, team-b's is among the first.
    expect(world.writes.indexOf('Succeeded team-b/mine')).toBeLessThan(4);
    expect(world.writes).toContain('Succeeded team-a/r999');
  });
});

describe('in the namespace of OADP', () => {
  const backups = ['team-a', 'team-b', 'team-c'].map((namespace) => veleroBackup({ namespace, nacuuid: namespace }));
  const forged = veleroBackup({
    namespace: 'team-a',
    nacuuid: 'x',
    name: 'forged',
    spec: { includedNamespaces: ['*'] },
  });

  test('a request is for all namespaces that backups claim, and is done with the last of them', async () => {
    const world = deskWith([{ namespace: oadpNamespace }], {
      scene: { backups: [...backups, forged] },
      reconciles: false,
    });
    await world.clock.advance(0);
    expect(world.enqueued.toSorted()).toEqual(['team-a', 'team-b', 'team-c']);
    world.reconcile('team-a');
    world.reconcile('team-c');
    await world.clock.advance(0);
    expect(world.status(oadpNamespace, 'request')['phase']).toBe('Running');
    world.reconcile('team-b');
    await world.clock.advance(0);
    expect(world.status(oadpNamespace, 'request')).toMatchObject({
      phase: 'Succeeded',
      namespaces: 3,
      counts: { seen: 1, skipped: 1 },
      skipped: [{ name: 'forged', reason: 'ForeignContent' }],
    });
  });

  test('one with a selector is for those that it selects, and shares with those of the same selector', async () => {
    const gold = { namespaceSelector: { matchLabels: { tier: 'gold' } } };
    const world = deskWith(
      [
        { namespace: oadpNamespace, name: 'a', spec: gold },
        { namespace: oadpNamespace, name: 'b', spec: gold, createdAt: 2 },
        { namespace: oadpNamespace, name: 'all', createdAt: 1 },
      ],
      { scene: { backups: [...backups, forged] }, selected: { 'tier=gold': ['team-b', 'without-backups'] } },
    );
    await world.clock.advance(0);
    expect(world.enqueued).toEqual(['team-b', 'team-a', 'team-b', 'team-c']);
    expect(world.status(oadpNamespace, 'b')).toMatchObject({ namespaces: 1, counts: { seen: 0 } });
    expect(world.status(oadpNamespace, 'all')).toMatchObject({ namespaces: 3, counts: { seen: 1 } });
  });

  test('a request waits while the namespaces cannot be listed', async () => {
    const world = deskWith([{ namespace: oadpNamespace, spec: { namespaceSelector: {} } }], {
      selected: { '': ['team-a'] },
      faults: [undefined, 'Unreachable', 'ServerError'],
    });
    await world.clock.advance(0);
    expect(world.status(oadpNamespace, 'request')).toMatchObject({ phase: 'Running' });
    await world.clock.advance(10 * second);
    expect(world.status(oadpNamespace, 'request')).toMatchObject({ phase: 'Succeeded', namespaces: 1 });
  });

  const selecting = (name: string, createdAt = 0): RequestShape => ({
    namespace: oadpNamespace,
    name,
    createdAt,
    spec: { namespaceSelector: { matchLabels: { name } } },
  });

  test('one that goes away while it waits for its turn takes nothing of what it selects from those like it', async () => {
    // Five have their turn at once, so that the next has to wait.
    const before = Array.from({ length: 5 }, (_, n) => selecting(`before-${n}`));
    const world = deskWith([...before, selecting('gold', 1), { ...selecting('gold', 2), name: 'gold-too' }], {
      scene: { backups },
      selected: { 'name=gold': ['team-b'] },
    });
    await world.clock.advance(0);
    world.remove(oadpNamespace, 'gold');
    await world.clock.advance(30 * second);
    expect(world.status(oadpNamespace, 'gold-too')).toMatchObject({ phase: 'Succeeded', namespaces: 1 });
    expect(world.enqueued).toEqual(['team-b']);
  });

  test('a request whose selector is not taken fails at once, and the others get their answers', async () => {
    // As a proxy says it that takes no address of this length.
    const faults: DeskOptions['faults'] = [undefined, 'BadRequest'];
    const world = deskWith([selecting('a'), selecting('b', 1)], { faults });
    await world.clock.advance(second);
    expect(world.status(oadpNamespace, 'a')).toMatchObject({
      phase: 'Failed',
      conditions: [{ reason: 'NamespacesNotListed' }, {}],
    });
    expect(world.phases()).toMatchObject({ [`${oadpNamespace}/b`]: 'Succeeded' });
    expect(world.told).toEqual(['Failed', 'Succeeded']);
  });

  test.each(['ServerError', 'Forbidden', 'Unreachable', 'Malformed'] as const)(
    'one whose list meets %s for two minutes fails, and no sooner, with those of the same selector',
    async (code) => {
      const faults: DeskOptions['faults'] = [undefined, ...Array.from({ length: 30 }, () => code)];
      const world = deskWith([selecting('a'), { ...selecting('a', 1), name: 'same' }, selecting('b', 2)], { faults });
      await world.clock.advance(115 * second);
      expect(world.phases()).toEqual({
        [`${oadpNamespace}/a`]: 'Running',
        [`${oadpNamespace}/same`]: 'Pending',
        [`${oadpNamespace}/b`]: 'Pending',
      });
      faults.splice(1);
      await world.clock.advance(40 * second);
      expect(world.phases()).toEqual({
        [`${oadpNamespace}/a`]: 'Failed',
        [`${oadpNamespace}/same`]: 'Failed',
        [`${oadpNamespace}/b`]: 'Succeeded',
      });
    },
  );

  test('one that is taken back while the namespaces cannot be listed keeps nobody', async () => {
    const world = deskWith([selecting('a'), selecting('b', 1)], {
      faults: Array.from({ length: 6 }, () => 'Unreachable' as const),
    });
    await world.clock.advance(second);
    world.remove(oadpNamespace, 'a');
    await world.clock.advance(60 * second);
    expect(world.phases()).toEqual({ [`${oadpNamespace}/b`]: 'Succeeded' });
  });
});

describe('a request that cannot be carried out', () => {
  test.each([
    ['a selector in a tenant’s namespace', 'team-a', { matchLabels: { a: 'b' } }, 'NamespaceSelectorNotAllowed'],
    [
      'a selector that selects nothing that can be',
      oadpNamespace,
      { matchLabels: { 'a,b': 'c' } },
      'InvalidNamespaceSelector',
    ],
  ])('fails: %s', async (_, namespace, namespaceSelector, reason) => {
    const world = deskWith([{ namespace, spec: { namespaceSelector } }]);
    await world.clock.advance(0);
    expect(world.status(namespace, 'request')).toMatchObject({
      phase: 'Failed',
      conditions: [
        { type: 'Complete', status: 'True', reason },
        { type: 'Succeeded', status: 'False', reason },
      ],
    });
    expect(world.enqueued).toEqual([]);
  });

  test('tells the history that there was, and adds nothing to it', async () => {
    const world = deskWith([{ name: 'first' }]);
    world.items.set('team-a', [item('failed', 'QuotaDenied')]);
    await world.clock.advance(second);
    world.make({ name: 'second', spec: { namespaceSelector: {} } });
    await world.clock.advance(0);
    const { history } = world.status('team-a', 'second');
    expect(history).toEqual(world.status('team-a', 'first')['history']);
    expect(history).toMatchObject({ consecutiveFailures: 1 });
  });
});

describe('beside the nab-sync of another OADP', () => {
  const elsewhere = { namespace: 'of-somebody-else', name: 'theirs' };

  test('a request in a namespace without backups is left to it for a while', async () => {
    const world = deskWith([elsewhere]);
    await world.clock.advance(19 * second);
    expect(world.writes).toEqual([]);
    world.make({ ...elsewhere, status: { phase: 'Succeeded', completionTime: '2026-01-01T00:00:19Z' } });
    await world.clock.advance(60 * second);
    expect(world.writes).toEqual([]);
  });

  test('and answered when nobody else does, that it cannot be carried out, too', async () => {
    const world = deskWith([elsewhere, { ...elsewhere, namespace: 'other', spec: { namespaceSelector: {} } }]);
    await world.clock.advance(21 * second);
    expect(world.phases()).toEqual({ 'of-somebody-else/theirs': 'Succeeded', 'other/theirs': 'Failed' });
  });

  test('a request in a protected namespace, which may be that of another OADP, is refused when nobody else answers', async () => {
    const world = deskWith([{ namespace: 'openshift-other-adp' }]);
    await world.clock.advance(19 * second);
    expect(world.writes).toEqual([]);
    world.make({ namespace: 'openshift-other-adp', name: 'later' });
    await world.clock.advance(2 * second);
    expect(world.phases()).toMatchObject({ 'openshift-other-adp/request': 'Failed' });
    // That one has not waited yet.
    expect(world.phases()).toMatchObject({ 'openshift-other-adp/later': 'Pending' });
    await world.clock.advance(30 * second);
    expect(world.status('openshift-other-adp', 'later')).toMatchObject({
      phase: 'Failed',
      conditions: [{ reason: 'ProtectedNamespace' }, {}],
    });
    expect(world.enqueued).toEqual([]);
  });

  const takenUp = (namespace: string, name: string): RequestShape => ({
    namespace,
    name,
    status: { phase: 'Running', oadpNamespace: 'other-adp', startTime: '2026-01-01T00:00:00.000Z' },
  });

  test.each(['of-somebody-else', 'team-a'])(
    'a request in %s that it has taken up is its to answer',
    async (namespace) => {
      const world = deskWith([takenUp(namespace, 'theirs')]);
      await world.clock.advance(300 * second);
      expect(world.writes).toEqual([]);
    },
  );

  test.each(['of-somebody-else', 'team-a'])(
    'but in %s not for ever, since it may have been removed',
    async (namespace) => {
      const world = deskWith([takenUp(namespace, 'theirs')]);
      await world.clock.advance(700 * second);
      expect(world.phases()).toEqual({ [`${namespace}/theirs`]: 'Succeeded' });
    },
  );

  test('what this one has taken up stays its own, whatever the other took up there', async () => {
    const mine = takenUp('of-somebody-else', 'mine');
    const world = deskWith([
      takenUp('of-somebody-else', 'theirs'),
      { ...mine, status: { ...mine.status, oadpNamespace } },
    ]);
    await world.clock.advance(60 * second);
    expect(world.phases()).toEqual({ 'of-somebody-else/theirs': 'Running', 'of-somebody-else/mine': 'Succeeded' });
  });

  test('each request is answered once, by the one that has backups of its namespace', async () => {
    const namespaces = ['team-a', 'team-b', 'of-nobody'];
    const requests = namespaces.flatMap((namespace) => names(30).map((shape) => ({ ...shape, namespace })));
    const world = deskWith([...requests, { namespace: 'openshift-other-adp' }, { namespace: oadpNamespace }]);
    world.beside('openshift-other-adp', { backups: [veleroBackup({ namespace: 'team-b', nacuuid: 'b' })] });
    await world.clock.advance(60 * second);
    const answeredBy = (namespace: string): unknown[] => [
      ...new Set(
        [...world.objects.keys()]
          .filter((key) => key.startsWith(`${namespace}/`))
          .map((key) => objectAt(world.objects.get(key) ?? {}, 'status')['oadpNamespace']),
      ),
    ];
    expect(answeredBy('team-a')).toEqual([oadpNamespace]);
    expect(answeredBy('team-b')).toEqual(['openshift-other-adp']);
    expect(answeredBy(oadpNamespace)).toEqual([oadpNamespace]);
    expect(answeredBy('openshift-other-adp')).toEqual(['openshift-other-adp']);
    expect(new Set(Object.values(world.phases()))).toEqual(new Set(['Succeeded']));
    const answers = world.writes.filter((write) => write.startsWith('Succeeded'));
    expect(new Set(answers).size).toBe(answers.length);
  });

  test('requests that wait behind one that it has taken up, where nothing is known here, are left to it', async () => {
    const world = deskWith([takenUp(elsewhere.namespace, 'theirs'), { ...elsewhere, name: 'behind' }]);
    await world.clock.advance(120 * second);
    expect(world.writes).toEqual([]);
  });

  test('a request that it takes up at the same time is its own', async () => {
    const faults: DeskOptions['faults'] = ['Conflict'];
    const world = deskWith([{}], { faults, reconciles: false });
    world.make(takenUp('team-a', 'request'));
    world.reconcile('team-a');
    await world.clock.advance(60 * second);
    expect(world.phases()).toEqual({ 'team-a/request': 'Running' });
    expect(world.writes).toEqual([]);
  });

  test('neither cleans up what the other has answered, nor carries its history on', async () => {
    const answers = Array.from({ length: 8 }, (_, index): RequestShape => ({
      name: `r${index}`,
      status: {
        phase: 'Failed',
        oadpNamespace: index < 4 ? 'other-adp' : oadpNamespace,
        completionTime: `2025-12-30T00:00:0${index}.000Z`,
        history: {
          attempts: index < 4 ? 90 + index : index,
          lastAttemptTime: '2025-12-30T00:00:00.000Z',
          consecutiveFailures: index < 4 ? 90 : index - 3,
        },
      },
    }));
    const world = deskWith([...answers, { name: 'asked' }]);
    world.items.set('team-a', [item('failed', 'QuotaDenied')]);
    await world.clock.advance(60 * second);
    expect(objectAt(world.status('team-a', 'asked'), 'history')).toMatchObject({ attempts: 8, consecutiveFailures: 5 });
    expect(world.writes.filter((write) => write.startsWith('deleted')).toSorted()).toEqual([
      'deleted team-a/r4',
      'deleted team-a/r5',
    ]);
  });
});

describe('when the time as leader ends', () => {
  test('what is not answered stays Running, and the next leader begins the sync anew and says so', async () => {
    const world = deskWith([{}], { reconciles: false });
    await world.clock.advance(3 * second);
    await world.nextLeader();
    expect(world.status('team-a', 'request')).toMatchObject({ phase: 'Running' });
    await world.clock.advance(second);
    expect(world.enqueued).toEqual(['team-a', 'team-a']);
    world.reconcile('team-a');
    await world.clock.advance(0);
    const status = world.status('team-a', 'request');
    expect(status).toMatchObject({ phase: 'Succeeded', startTime: '2026-01-01T00:00:00.000Z' });
    expect(JSON.stringify(status['conditions'])).toContain('interrupted and begun anew');
    expect(world.writes).toEqual(['Running team-a/request', 'Succeeded team-a/request']);
  });

  test('a reconcile that was ended by it answers nothing', async () => {
    const world = deskWith([{}], { reconciles: false });
    await world.clock.advance(0);
    world.items.set('team-a', [item('created', 'Missing'), item('failed', 'Aborted', 'other')]);
    world.reconcile('team-a');
    await world.clock.advance(60 * second);
    expect(world.phases()).toEqual({ 'team-a/request': 'Running' });
  });

  test('nothing is written any more, not even by one that has not heard of it yet', async () => {
    let leading = true;
    const world = deskWith([{}], { reconciles: false, isLeading: () => leading });
    await world.clock.advance(0);
    leading = false;
    world.reconcile('team-a');
    world.make({ name: 'next', spec: { namespaceSelector: {} } });
    await world.clock.advance(60 * second);
    expect(world.writes).toEqual(['Running team-a/request']);
  });

  test('nothing of the desk runs on', async () => {
    const world = deskWith([{}, { namespace: 'of-somebody-else' }], { reconciles: false });
    await world.clock.advance(second);
    await world.close();
    expect(world.clock.sleeping).toBe(0);
    expect(world.store.size).toBe(2);
  });
});

describe('a write that fails', () => {
  test.each(['Unreachable', 'Timeout', 'ServerError', 'Throttled', 'Conflict', 'Forbidden'] as const)(
    'with %s is made again, with growing pauses, until it succeeds',
    async (code) => {
      const faults = Array.from({ length: 10 }, () => code);
      const world = deskWith([{}], { faults });
      await world.clock.advance(300 * second);
      expect(faults).toEqual([]);
      expect(world.writes).toEqual(['Succeeded team-a/request']);
      expect(world.enqueued).toEqual(['team-a']);
    },
  );

  test('for good is given up: the request stays without an answer, and the others get theirs', async () => {
    const world = deskWith(names(2), { faults: ['Invalid', 'Invalid'] });
    await world.clock.advance(300 * second);
    expect(world.phases()).toEqual({ 'team-a/r000': 'Pending', 'team-a/r001': 'Succeeded' });
    expect(world.enqueued).toEqual(['team-a']);
  });

  test('since the request is gone is no failure', async () => {
    const world = deskWith(names(2), { faults: ['NotFound'] });
    await world.clock.advance(second);
    expect(world.writes.at(-1)).toBe('Succeeded team-a/r001');
    expect(world.writes.join()).not.toContain('r000');
  });

  test('of Running does not keep the answer waiting', async () => {
    const world = deskWith([{}], { faults: ['Timeout'] });
    await world.clock.advance(0);
    expect(world.writes).toEqual(['Succeeded team-a/request']);
  });
});

describe('what was answered is cleaned up', () => {
  const old = (name: string, phase: string, completedAt: number): RequestShape => ({
    name,
    status: {
      phase,
      oadpNamespace,
      completionTime: new Date(Date.UTC(2025, 11, 31) + completedAt * second).toISOString(),
    },
  });

  test('beyond what is kept, at the start and from time to time', async () => {
    const world = deskWith([1, 2, 3, 4, 5].map((index) => old(`r${index}`, 'Succeeded', index)));
    await world.clock.advance(0);
    expect(world.writes.toSorted()).toEqual(['deleted team-a/r1', 'deleted team-a/r2']);
    for (let index = 0; index < 4; index += 1) world.make({ name: `new-${index}` });
    await world.clock.advance(50 * second);
    expect(world.writes.filter((write) => write.startsWith('deleted'))).toHaveLength(5);
    await world.clock.advance(120 * second);
    expect(Object.keys(world.phases()).sort()).toHaveLength(3);
  });

  test('one that cannot be removed is left for the next time', async () => {
    const faults: DeskOptions['faults'] = ['Forbidden'];
    const world = deskWith(
      [1, 2, 3, 4].map((index) => old(`r${index}`, 'Failed', index)),
      { faults },
    );
    await world.clock.advance(0);
    expect(world.writes).toEqual([]);
    await world.clock.advance(31 * second);
    expect(world.writes).toEqual(['deleted team-a/r1']);
  });

  test('one whose name somebody else took in the meantime leaves that one alone', async () => {
    const world = deskWith([1, 2, 3, 4].map((index) => old(`r${index}`, 'Failed', index)));
    world.make({ name: 'r1', uid: 'another' });
    await world.clock.advance(0);
    expect(world.phases()).toMatchObject({ 'team-a/r1': 'Succeeded' });
    expect(world.writes.filter((write) => write.startsWith('deleted'))).toEqual([]);
  });

  test('also of a tenant whose next request is there before the last one is answered', async () => {
    const world = deskWith([{ name: 'next-0' }]);
    let made = 0;
    world.store.onChange((_, before, after) => {
      if (before?.phase === 'Succeeded' || after?.phase !== 'Succeeded') return;
      made += 1;
      world.make({ name: `next-${made}` });
    });
    await world.clock.advance(300 * second);
    expect(made).toBeGreaterThan(50);
    // A minute to read each, at one sync every five seconds, and what is kept.
    expect(Object.keys(world.phases()).length).toBeLessThan(25);
  });

  test('in the pauses of those that wait', async () => {
    const world = deskWith([...[1, 2, 3, 4].map((index) => old(`r${index}`, 'Failed', index)), { name: 'asked' }]);
    await world.clock.advance(0);
    expect(world.writes.slice(-2)).toEqual(['Succeeded team-a/asked', 'deleted team-a/r1']);
  });
});

test('of a namespace whose requests are gone nothing runs on', async () => {
  const world = deskWith([{}]);
  await world.clock.advance(0);
  world.remove('team-a', 'request');
  await world.clock.advance(600 * second);
  expect(world.phases()).toEqual({});
  expect(world.clock.sleeping).toBe(1);
});
