import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { KubeClient, type KubeClientOptions, type RequestInfo } from '../../../src/kube/client.ts';
import type { WatchEvent } from '../../../src/kube/watch-stream.ts';
import { connectionTo } from './connections.ts';
import { failure } from './failure.ts';
import { FaultyServer, sendPieces, type Handler } from './faulty-server.ts';
import { backups } from './kinds.ts';

const ref = { namespace: 'team-a', name: 'x' };

/** The object that `ref` names, with a spec that tells one answer from another. */
function objectText(spec: string): string {
  return JSON.stringify({ kind: 'Backup', metadata: { ...ref, resourceVersion: '1' }, spec });
}

const closers: (() => Promise<void>)[] = [];

async function serve(handler: Handler): Promise<FaultyServer> {
  const server = await FaultyServer.start(handler);
  closers.push(() => server.stop());
  return server;
}

function clientOf(url: string, options: KubeClientOptions = {}): KubeClient {
  const client = new KubeClient(connectionTo(url), options);
  closers.unshift(() => client.close());
  return client;
}

async function collect(events: AsyncIterable<WatchEvent>, into: WatchEvent[] = []): Promise<WatchEvent[]> {
  for await (const event of events) into.push(event);
  return into;
}

function line(name: string, resourceVersion = '7'): string {
  return `${JSON.stringify({ type: 'ADDED', object: { metadata: { name, resourceVersion } } })}\n`;
}

async function until(condition: () => boolean): Promise<void> {
  const end = performance.now() + 3_000;
  while (!condition()) {
    if (performance.now() > end) throw new Error('it never came to that');
    await sleep(5);
  }
}

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const listEnd =
  '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}\n';

describe('deadlines and aborts', () => {
  test('a server that accepts and never answers costs one deadline', async () => {
    const server = await serve(() => undefined);
    const client = clientOf(server.url);
    const started = performance.now();
    const error = await failure(client.get(backups, ref, { timeoutMs: 60 }));
    expect(error).toMatchObject({ code: 'Timeout', status: undefined });
    expect(error.message).toBe('get backups.velero.io x in namespace team-a: timed out: no answer within 0.06 s');
    expect(performance.now() - started).toBeLessThan(1_000);
    await until(() => server.openSockets === 0);
  });

  test('a body that trickles in costs one deadline, too', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200);
      const trickle = setInterval(() => response.write(' '), 5);
      response.on('close', () => {
        clearInterval(trickle);
      });
    });
    expect((await failure(clientOf(server.url).get(backups, ref, { timeoutMs: 60 }))).code).toBe('Timeout');
    await until(() => server.openSockets === 0);
  });

  test('the time in the queue for a connection counts', async () => {
    const server = await serve(() => undefined);
    const client = clientOf(server.url, { connections: 1 });
    const both = await Promise.all([
      failure(client.get(backups, ref, { timeoutMs: 200 })),
      failure(client.get(backups, ref, { timeoutMs: 50 })),
    ]);
    expect(both.map(({ code }) => code)).toEqual(['Timeout', 'Timeout']);
  });

  test('what ran out of time in the queue costs no connection when its turn comes', async () => {
    let answer = (): void => undefined;
    const server = await serve((_request, response) => {
      if (server.requests.length > 1) response.end(objectText('later'));
      else answer = () => response.end(objectText('first'));
    });
    const client = clientOf(server.url, { connections: 1 });
    const first = client.get(backups, ref);
    await until(() => server.requests.length === 1);
    const later = client.get(backups, ref, { timeoutMs: 3_000 });
    const late = failure(client.get(backups, ref, { timeoutMs: 20 }));
    const last = client.get(backups, ref, { timeoutMs: 3_000 });
    expect((await late).code).toBe('Timeout');
    answer();
    expect(await Promise.all([first, later, last])).toMatchObject([
      { spec: 'first' },
      { spec: 'later' },
      { spec: 'later' },
    ]);
    expect([server.requests.length, server.connections]).toEqual([3, 1]);
  });

  test('credentials that do not come in time are a timeout', async () => {
    const connection = connectionTo('http://127.0.0.1:1');
    connection.credentials = () => Promise.withResolvers<never>().promise;
    expect((await failure(new KubeClient(connection).get(backups, ref, { timeoutMs: 30 }))).code).toBe('Timeout');
  });

  test('the signal of the caller ends a request as aborted, before it and while it waits', async () => {
    const server = await serve(() => undefined);
    const client = clientOf(server.url);
    expect((await failure(client.get(backups, ref, { signal: AbortSignal.abort() }))).code).toBe('Aborted');
    expect(server.requests).toEqual([]);
    const caller = new AbortController();
    const waiting = failure(client.get(backups, ref, { signal: caller.signal }));
    await until(() => server.requests.length === 1);
    caller.abort();
    expect((await waiting).code).toBe('Aborted');
  });

  test('closing the client ends what still runs as aborted, and everything after it', async () => {
    const server = await serve(() => undefined);
    const client = clientOf(server.url);
    const running = failure(client.get(backups, ref));
    await until(() => server.requests.length === 1);
    await client.close();
    expect((await running).code).toBe('Aborted');
    expect((await failure(client.get(backups, ref))).code).toBe('Aborted');
    await until(() => server.openSockets === 0);
  });
});

describe('connections that break', () => {
  test('nobody listens: unreachable, with the system error', async () => {
    const server = await serve(() => undefined);
    const { url } = server;
    await server.stop();
    const error = await failure(clientOf(url).get(backups, ref));
    expect(error.code).toBe('Unreachable');
    expect(error.message).toContain(`${url}: ECONNREFUSED`);
  });

  test('a reset before the answer, and one in the middle of it: unreachable', async () => {
    const server = await serve((request) => request.socket.resetAndDestroy());
    const client = clientOf(server.url);
    expect((await failure(client.get(backups, ref))).code).toBe('Unreachable');
    server.handler = (_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"kind":', () => response.socket?.destroy());
    };
    expect((await failure(client.get(backups, ref))).code).toBe('Unreachable');
  });

  test('what is no HTTP at all: malformed', async () => {
    const server = await serve((request) => {
      request.socket.write('SSH-2.0-OpenSSH_9.6\r\n');
    });
    expect(await failure(clientOf(server.url).get(backups, ref))).toMatchObject({ code: 'Malformed' });
  });

  test('connections are kept: a hundred requests one after the other use two at most', async () => {
    const server = await serve((_request, response) => response.end(objectText('any')));
    const client = clientOf(server.url);
    for (let round = 0; round < 100; round += 1) await client.get(backups, ref);
    // undici lets a connection rest for one turn of the event loop, and takes another one meanwhile.
    expect(server.connections).toBeLessThanOrEqual(2);
  });

  test('no more connections than allowed are opened', async () => {
    const server = await serve((_request, response) => setTimeout(() => response.end(objectText('any')), 2));
    const client = clientOf(server.url, { connections: 4 });
    await Promise.all(Array.from({ length: 100 }, () => client.get(backups, ref)));
    expect(server.connections).toBeLessThanOrEqual(4);
  });

  test('what the server says before its answer is not the answer', async () => {
    const server = await serve((_request, response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      response.end(objectText('the answer'));
    });
    expect(await clientOf(server.url).get(backups, ref)).toMatchObject({ spec: 'the answer' });
  });

  test('an answer over the cap whose rest never comes costs its connection, one that was all there already does not', async () => {
    const server = await serve((_request, response) => {
      const text = objectText('x'.repeat(4_000));
      if (server.requests.length === 1) response.write(text);
      else response.end(server.requests.length === 2 ? text : objectText('short'));
    });
    const client = clientOf(server.url, { maxAnswerBytes: 1_000 });
    expect((await failure(client.get(backups, ref))).code).toBe('TooLarge');
    await until(() => server.openSockets === 0);
    expect((await failure(client.get(backups, ref))).code).toBe('TooLarge');
    expect(await client.get(backups, ref)).toMatchObject({ spec: 'short' });
  });

  test('an error that announces megabytes keeps its status', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(503, { 'content-length': String(2 * 1024 * 1024) });
      response.write('{');
    });
    expect(await failure(clientOf(server.url).get(backups, ref))).toMatchObject({ status: 503 });
    await until(() => server.openSockets === 0);
  });

  test('an answer that announces more than the cap is not waited for', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '5000000000' });
      response.flushHeaders();
    });
    const error = await failure(clientOf(server.url).get(backups, ref));
    expect(error).toMatchObject({ code: 'TooLarge', status: 200 });
    await until(() => server.openSockets === 0);
  });

  test('a connection made with old key material is not used with the new', async () => {
    const server = await serve((_request, response) => response.end(objectText('any')));
    const connection = connectionTo(server.url);
    connection.credentials = () => Promise.resolve({ headers: {}, tls: {} });
    const client = new KubeClient(connection);
    closers.unshift(() => client.close());
    for (let round = 0; round < 3; round += 1) await client.get(backups, ref);
    expect(server.connections).toBe(3);
    await until(() => server.openSockets === 1);
  });

  test('closing the client ends watches on connections made with old key material as well', async () => {
    const server = await serve((_request, response) => {
      void sendPieces(response, [line('a')]);
    });
    const connection = connectionTo(server.url);
    connection.credentials = () => Promise.resolve({ headers: {}, tls: {} });
    const client = new KubeClient(connection);
    const watching = [1, 2].map(() =>
      failure(collect(client.watch(backups, { resourceVersion: '5', timeoutSeconds: 60 }))),
    );
    await until(() => server.requests.length === 2);
    await client.close();
    expect((await Promise.all(watching)).map(({ code }) => code)).toEqual(['Aborted', 'Aborted']);
    await until(() => server.openSockets === 0);
  });

  test('a proxy is used when the connection names one', async () => {
    const server = await serve((_request, response) => response.end(objectText('straight')));
    const proxy = await serve((request, response) => {
      expect(request.url).toBe(`${server.url}/apis/velero.io/v1/namespaces/team-a/backups/x`);
      response.end(objectText('by proxy'));
    });
    const client = new KubeClient({ ...connectionTo(server.url), proxyUrl: proxy.url });
    closers.unshift(() => client.close());
    expect(await client.get(backups, ref)).toMatchObject({ spec: 'by proxy' });
    expect(server.requests).toEqual([]);
  });

  test('renewed key material opens new connections, and the old ones end with their last request', async () => {
    let release = (): void => undefined;
    const server = await serve((request, response) => {
      if (request.headers.authorization === 'Bearer new') response.end(objectText('new'));
      else release = () => response.end(objectText('old'));
    });
    const connection = connectionTo(server.url);
    let tls = {};
    let authorization = 'Bearer old';
    connection.credentials = () => Promise.resolve({ headers: { authorization }, tls });
    const client = new KubeClient(connection);
    closers.unshift(() => client.close());
    const old = client.get(backups, ref);
    await until(() => server.requests.length === 1);
    tls = {};
    authorization = 'Bearer new';
    expect(await client.get(backups, ref)).toMatchObject({ spec: 'new' });
    expect(server.connections).toBe(2);
    release();
    expect(await old).toMatchObject({ spec: 'old' });
    await until(() => server.openSockets === 1);
  });
});

describe('a watch', () => {
  const options = { resourceVersion: '5', timeoutSeconds: 60 };

  test('yields each event as it comes, however the body is cut', async () => {
    const text = Buffer.from(line('Grüße-日本') + line('b', '8'));
    const server = await serve((_request, response) => {
      void sendPieces(response, [text.subarray(0, 43), text.subarray(43, 46), text.subarray(46)]).then(() =>
        response.end(),
      );
    });
    let opened = 0;
    const events = await collect(clientOf(server.url).watch(backups, { ...options, onOpen: () => (opened += 1) }));
    expect(events.map(({ resourceVersion }) => resourceVersion)).toEqual(['7', '8']);
    expect(opened).toBe(1);
    expect(server.requests).toEqual([
      '/apis/velero.io/v1/backups?watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=60',
    ]);
  });

  test('that is refused throws before it is open', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(410, { 'content-type': 'application/json' });
      response.end('{"kind":"Status","reason":"Expired","code":410}');
    });
    let opened = false;
    const watching = collect(clientOf(server.url).watch(backups, { ...options, onOpen: () => (opened = true) }));
    expect((await failure(watching)).code).toBe('Gone');
    expect(opened).toBe(false);
  });

  test('that is cut in the middle of an event throws after the events that were whole', async () => {
    const server = await serve((_request, response) => {
      void sendPieces(response, [line('a'), line('b').slice(0, 20)]).then(() => response.socket?.destroy());
    });
    const events: WatchEvent[] = [];
    const error = await failure(collect(clientOf(server.url).watch(backups, options), events));
    expect(error.code).toBe('Unreachable');
    expect(events).toHaveLength(1);
  });

  test('that goes silent is given up as a timeout', async () => {
    const server = await serve((_request, response) => {
      void sendPieces(response, [line('a')]);
    });
    const events: WatchEvent[] = [];
    const watching = collect(clientOf(server.url).watch(backups, { ...options, idleTimeoutMs: 80 }), events);
    expect((await failure(watching)).code).toBe('Timeout');
    expect(events).toHaveLength(1);
    await until(() => server.openSockets === 0);
  });

  test('that begins with what is there may not be silent for longer than a read, until that is told', async () => {
    const server = await serve((request, response) => {
      const isEndless = request.url?.includes('labelSelector') === true;
      void sendPieces(response, isEndless ? [line('a')] : [line('a'), listEnd]);
    });
    const client = clientOf(server.url, { readTimeoutMs: 80 });
    // Else it would wait for a minute.
    const untold = { labelSelector: 'a', timeoutSeconds: 120, idleTimeoutMs: 60_000 };
    expect((await failure(collect(client.watch(backups, untold)))).code).toBe('Timeout');
    const began = performance.now();
    const told = client.watch(backups, { timeoutSeconds: 120, idleTimeoutMs: 400 });
    expect((await failure(collect(told))).code).toBe('Timeout');
    expect(performance.now() - began).toBeGreaterThan(390);
    await until(() => server.openSockets === 0);
  });

  test('that begins with what is there and never gets to its end is given up, however much it tells', async () => {
    const server = await serve((_request, response) => {
      void sendPieces(
        response,
        Array.from({ length: 1_000 }, () => line('a')),
      );
    });
    const heard: string[] = [];
    const client = clientOf(server.url, {
      streamedListTimeoutMs: 100,
      onRequest: ({ verb, code }) => heard.push(`${verb} ${code}`),
    });
    const watching = collect(client.watch(backups, { timeoutSeconds: 120, idleTimeoutMs: 60_000 }));
    expect((await failure(watching)).code).toBe('Timeout');
    expect(heard).toEqual(['watch OK', 'list Timeout']);
    await until(() => server.openSockets === 0);
  });

  test('that begins with what is there is a list as well, told with its end', async () => {
    const server = await serve((request, response) => {
      const isCut = request.url?.includes('labelSelector') === true;
      void sendPieces(response, isCut ? [line('a')] : [line('a'), listEnd, line('b')]).then(() => response.end());
    });
    const heard: string[] = [];
    const client = clientOf(server.url, { onRequest: ({ verb, code }) => heard.push(`${verb} ${code}`) });
    expect(await collect(client.watch(backups, { timeoutSeconds: 60 }))).toHaveLength(3);
    expect(heard.splice(0)).toEqual(['watch OK', 'list OK']);
    expect(await collect(client.watch(backups, { timeoutSeconds: 60, labelSelector: 'a' }))).toHaveLength(1);
    expect(heard.splice(0)).toEqual(['watch OK', 'list Malformed']);
  });

  test('that is never silent for long stays open', async () => {
    const pieces = Array.from({ length: 12 }, (_, index) => line('a', String(index + 10)));
    const server = await serve((_request, response) => {
      void sendPieces(response, pieces, 60).then(() => response.end());
    });
    const events = await collect(clientOf(server.url).watch(backups, { ...options, idleTimeoutMs: 500 }));
    expect(events).toHaveLength(12);
  });

  test('that the server does not end in time is ended by us, though events still come', async () => {
    const server = await serve((_request, response) => {
      void sendPieces(
        response,
        Array.from({ length: 1_000 }, () => line('a')),
      );
    });
    const client = clientOf(server.url, { watchGraceMs: 50 });
    const started = performance.now();
    const watching = collect(client.watch(backups, { resourceVersion: '5', timeoutSeconds: 0.1 }));
    expect((await failure(watching)).code).toBe('Timeout');
    expect(performance.now() - started).toBeLessThan(1_500);
  });

  test('whose headers do not come is given up after the deadline of a read', async () => {
    const heard: RequestInfo[] = [];
    const server = await serve(() => undefined);
    const client = clientOf(server.url, { readTimeoutMs: 50, onRequest: (info) => heard.push(info) });
    expect((await failure(collect(client.watch(backups, options)))).code).toBe('Timeout');
    expect(heard.map(({ verb, code }) => [verb, code])).toEqual([['watch', 'Timeout']]);
  });

  test('ends as aborted on the signal of the caller, with its connection', async () => {
    const server = await serve((_request, response) => {
      void sendPieces(response, [line('a')]);
    });
    const caller = new AbortController();
    const events: WatchEvent[] = [];
    const watching = failure(
      collect(clientOf(server.url).watch(backups, { ...options, signal: caller.signal }), events),
    );
    await until(() => events.length === 1);
    caller.abort();
    expect((await watching).code).toBe('Aborted');
    await until(() => server.openSockets === 0);
  });

  test('closes its connection when its reader leaves', async () => {
    const server = await serve((_request, response) => {
      void sendPieces(response, [line('a'), line('b')]);
    });
    for await (const event of clientOf(server.url).watch(backups, options)) {
      expect(event.resourceVersion).toBe('7');
      break;
    }
    await until(() => server.openSockets === 0);
  });

  test('and a request that the caller ended are aborted in the metrics, too', async () => {
    const heard: RequestInfo[] = [];
    const server = await serve(() => undefined);
    const client = clientOf(server.url, { onRequest: (info) => heard.push(info) });
    const caller = new AbortController();
    const both = [
      failure(collect(client.watch(backups, { ...options, signal: caller.signal }))),
      failure(client.get(backups, ref, { signal: caller.signal })),
    ];
    await until(() => server.requests.length === 2);
    caller.abort();
    await Promise.all(both);
    expect(heard.map(({ code }) => code)).toEqual(['Aborted', 'Aborted']);
  });

  test('takes no connection from the requests', async () => {
    const server = await serve((request, response) => {
      if (request.url?.includes('watch=true') === true) void sendPieces(response, [line('a')]);
      else response.end(objectText('any'));
    });
    const client = clientOf(server.url, { connections: 1 });
    const caller = new AbortController();
    const watching = [1, 2, 3].map(() =>
      failure(collect(client.watch(backups, { ...options, signal: caller.signal }))),
    );
    await until(() => server.requests.length === 3);
    expect(await client.get(backups, ref)).toMatchObject({ spec: 'any' });
    caller.abort();
    await Promise.all(watching);
  });
});
