import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubeErrorCode } from '../../../src/kube/errors.ts';
import { Store } from '../../../src/kube/store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { fault, ScriptedApi } from './scripted-api.ts';
import { scriptedReflector, settle } from './scripted-reflector.ts';

const CODES: readonly KubeErrorCode[] = [
  'Timeout',
  'Unreachable',
  'Unauthorized',
  'Forbidden',
  'KindNotInstalled',
  'Gone',
  'TooLarge',
  'BadRequest',
  'Throttled',
  'Invalid',
  'ServerError',
  'Malformed',
];

const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const code = fc.constantFrom(...CODES);

/** One thing that happens to the API server or to the way there. */
const happening = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('put' as const), name, value: fc.nat(3) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('remove' as const), name }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('time' as const), ms: fc.nat(20_000) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('break' as const), code }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('end' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('bookmark' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('old event' as const), name }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('list fails' as const), code }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('watch fails' as const), code }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stream fails' as const), code }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('stream breaks' as const), after: fc.nat(5), code: fc.option(code) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('streams hang' as const), ms: fc.nat(120_000) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('outage' as const), code, ms: fc.nat(120_000) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('short watches' as const), ms: fc.nat(60_000) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rollback' as const), name }) },
);

type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;

async function play(happenings: readonly Happening[], streams: boolean, chance: () => number): Promise<void> {
  const world = new ManualClock();
  const clock = world.process();
  const api = new ScriptedApi(clock);
  api.pageItems = 2;
  api.streams = streams;
  const store = new Store<unknown>();
  const reflector = scriptedReflector({ client: api, store, clock, random: chance });
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  const pass = async (ms: number): Promise<void> => {
    await world.advance(ms);
    await settle();
  };
  await settle();
  let faults = 0;
  for (const one of happenings) {
    // Nobody is told while no watch is open, as it is with a real server.
    switch (one.kind) {
      case 'put':
        api.put(one.name, one.value);
        break;
      case 'remove':
        if (api.objects.has(one.name)) api.remove(one.name);
        break;
      case 'time':
        await pass(one.ms);
        break;
      case 'break':
        faults += 1;
        api.put('a', 'changed as it broke', false);
        api.send(fault(one.code));
        break;
      case 'end':
        faults += 1;
        api.send(undefined);
        break;
      case 'bookmark':
        api.bookmark();
        break;
      case 'old event':
        faults += 1;
        api.send({ type: 'DELETED', object: { metadata: { name: one.name } }, resourceVersion: '1' });
        break;
      case 'list fails':
        faults += 1;
        api.listErrors.push(fault(one.code));
        break;
      case 'watch fails':
        faults += 1;
        api.watchErrors.push(fault(one.code));
        break;
      case 'stream fails':
        faults += 1;
        api.streamErrors.push(fault(one.code));
        break;
      case 'stream breaks':
        faults += 1;
        api.streamBreak = { after: one.after, error: one.code === null ? undefined : fault(one.code) };
        break;
      case 'streams hang':
        faults += 1;
        api.streamHangs = true;
        api.send(fault('Gone'));
        await pass(one.ms);
        api.streamHangs = false;
        // The client's deadline for a list.
        api.send(fault('Timeout'));
        break;
      case 'outage':
        faults += 1;
        api.outage = fault(one.code);
        api.send(fault(one.code));
        await pass(one.ms);
        api.outage = undefined;
        break;
      case 'short watches':
        faults += 1;
        api.cutAfterMs = 5;
        api.send(undefined);
        await pass(one.ms);
        api.cutAfterMs = undefined;
        break;
      case 'rollback':
        faults += 1;
        if (api.objects.has(one.name)) api.remove(one.name, false);
        api.resourceVersion = 10;
        api.send(fault('Unreachable'));
        break;
    }
    await settle();
  }
  api.listErrors.length = 0;
  api.watchErrors.length = 0;
  api.streamErrors.length = 0;
  api.streamBreak = undefined;
  // Long enough for the slowest way back: the delay for what only an admin can bring, and the list under everything.
  await pass(700_000);
  const held = Object.fromEntries(store.entries());
  const expected = Object.fromEntries([...api.objects].map(([key, object]) => [key, object['value']]));
  const seconds = world.now / 1_000;
  stop.abort();
  await running;
  await settle();
  expect(held).toEqual(expected);
  expect(reflector.hasSynced).toBe(true);
  expect(api.requests).toBeLessThan(20 + 2 * seconds + 8 * faults);
  expect({ asleep: world.sleeping, watches: api.openWatches }).toEqual({ asleep: 0, watches: 0 });
}

describe('a reflector', () => {
  test('ends with exactly what the server has, whatever happened in whatever order, at a bounded rate of requests', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(happening, { maxLength: 30 }),
        fc.boolean(),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        async (happenings, streams, chance) => {
          await play(happenings, streams, () => chance);
        },
      ),
      { numRuns: 600 },
    );
  });
});
