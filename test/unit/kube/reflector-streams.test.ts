import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Reflector } from '../../../src/kube/reflector.ts';
import { Store } from '../../../src/kube/store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { fault, ScriptedApi } from './scripted-api.ts';
import { scriptedReflector, settle } from './scripted-reflector.ts';

let world: ManualClock;
let api: ScriptedApi;
let store: Store<unknown>;
let stop: AbortController;
let running: Promise<void> | undefined;

beforeEach(() => {
  world = new ManualClock();
  api = new ScriptedApi(world.process());
  api.streams = true;
  store = new Store();
  stop = new AbortController();
  running = undefined;
});

afterEach(async () => {
  stop.abort();
  await running;
  await settle();
  expect({ asleep: world.sleeping, watches: api.openWatches }).toEqual({ asleep: 0, watches: 0 });
});

function reflectorOf(): Reflector<unknown> {
  return scriptedReflector({ client: api, store, clock: world.process(), random: () => 0 });
}

async function pass(ms: number): Promise<void> {
  await world.advance(ms);
  await settle();
}

async function start(): Promise<Reflector<unknown>> {
  const reflector = reflectorOf();
  running = reflector.run(stop.signal);
  await settle();
  return reflector;
}

function held(): Record<string, unknown> {
  return Object.fromEntries(store.entries());
}

function requests(): { streamed: number; lists: number; watches: number } {
  return { streamed: api.streamed, lists: api.lists, watches: api.watched.length };
}

describe('a list that is streamed', () => {
  test('and the watch that follows it are one request', async () => {
    api.put('a', 1);
    api.put('b', 2);
    const reflector = await start();
    expect(held()).toEqual({ a: 1, b: 2 });
    expect(reflector.state.phase).toBe('live');
    api.put('c', 3);
    api.remove('a');
    await settle();
    expect(held()).toEqual({ b: 2, c: 3 });
    expect(requests()).toEqual({ streamed: 1, lists: 0, watches: 0 });
  });

  test('is all gathered before the store hears of any, and what is gone has left it', async () => {
    store.set('gone', 0);
    for (const name of ['a', 'b', 'c']) api.put(name, name);
    const sizes = new Set<number>();
    store.onChange(() => {
      sizes.add(store.size);
    });
    await start();
    expect([...sizes]).toEqual([3]);
  });

  test('may tell of what changes while it is told', async () => {
    const stream = (async function* () {
      await turn();
      yield { type: 'ADDED', object: { metadata: { name: 'a' }, value: 1 }, resourceVersion: '1' } as const;
      yield { type: 'ADDED', object: { metadata: { name: 'b' }, value: 1 }, resourceVersion: '9' } as const;
      yield { type: 'MODIFIED', object: { metadata: { name: 'a' }, value: 2 }, resourceVersion: '10' } as const;
      yield { type: 'DELETED', object: { metadata: { name: 'b' }, value: 1 }, resourceVersion: '11' } as const;
      yield { type: 'BOOKMARK', resourceVersion: '11' } as const;
      expect(store.size).toBe(0);
      yield { type: 'BOOKMARK', resourceVersion: '11', initialEventsEnd: true } as const;
    })();
    api.watch = () => stream;
    await start();
    expect(held()).toEqual({ a: 2 });
  });

  test('goes on with a watch from where it got to, until it is due again', async () => {
    api.put('a', 1);
    await start();
    await pass(100_000);
    api.put('b', 1);
    await pass(250_000);
    expect(requests()).toEqual({ streamed: 1, lists: 0, watches: 1 });
    expect(api.watched[0]).toMatchObject({ resourceVersion: '102' });
    api.remove('a', false);
    await pass(200_000);
    expect(held()).toEqual({ b: 1 });
    expect(requests()).toEqual({ streamed: 2, lists: 0, watches: 1 });
  });

  test.each(['Invalid', 'BadRequest'] as const)(
    'and refused as %s comes in pages at once, and after the second time always does',
    async (code) => {
      api.put('a', 1);
      api.streamErrors.push(fault(code), fault(code));
      const reflector = await start();
      expect(held()).toEqual({ a: 1 });
      expect(reflector.state.phase).toBe('live');
      await pass(3 * 545_000);
      expect(requests()).toMatchObject({ streamed: 2, lists: 4 });
    },
  );

  test.each([
    ['are given up by the server', fault('ServerError', { status: 500 })],
    ['end without their end', undefined],
  ])('is tried no more after two streams in a row that %s', async (_, error) => {
    api.put('a', 1);
    api.streamBreak = { after: 1, error };
    await start();
    api.streamBreak = { after: 1, error };
    await pass(545_000);
    await pass(2 * 545_000);
    expect(held()).toEqual({ a: 1 });
    expect(requests()).toMatchObject({ streamed: 2, lists: 4 });
  });

  test('is tried again where pages cannot be had', async () => {
    api.put('a', 1);
    api.streamBreak = { after: 0, error: fault('Unreachable') };
    api.listErrors.push(fault('Forbidden'));
    await start();
    await pass(20_000);
    expect(held()).toEqual({ a: 1 });
    expect(requests()).toEqual({ streamed: 2, lists: 1, watches: 0 });
  });

  test('and takes long is no watch that is followed: the store counts as behind meanwhile', async () => {
    api.put('a', 1);
    const reflector = await start();
    expect(reflector.staleForMs).toBe(0);
    api.streamHangs = true;
    await pass(545_000);
    expect(api.streamed).toBe(2);
    await pass(40_000);
    expect(reflector.staleForMs).toBeGreaterThanOrEqual(40_000);
    api.streamHangs = false;
    api.send(fault('Timeout'));
    await pass(1_000);
    expect(reflector.staleForMs).toBe(0);
    expect(requests()).toMatchObject({ streamed: 2, lists: 1 });
  });

  test('comes in pages where only the right to watch is missing, and is streamed once that is there', async () => {
    api.put('a', 1);
    api.streamErrors.push(fault('Forbidden'));
    api.watchErrors.push(fault('Forbidden'));
    const reflector = await start();
    expect(held()).toEqual({ a: 1 });
    expect(reflector.state.phase).toBe('forbidden');
    await pass(20_000);
    expect(reflector.state.phase).toBe('live');
    expect(requests()).toEqual({ streamed: 2, lists: 1, watches: 1 });
  });

  test.each([
    ['breaks off', fault('Unreachable')],
    ['is taken too long over', fault('Timeout')],
    ['ends in good order', undefined],
    ['is no JSON', fault('Malformed')],
    ['turns out to be too old', fault('Gone', { status: 410 })],
  ])('and %s before its end is no list at all, and comes in pages next', async (_, error) => {
    store.set('before', 1);
    for (const name of ['a', 'b', 'c']) api.put(name, name);
    api.streamBreak = { after: 2, error };
    const reflector = reflectorOf();
    const seen: string[] = [];
    store.onChange((key) => seen.push(key));
    running = reflector.run(stop.signal);
    await settle();
    if (error?.code !== 'Gone') {
      expect({ held: held(), seen, hasSynced: reflector.hasSynced }).toEqual({
        held: { before: 1 },
        seen: [],
        hasSynced: false,
      });
      expect(reflector.state.phase).toBe('offline');
    }
    await pass(1_000);
    expect(held()).toEqual({ a: 'a', b: 'b', c: 'c' });
    expect(reflector.state.phase).toBe('live');
    expect(requests()).toEqual({ streamed: 1, lists: 1, watches: 1 });
    // It may have been the network; the next one is streamed again.
    await pass(545_000);
    expect(requests()).toMatchObject({ streamed: 2, lists: 1 });
  });

  test('takes turns with pages in an outage', async () => {
    api.outage = fault('Unreachable');
    await start();
    await pass(60_000);
    expect(requests()).toMatchObject({ watches: 0 });
    expect(Math.abs(api.streamed - api.lists)).toBeLessThanOrEqual(1);
    expect(api.requests).toBeGreaterThan(10);
    expect(api.requests).toBeLessThan(60);
    api.outage = undefined;
    await pass(5_000);
    expect(api.openWatches).toBe(1);
    // What could not even be opened says nothing of streams.
    await pass(545_000);
    await pass(545_000);
    expect(api.streamed).toBeGreaterThan(api.lists);
  });

  test('and ends right after its end is no reason for a flood of requests', async () => {
    api.put('a', 1);
    await start();
    api.cutAfterMs = 1;
    api.send(undefined);
    await pass(60_000);
    expect(api.requests).toBeLessThan(60);
  });
});

describe('a single list', () => {
  test('comes in pages, so that it needs no right to watch', async () => {
    api.put('a', 1);
    await reflectorOf().listOnce();
    expect(held()).toEqual({ a: 1 });
    expect(requests()).toEqual({ streamed: 0, lists: 1, watches: 0 });
  });
});
