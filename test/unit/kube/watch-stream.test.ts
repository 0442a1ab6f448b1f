import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readWatchEvents, type WatchEvent } from '../../../src/kube/watch-stream.ts';
import { failure } from './failure.ts';
import { backups } from './kinds.ts';

const watch = { verb: 'watch', resource: backups, ref: {} };

async function read(chunks: readonly (string | Uint8Array)[], maxLineBytes = 10_000): Promise<WatchEvent[]> {
  const events: WatchEvent[] = [];
  // eslint is right that nothing is awaited here: a body is asynchronous, its pieces in this test are not.
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
      controller.close();
    },
  });
  for await (const event of readWatchEvents(body, watch, maxLineBytes)) events.push(event);
  return events;
}

function line(type: string, name: string, resourceVersion = '7'): string {
  return `${JSON.stringify({ type, object: { kind: 'Backup', metadata: { name, resourceVersion } } })}\n`;
}

function names(events: readonly WatchEvent[]): unknown[] {
  return events.map((event) => (event.type === 'BOOKMARK' ? 'BOOKMARK' : event.object['metadata']));
}

describe('the body of a watch', () => {
  test('is one event a line, and ends between two lines', async () => {
    const bookmark = '{"type":"BOOKMARK","object":{"kind":"Backup","metadata":{"resourceVersion":"9"}}}\n';
    const events = await read([
      line('ADDED', 'a') + line('MODIFIED', 'a', '8'),
      `${bookmark}\n`,
      line('DELETED', 'a', '10'),
    ]);
    expect(events.map(({ type, resourceVersion }) => [type, resourceVersion])).toEqual([
      ['ADDED', '7'],
      ['MODIFIED', '8'],
      ['BOOKMARK', '9'],
      ['DELETED', '10'],
    ]);
    expect(events[2]).toEqual({ type: 'BOOKMARK', resourceVersion: '9' });
  });

  test('tells where what was there at the beginning ends, and takes nothing else for it', async () => {
    const bookmark = (annotations: unknown): string =>
      `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '9', annotations } } })}\n`;
    const events = await read(
      [{ 'k8s.io/initial-events-end': 'true' }, { 'k8s.io/initial-events-end': 'false' }, {}, undefined, 'true'].map(
        bookmark,
      ),
    );
    expect(events).toEqual([
      { type: 'BOOKMARK', resourceVersion: '9', initialEventsEnd: true },
      ...Array.from({ length: 4 }, () => ({ type: 'BOOKMARK', resourceVersion: '9' })),
    ]);
    // An object of a tenant may bear any annotation.
    const metadata = { name: 'a', resourceVersion: '7', annotations: { 'k8s.io/initial-events-end': 'true' } };
    expect(await read([`${JSON.stringify({ type: 'ADDED', object: { metadata } })}\n`])).toEqual([
      { type: 'ADDED', object: { metadata }, resourceVersion: '7' },
    ]);
  });

  test('may be cut anywhere, in the middle of a character too', async () => {
    const text = Buffer.from(line('ADDED', 'Grüße-😀-日本') + line('ADDED', 'ende'));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: text.length }), { maxLength: 12 }), async (cuts) => {
        const bounds = [0, ...cuts.toSorted((a, b) => a - b), text.length];
        const chunks = bounds.slice(1).map((end, index) => text.subarray(bounds[index], end));
        expect(names(await read(chunks))).toEqual([
          { name: 'Grüße-😀-日本', resourceVersion: '7' },
          { name: 'ende', resourceVersion: '7' },
        ]);
      }),
    );
  });

  test('that is empty is no event and no error', async () => {
    expect(await read([])).toEqual([]);
    expect(await read(['\n', '\n'])).toEqual([]);
  });

  test('that ends within a line is an error, even when the line happens to be whole', async () => {
    const cut = line('ADDED', 'a').trimEnd();
    expect(await failure(read([line('ADDED', 'a'), cut.slice(0, 20)]))).toMatchObject({ code: 'Malformed' });
    expect((await failure(read([cut]))).message).toContain('ended in the middle of an event');
  });

  test.each([
    ['garbage', 'garbage\n'],
    ['a scalar', '5\n'],
    ['an event without an object', '{"type":"ADDED"}\n'],
    ['an event whose object is null', '{"type":"ADDED","object":null}\n'],
    ['an event of unknown type', '{"type":"RENAMED","object":{"metadata":{"resourceVersion":"1"}}}\n'],
    ['an event without a resourceVersion', '{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'],
    ['bytes that are no UTF-8', Buffer.from([0xff, 0xfe, 0x0a])],
  ])('that holds %s is malformed', async (_name, chunk) => {
    expect((await failure(read([line('ADDED', 'a'), chunk]))).code).toBe('Malformed');
  });

  test('yields what came before the fault', async () => {
    const seen: WatchEvent[] = [];
    const body = new Blob([line('ADDED', 'a'), 'garbage\n']).stream();
    const reading = (async () => {
      for await (const event of readWatchEvents(body, watch, 1_000)) seen.push(event);
    })();
    expect((await failure(reading)).code).toBe('Malformed');
    expect(seen).toHaveLength(1);
  });

  test('with a line over the cap is given up before the line has ended', async () => {
    const error = await failure(read([`{"type":"ADDED","object":{"x":"${'x'.repeat(900)}`, 'y'.repeat(200)], 1_000));
    expect(error).toMatchObject({ code: 'TooLarge', status: 200 });
  });

  test('may be longer than the cap in many lines', async () => {
    expect(await read([line('ADDED', 'a').repeat(100)], 200)).toHaveLength(100);
  });

  test.each([
    [410, 'Expired', 'Gone'],
    [410, 'Gone', 'Gone'],
    [429, 'TooManyRequests', 'Throttled'],
    [500, 'InternalError', 'ServerError'],
    [504, 'Timeout', 'Timeout'],
    [403, 'Forbidden', 'Forbidden'],
  ])('with an ERROR event of %i %s throws %s', async (code, reason, expected) => {
    const object = { kind: 'Status', code, reason, message: 'too old resource version: 1 (262)' };
    const error = await failure(read([`${JSON.stringify({ type: 'ERROR', object })}\n`]));
    expect(error).toMatchObject({ code: expected, reason });
    expect(error.message).toContain('too old resource version');
  });

  test('with an ERROR event that holds nothing is a fault of the server', async () => {
    expect((await failure(read(['{"type":"ERROR","object":{}}\n']))).code).toBe('ServerError');
  });
});
