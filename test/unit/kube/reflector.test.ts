import { setImmediate as turn } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  SyncTimeoutError,
  type Reflector,
  type ReflectorOptions,
  type ReflectorState,
} from '../../../src/kube/reflector.ts';
import { Store } from '../../../src/kube/store.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { ManualClock, type ProcessClock } from '../../support/manual-clock.ts';
import { failure } from './failure.ts';
import { fault, ScriptedApi } from './scripted-api.ts';
import { scriptedReflector, settle } from './scripted-reflector.ts';

let world: ManualClock;
let clock: ProcessClock;
let api: ScriptedApi;
let store: Store<unknown>;
let logged: Record<string, unknown>[];
let stop: AbortController;
let running: Promise<void> | undefined;

beforeEach(() => {
  world = new ManualClock();
  clock = world.process();
  api = new ScriptedApi(clock);
  store = new Store();
  logged = [];
  stop = new AbortController();
  running = undefined;
});

afterEach(async () => {
  stop.abort();
  await running;
  await turn();
  // Nothing sleeps on and no watch is left open, whatever the test did.
  expect(world.sleeping).toBe(0);
  expect(api.openWatches).toBe(0);
});

function reflectorWith(options: Partial<ReflectorOptions<unknown>> = {}): Reflector<unknown> {
  const log = pino(
    { level: 'debug' },
    {
      write: (text: string) => {
        const line: unknown = JSON.parse(text);
        if (typeof line === 'object' && line !== null) logged.push({ ...line });
      },
    },
  );
  return scriptedReflector({ client: api, store, log, clock, random: () => 0, ...options });
}

/** Starts it and lets it come as far as it gets without time going by. */
async function start(options: Partial<ReflectorOptions<unknown>> = {}): Promise<Reflector<unknown>> {
  const reflector = reflectorWith(options);
  running = reflector.run(stop.signal);
  await settle();
  return reflector;
}

/** Moves time on and lets everything that is due have its turn. */
async function pass(ms: number): Promise<void> {
  await world.advance(ms);
  await settle();
}

function held(): Record<string, unknown> {
  return Object.fromEntries(store.entries());
}

describe('a reflector', () => {
  test('does nothing before it is told to run', async () => {
    const reflector = reflectorWith();
    await pass(3_600_000);
    expect(api.requests).toBe(0);
    expect(reflector.state).toMatchObject({ phase: 'syncing' });
    expect(reflector.hasSynced).toBe(false);
  });

  test('lists, then follows the watch from there', async () => {
    api.put('a', 1);
    api.put('b', 2);
    const reflector = await start();
    expect(held()).toEqual({ a: 1, b: 2 });
    expect(reflector.hasSynced).toBe(true);
    expect(reflector.state.phase).toBe('live');
    expect(api.watched[0]).toMatchObject({ resourceVersion: '102', timeoutSeconds: 300 });
    api.put('c', 3);
    api.put('a', 10);
    api.remove('b');
    await settle();
    expect(held()).toEqual({ a: 10, c: 3 });
  });

  test('gathers all pages before the store hears of any', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) api.put(name, name);
    api.pageItems = 2;
    const sizes = new Set<number>();
    store.onChange(() => {
      sizes.add(store.size);
    });
    await start();
    expect(api.lists).toBe(3);
    expect([...sizes]).toEqual([5]);
  });

  test('forgets what it gathered when the list has to start over', async () => {
    for (const name of ['a', 'b', 'c']) api.put(name, name);
    api.pageItems = 1;
    const original = api.listPage.bind(api);
    let pages = 0;
    api.listPage = (resource, options) => {
      pages += 1;
      if (pages !== 2) return original(resource, options);
      api.remove('a', false);
      return Promise.reject(fault('Gone', { status: 410 }));
    };
    await start();
    expect(held()).toEqual({ b: 'b', c: 'c' });
  });

  test('goes on with a new watch from the last event when the server ends one in time', async () => {
    await start();
    await pass(100_000);
    api.put('a', 1);
    await pass(250_000);
    expect(api.lists).toBe(1);
    expect(api.watched.map(({ resourceVersion }) => resourceVersion)).toEqual(['100', '101']);
  });

  test('goes on from a bookmark', async () => {
    await start();
    api.resourceVersion = 500;
    api.bookmark();
    await pass(301_000);
    expect(api.watched.map(({ resourceVersion }) => resourceVersion)).toEqual(['100', '500']);
  });

  test('lists again in time even though the watch told of nothing', async () => {
    api.put('a', 1);
    api.put('b', 1);
    await start();
    api.remove('a', false);
    api.put('b', 2, false);
    api.put('c', 3, false);
    await pass(500_000);
    expect(held()).toEqual({ a: 1, b: 1 });
    await pass(45_000);
    expect(held()).toEqual({ b: 2, c: 3 });
    expect(api.lists).toBe(2);
  });

  test('spreads its watches and lists over time', async () => {
    await start({ random: () => 0.999_999 });
    expect(api.watched[0]?.timeoutSeconds).toBe(600);
    await pass(650_000);
    expect(api.lists).toBe(1);
    await pass(15_000);
    expect(api.lists).toBe(2);
  });

  test('passes on the namespace and the selector', async () => {
    await start({ namespace: 'openshift-adp', labelSelector: 'openshift.io/oadp=True' });
    expect(api.watched[0]).toMatchObject({ namespace: 'openshift-adp', labelSelector: 'openshift.io/oadp=True' });
  });
});

describe('what a request of our own answered', () => {
  test('is in the store before the watch tells it', async () => {
    const reflector = await start();
    reflector.learn('a', 1, '101');
    expect(held()).toEqual({ a: 1 });
    api.put('a', 1);
    await settle();
    expect(held()).toEqual({ a: 1 });
  });

  test('does not bring an object back to life that the watch told to be deleted since', async () => {
    const reflector = await start();
    api.put('a', 1);
    const written = String(api.resourceVersion);
    api.remove('a');
    await settle();
    reflector.learn('a', 1, written);
    expect(held()).toEqual({});
  });

  test('does not undo a later change, nor what a list or a bookmark came past', async () => {
    api.put('a', 1);
    const written = String(api.resourceVersion);
    api.put('a', 2);
    const reflector = await start();
    reflector.learn('a', 1, written);
    expect(held()).toEqual({ a: 2 });
    api.resourceVersion = 500;
    api.bookmark();
    await settle();
    reflector.learn('b', 1, '400');
    expect(held()).toEqual({ a: 2 });
    reflector.learn('b', 1, '501');
    expect(held()).toEqual({ a: 2, b: 1 });
  });

  test('counts where versions cannot be compared', async () => {
    const reflector = await start();
    reflector.learn('a', 1, undefined);
    reflector.learn('b', 2, 'opaque');
    expect(held()).toEqual({ a: 1, b: 2 });
  });
});

describe('what is kept of an object', () => {
  test('is nothing when the projection is undefined, also when it becomes so', async () => {
    api.put('a', 1);
    api.put('b', undefined);
    await start();
    expect(held()).toEqual({ a: 1 });
    api.put('a', undefined);
    await settle();
    expect(held()).toEqual({});
  });

  test('is nothing when it has no key', async () => {
    api.objects.set('x', { metadata: null, value: 1 });
    api.put('a', 1);
    await start();
    api.send({ type: 'ADDED', object: { value: 5 }, resourceVersion: '103' });
    api.send({ type: 'DELETED', object: {}, resourceVersion: '104' });
    await settle();
    expect(held()).toEqual({ a: 1 });
  });

  test('is lost for one object only when its projection throws, in a list and in a watch', async () => {
    const project = (object: JsonObject): unknown => {
      if (object['value'] === 'bad') throw new TypeError('cannot read it');
      return object['value'];
    };
    api.put('a', 1);
    api.put('b', 'bad');
    api.put('c', 3);
    const reflector = await start({ project });
    expect(held()).toEqual({ a: 1, c: 3 });
    api.put('a', 'bad');
    api.put('d', 4);
    await settle();
    expect(held()).toEqual({ c: 3, d: 4 });
    expect(reflector.state.phase).toBe('live');
    expect(reflector.projectionErrors).toBe(2);
    expect(logged.filter(({ level }) => level === 50).map(({ name }) => name)).toEqual(['b', 'a']);
  });

  test('that throws for every object does not flood the log', async () => {
    for (let index = 0; index < 200; index += 1) api.put(`x${index}`, index);
    const reflector = await start({
      project: () => {
        throw new Error('broken for all');
      },
    });
    expect(reflector.projectionErrors).toBe(200);
    expect(logged.filter(({ level }) => level === 50)).toHaveLength(20);
  });

  test('does not depend on listeners of the store', async () => {
    store.onChange(() => {
      throw new Error('broken listener');
    });
    api.put('a', 1);
    const reflector = await start();
    api.put('b', 2);
    await settle();
    expect(held()).toEqual({ a: 1, b: 2 });
    expect(reflector.state.phase).toBe('live');
    expect(store.listenerErrors).toBe(2);
  });
});

describe('a watch that expired', () => {
  test('is followed by a list at once, without an outage being reported', async () => {
    api.put('a', 1);
    const reflector = await start();
    api.remove('a', false);
    const phases: string[] = [];
    reflector.onState(({ phase }) => phases.push(phase));
    api.send(fault('Gone', { status: 410 }));
    await settle();
    expect(held()).toEqual({});
    expect(api.lists).toBe(2);
    expect(api.openWatches).toBe(1);
    expect(phases).toEqual([]);
  });

  test('again and again is not followed by a flood of lists', async () => {
    await start();
    for (let round = 0; round < 600; round += 1) {
      api.send(fault('Gone', { status: 410 }));
      await pass(100);
    }
    expect(api.lists).toBeLessThan(60);
  });
});

describe('a watch that ends too soon', () => {
  test('within a second and without an event is an error, and does not lead to a flood of requests', async () => {
    const reflector = await start();
    api.cutAfterMs = 10;
    api.send(undefined);
    await pass(60_000);
    expect(api.requests).toBeLessThan(90);
    expect(reflector.state).toMatchObject({ phase: 'offline' });
    expect(reflector.state.reason).toContain('ended after 10 ms without an event');
    api.cutAfterMs = undefined;
    api.put('a', 1, false);
    await pass(5_000);
    expect(reflector.state.phase).toBe('live');
    expect(held()).toEqual({ a: 1 });
  });

  test('in good order but early and without an event is followed by a list, since nothing proves that no change is missing', async () => {
    await start();
    await pass(20_000);
    api.put('a', 1, false);
    api.send(undefined);
    await settle();
    expect(held()).toEqual({ a: 1 });
    expect(api.lists).toBe(2);
  });

  test('after an event goes on where it was', async () => {
    await start();
    await pass(20_000);
    api.put('a', 1);
    api.send(undefined);
    await settle();
    expect(api.lists).toBe(1);
    expect(api.watched.map(({ resourceVersion }) => resourceVersion)).toEqual(['100', '101']);
  });
});

describe('an API server that went back in time', () => {
  test('is noticed by a bookmark with an older resourceVersion, and what it forgot is forgotten', async () => {
    api.put('a', 1);
    api.put('lost', 2);
    await start();
    api.remove('lost', false);
    api.resourceVersion = 50;
    api.bookmark();
    await settle();
    expect(held()).toEqual({ a: 1 });
    expect(api.watched.at(-1)?.resourceVersion).toBe('50');
    api.put('b', 3);
    await settle();
    expect(held()).toEqual({ a: 1, b: 3 });
    expect(logged.map(({ msg }) => msg)).toContain('the API server went back in time');
  });

  test('is noticed by an event with an older resourceVersion, which is not taken at its word', async () => {
    api.put('a', 1);
    await start();
    api.send({ type: 'DELETED', object: { metadata: { name: 'a' } }, resourceVersion: '7' });
    await settle();
    expect(held()).toEqual({ a: 1 });
    expect(api.lists).toBe(2);
  });

  test('that keeps sending old events is not asked as fast as it answers', async () => {
    await start();
    for (let round = 0; round < 300; round += 1) {
      api.send({ type: 'BOOKMARK', resourceVersion: '1' });
      await pass(100);
    }
    expect(api.lists).toBeLessThan(40);
  });
});

describe('an outage', () => {
  test('keeps what was known, says since when and why, and ends by itself', async () => {
    api.put('a', 1);
    const reflector = await start();
    await pass(60_000);
    const states: ReflectorState[] = [];
    reflector.onState((state) => states.push(state));
    api.outage = fault('Unreachable', { message: 'no connection: ECONNREFUSED' });
    api.send(fault('Unreachable', { message: 'no connection: reset' }));
    await settle();
    const began = clock.now();
    expect(reflector.state).toEqual({ phase: 'offline', since: began, reason: 'no connection: reset' });
    await pass(120_000);
    expect(reflector.state).toEqual({ phase: 'offline', since: began, reason: 'no connection: ECONNREFUSED' });
    expect(held()).toEqual({ a: 1 });
    expect(reflector.hasSynced).toBe(true);
    api.outage = undefined;
    api.put('b', 2);
    await pass(3_000);
    expect(held()).toEqual({ a: 1, b: 2 });
    expect(states.map(({ phase }) => phase)).toEqual(['offline', 'offline', 'live']);
  });

  test('of two minutes costs less than a request a second, and is over three seconds after its end', async () => {
    const reflector = await start({ random: Math.random });
    api.outage = fault('Unreachable');
    api.send(fault('Unreachable'));
    const before = api.requests;
    await pass(120_000);
    expect(api.requests - before).toBeLessThan(120);
    api.outage = undefined;
    await pass(3_000);
    expect(reflector.state.phase).toBe('live');
  });

  test('is logged once when it begins and once when it ends', async () => {
    await start();
    api.outage = fault('Unreachable');
    api.send(fault('Unreachable'));
    await pass(120_000);
    api.outage = undefined;
    await pass(3_000);
    expect(logged.filter(({ level }) => level === 40)).toHaveLength(1);
    expect(logged.filter(({ phase, level }) => phase === 'live' && level === 30)).toHaveLength(2);
  });

  test('does not begin before the time that the server asked for is over', async () => {
    api.listErrors.push(fault('Throttled', { status: 429, retryAfterMs: 20_000 }));
    await start();
    await pass(19_900);
    expect(api.lists).toBe(1);
    await pass(200);
    expect(api.lists).toBe(2);
  });

  test('is over soon after a server started, though it asks for more time while it starts', async () => {
    api.outage = fault('ServerError', { status: 503, retryAfterMs: 30_000 });
    const reflector = await start({ random: Math.random });
    await pass(120_000);
    expect(api.lists).toBeLessThan(45);
    api.outage = undefined;
    await pass(4_000);
    expect(reflector.state.phase).toBe('live');
  });

  test('after a quiet time begins with the short delay again', async () => {
    await start();
    api.outage = fault('Unreachable');
    api.send(fault('Unreachable'));
    await pass(30_000);
    api.outage = undefined;
    await pass(100_000);
    const lists = api.lists;
    api.send(fault('Unreachable'));
    await settle();
    await pass(250);
    expect(api.lists).toBe(lists + 1);
  });

  test('in the middle of a list leaves the store as it was', async () => {
    for (const name of ['a', 'b', 'c']) api.put(name, 1);
    api.pageItems = 1;
    await start();
    const refused = fault('Forbidden', { status: 403 });
    for (const name of ['a', 'b', 'c']) api.remove(name, false);
    api.put('d', 1, false);
    api.put('e', 1, false);
    // The second page of the list that follows is refused.
    const original = api.listPage.bind(api);
    api.listPage = (resource, options) =>
      options?.continue === undefined ? original(resource, options) : Promise.reject(refused);
    api.send(fault('Gone'));
    await settle();
    expect(held()).toEqual({ a: 1, b: 1, c: 1 });
    api.listPage = original;
    await pass(5_000);
    expect(held()).toEqual({ d: 1, e: 1 });
  });
});

describe('a kind or a right that is missing', () => {
  test('is a state of its own, and the CRD that comes later is found', async () => {
    api.outage = fault('KindNotInstalled', { status: 404 });
    const reflector = await start();
    await pass(600_000);
    expect(reflector.state.phase).toBe('kindNotInstalled');
    expect(reflector.hasSynced).toBe(false);
    expect(api.requests).toBeLessThan(90);
    api.outage = undefined;
    api.put('a', 1, false);
    await pass(15_000);
    expect(reflector.state.phase).toBe('live');
    expect(held()).toEqual({ a: 1 });
  });

  test('is a state of its own, and the role that comes later is found', async () => {
    api.outage = fault('Forbidden', { status: 403, deniedBy: 'authorization' });
    const reflector = await start();
    await pass(1_000);
    expect(reflector.state).toMatchObject({ phase: 'forbidden', reason: 'Forbidden it is' });
    api.outage = undefined;
    await pass(15_000);
    expect(reflector.state.phase).toBe('live');
  });

  test('for the watch alone is seen as well, with the list in place', async () => {
    api.put('a', 1);
    api.watchErrors.push(fault('Forbidden', { verb: 'watch', status: 403 }));
    const reflector = await start();
    expect(reflector.state.phase).toBe('forbidden');
    expect(held()).toEqual({ a: 1 });
  });

  test('empties nothing: no answer is not an empty answer', async () => {
    api.put('a', 1);
    await start();
    api.outage = fault('Forbidden', { status: 403 });
    api.send(fault('Gone'));
    await pass(120_000);
    expect(held()).toEqual({ a: 1 });
  });

  test('for a moment, while a server starts after a long outage, does not cost the long delay of an admin', async () => {
    const reflector = await start();
    api.outage = fault('Unreachable');
    api.send(fault('Unreachable'));
    await pass(120_000);
    api.outage = fault('Forbidden', { status: 403 });
    await pass(3_000);
    expect(reflector.state.phase).toBe('forbidden');
    api.outage = undefined;
    await pass(3_000);
    expect(reflector.state.phase).toBe('live');
  });
});

describe('waiting for the first list', () => {
  test('ends with it, and at once when it has been there for long', async () => {
    const reflector = await start();
    await reflector.waitForSync();
    await reflector.waitForSync({ timeoutMs: 1 });
  });

  test('says after its time what is in the way', async () => {
    api.outage = fault('KindNotInstalled', { message: 'list backups.velero.io: kind not installed' });
    const reflector = await start();
    const error: unknown = await reflector.waitForSync({ timeoutMs: 10 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SyncTimeoutError);
    expect(error).toMatchObject({
      message:
        'no complete list of backups.velero.io within 0.01 s (kindNotInstalled: list backups.velero.io: kind not installed)',
    });
  });

  test('ends as aborted on the signal', async () => {
    const waiting = failure(reflectorWith().waitForSync({ signal: AbortSignal.timeout(5) }));
    expect((await waiting).code).toBe('Aborted');
  });
});

describe('a single list', () => {
  test('fills the store and watches nothing', async () => {
    api.put('a', 1);
    const reflector = reflectorWith();
    await reflector.listOnce();
    expect(held()).toEqual({ a: 1 });
    expect(reflector.hasSynced).toBe(true);
    expect(api.watched).toEqual([]);
  });

  test('survives a server that is not quite ready', async () => {
    api.put('a', 1);
    api.listErrors.push(
      fault('Throttled', { status: 429, retryAfterMs: 1_000 }),
      fault('ServerError', { status: 503 }),
    );
    const listing = reflectorWith().listOnce();
    await pass(2_000);
    await listing;
    expect(held()).toEqual({ a: 1 });
  });

  test.each(['Forbidden', 'KindNotInstalled', 'Unauthorized'] as const)('says %s at once', async (code) => {
    api.outage = fault(code);
    expect((await failure(reflectorWith().listOnce())).code).toBe(code);
    expect(api.requests).toBe(1);
  });

  test('that fails leaves the store as it was', async () => {
    store.set('a', 1);
    api.outage = fault('Timeout');
    expect((await failure(reflectorWith().listOnce())).code).toBe('Timeout');
    expect(held()).toEqual({ a: 1 });
  });
});

describe('stopping', () => {
  test('ends the watch and every wait, and is a state', async () => {
    const reflector = await start();
    stop.abort();
    await running;
    expect(reflector.state.phase).toBe('stopped');
    expect(api.openWatches).toBe(0);
    const requests = api.requests;
    await pass(3_600_000);
    expect(api.requests).toBe(requests);
  });

  test('ends a back-off at once', async () => {
    api.outage = fault('Unreachable');
    const reflector = await start();
    stop.abort();
    await running;
    expect(reflector.state.phase).toBe('stopped');
  });

  test('before the start makes no request', async () => {
    stop.abort();
    await start();
    await running;
    expect(api.requests).toBe(0);
  });

  test('lets it run anew later, but never twice at once', async () => {
    const reflector = await start();
    await expect(reflector.run(stop.signal)).rejects.toThrow('already runs');
    stop.abort();
    await running;
    api.put('a', 1, false);
    stop = new AbortController();
    const phases: string[] = [];
    reflector.onState(({ phase }) => phases.push(phase));
    running = reflector.run(stop.signal);
    await settle();
    expect(phases).toEqual(['syncing', 'live']);
    expect(held()).toEqual({ a: 1 });
  });
});

describe('faults of our own', () => {
  test('a listener of the state that throws costs the others nothing', async () => {
    const reflector = reflectorWith();
    const phases: string[] = [];
    reflector.onState(() => {
      throw new Error('broken listener');
    });
    const leave = reflector.onState(({ phase }) => phases.push(phase));
    running = reflector.run(stop.signal);
    await settle();
    leave();
    expect(phases).toEqual(['live']);
    expect(logged.map(({ msg }) => msg)).toContain('a listener of the reflector failed');
  });

  test('an error that is none of the API is logged with its stack, and does not end it', async () => {
    const original = api.listPage.bind(api);
    api.listPage = () => {
      throw new TypeError('undefined is not a function');
    };
    const reflector = await start();
    expect(reflector.state.phase).toBe('offline');
    expect(logged.some(({ level, err }) => level === 50 && err !== undefined)).toBe(true);
    api.listPage = original;
    await pass(3_000);
    expect(reflector.state.phase).toBe('live');
  });

  test.each([
    ['relistIntervalMs', 0],
    ['retryCapMs', Number.NaN],
    ['watchMinSeconds', 601],
  ])('%s of %d is refused by the constructor', (name, value) => {
    expect(() => reflectorWith({ [name]: value })).toThrow(RangeError);
  });
});
