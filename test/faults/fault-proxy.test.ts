import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { KubeClient } from '../../src/kube/client.ts';
import { loadConnection } from '../../src/kube/connection.ts';
import { stringAt, objectAt } from '../../src/kube/json.ts';
import type { JsonObject } from '../../src/kube/resource.ts';
import type { WatchEvent } from '../../src/kube/watch-stream.ts';
import { backups, namespaces } from '../../src/oadp/kinds.ts';
import { eventually } from '../support/eventually.ts';
import type { Fault } from './fault.ts';
import type { FaultProxy } from './fault-proxy.ts';
import { oadpNamespace, Stage } from './stage.ts';

/** Each fault as nab-sync's own client sees it, on a real API server. */
let stage: Stage;
let proxy: FaultProxy;
let token: string;
let client: KubeClient;
let serial = 0;

const inOadp = { namespace: oadpNamespace };

beforeAll(async () => {
  stage = await Stage.open();
  proxy = await stage.proxy({ pageLimit: 2 });
  token = await stage.token();
  const tokenFile = await stage.file('token', token);
  client = new KubeClient(loadConnection({ kubeconfig: await stage.kubeconfig(proxy, tokenFile) }));
});

afterAll(async () => {
  await client.close();
  await proxy.close();
  await stage.close();
});

beforeEach(() => {
  proxy.heal();
});

async function makeBackup(): Promise<string> {
  serial += 1;
  const name = `backup-${serial}`;
  await stage.objects.create(stage.gen.backup({ namespace: 'team-a', nacuuid: name }));
  return name;
}

async function codeOf(request: Promise<unknown>): Promise<unknown> {
  try {
    return await request;
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error;
  }
}

function names(items: readonly JsonObject[]): (string | undefined)[] {
  return items.map((item) => stringAt(objectAt(item, 'metadata'), 'name'));
}

function getNamespaces(timeoutMs?: number): Promise<unknown> {
  return codeOf(client.listPage(namespaces, { timeoutMs, limit: 1 }));
}

const reset = { kind: 'reset', when: 'before' } as const;

describe('a request', () => {
  it('that no fault strikes comes through unchanged', async () => {
    const name = await makeBackup();
    const ref = { ...inOadp, name };
    expect(await client.get(backups, ref)).toEqual(await stage.objects.get(backups, ref));
  });

  it.each<[string, Fault, string]>([
    ['reset before it is sent on', reset, 'Unreachable'],
    ['reset in the middle of the answer', { kind: 'reset', when: 'midAnswer' }, 'Unreachable'],
    ['whose answer is lost', { kind: 'lostAnswer' }, 'Unreachable'],
    ['that is never answered', { kind: 'halfOpen' }, 'Timeout'],
    ['whose headers come too late', { kind: 'slowHeaders', ms: 2_000 }, 'Timeout'],
    ['whose body trickles too slowly', { kind: 'slowBody', bytes: 1, everyMs: 100 }, 'Timeout'],
    ['answered 401', { kind: 'status', status: 401, body: 'status' }, 'Unauthorized'],
    ['answered 408', { kind: 'status', status: 408, body: 'status' }, 'Timeout'],
    ['answered 410', { kind: 'status', status: 410, body: 'status' }, 'Gone'],
    ['answered 500 with a page', { kind: 'status', status: 500, body: 'page' }, 'ServerError'],
    ['answered 503 without a body', { kind: 'status', status: 503, body: 'none' }, 'ServerError'],
    ['answered 504', { kind: 'status', status: 504, body: 'page' }, 'Timeout'],
    ['answered with a page and 200', { kind: 'nonsense', body: '<html></html>' }, 'Malformed'],
    ['answered with an array and 200', { kind: 'nonsense', body: '[]' }, 'Malformed'],
  ])('%s', async (_, fault, code) => {
    const injected = proxy.inject({ fault, on: { verbs: ['list'] } });
    expect(await getNamespaces(1_000)).toBe(code);
    expect(injected.hits).toBeGreaterThan(0);
    injected.remove();
    expect(await getNamespaces()).toMatchObject({ items: [expect.anything()] });
  });

  it('answered 429 says when to come back', async () => {
    proxy.inject({ fault: { kind: 'status', status: 429, retryAfter: 7, body: 'status' } });
    await expect(client.listPage(namespaces)).rejects.toMatchObject({ code: 'Throttled', retryAfterMs: 7_000 });
  });

  it('whose answer is lost has been carried out, and one that is reset has not', async () => {
    const body = (name: string): JsonObject => stage.gen.backup({ namespace: 'team-a', nacuuid: name });
    const admin = new KubeClient(
      loadConnection({
        kubeconfig: await stage.kubeconfig(proxy, await stage.file('admin', adminToken())),
      }),
    );
    const lost = proxy.inject({ fault: { kind: 'lostAnswer' }, on: { verbs: ['create'] } });
    expect(await codeOf(admin.create(backups, inOadp, body('lost')))).toBe('Unreachable');
    lost.remove();
    proxy.inject({ fault: reset, on: { verbs: ['create'] } });
    expect(await codeOf(admin.create(backups, inOadp, body('never')))).toBe('Unreachable');
    await admin.close();
    expect(await stage.objects.get(backups, { ...inOadp, name: 'lost' })).toBeDefined();
    expect(await stage.objects.get(backups, { ...inOadp, name: 'never' })).toBeUndefined();
  });

  it('that is held goes on when it is let go', async () => {
    const hold = proxy.inject({ fault: { kind: 'hold' } });
    const answer = getNamespaces(10_000);
    await eventually(() => {
      expect(hold.hits).toBe(1);
    });
    expect(proxy.requests.at(-1)).toMatchObject({ verb: 'list', resource: 'namespaces', answered: undefined });
    hold.remove();
    expect(await answer).toMatchObject({ items: [expect.anything()] });
    expect(proxy.requests.at(-1)).toMatchObject({ fault: 'hold', answered: 200 });
  });

  it('of a list has small pages, one of which can fail', async () => {
    await Promise.all([makeBackup(), makeBackup(), makeBackup()]);
    const first = await client.listPage(backups, { ...inOadp, limit: 500 });
    expect(first.items).toHaveLength(2);
    proxy.inject({ fault: { kind: 'status', status: 410, body: 'status' }, on: { laterPage: true } });
    expect(await codeOf(client.listPage(backups, { ...inOadp, limit: 500, continue: first.continue }))).toBe('Gone');
    expect(await client.listPage(backups, { ...inOadp, limit: 500 })).toMatchObject({ items: first.items });
  });

  it('of a list can be told that there is nothing', async () => {
    await makeBackup();
    proxy.inject({ fault: { kind: 'emptyList' } });
    const page = await client.listPage(backups, inOadp);
    expect(page.items).toEqual([]);
    expect(page.continue).toBeUndefined();
    expect(page.resourceVersion).toMatch(/^\d+$/);
  });

  it('with a token that is refused gets 401', async () => {
    proxy.refuse(token);
    expect(await getNamespaces()).toBe('Unauthorized');
    proxy.accept(token);
    expect(await getNamespaces()).toHaveProperty('items');
  });

  it('that is stalled on the way arrives later', async () => {
    proxy.stall();
    const answer = getNamespaces(10_000);
    await sleep(300);
    expect(proxy.requests.at(-1)).toMatchObject({ answered: undefined });
    proxy.unstall();
    expect(await answer).toHaveProperty('items');
  });

  it('to a server that is killed breaks, and finds it again when it is back', async () => {
    await stage.controlPlane.kill('kube-apiserver');
    expect(await getNamespaces()).toBe('Unreachable');
    await stage.controlPlane.startAgain('kube-apiserver');
    await stage.controlPlane.untilReady();
    expect(await getNamespaces()).toHaveProperty('items');
  });
});

describe('a fault', () => {
  it('strikes what it is aimed at', async () => {
    const name = await makeBackup();
    proxy.inject({ fault: reset, on: { verbs: ['get'], resources: ['backups'], name } });
    expect(await codeOf(client.get(backups, { ...inOadp, name }))).toBe('Unreachable');
    expect(await getNamespaces()).toHaveProperty('items');
    expect(await client.listPage(backups, inOadp)).toHaveProperty('items');
  });

  it('strikes so often', async () => {
    proxy.inject({ fault: reset, times: 2 });
    expect([await getNamespaces(), await getNamespaces()]).toEqual(['Unreachable', 'Unreachable']);
    expect(await getNamespaces()).toHaveProperty('items');
  });

  it('strikes with a probability, decided by the given source of chance', async () => {
    const chances = [0.1, 0.9, 0.2];
    const choosy = await stage.proxy({ random: () => chances.shift() ?? 1 });
    const through = new KubeClient(
      loadConnection({ kubeconfig: await stage.kubeconfig(choosy, await stage.file('token', token)) }),
    );
    choosy.inject({ fault: reset, probability: 0.5 });
    const attempt = (): Promise<unknown> => codeOf(through.listPage(namespaces));
    const outcomes = [await attempt(), await attempt(), await attempt()];
    expect(outcomes).toEqual(['Unreachable', expect.anything(), 'Unreachable']);
    expect(outcomes[1]).toHaveProperty('items');
    await through.close();
    await choosy.close();
  });
});

/** A watch on Backups, and what came of it. */
interface Watching {
  readonly events: WatchEvent[];
  readonly end: Promise<unknown>;
}

describe('an open watch', () => {
  let watching: Watching;
  const stops: AbortController[] = [];

  beforeEach(async () => {
    const { resourceVersion } = await client.listPage(backups, inOadp);
    const stop = new AbortController();
    stops.push(stop);
    const opened = Promise.withResolvers<undefined>();
    const events: WatchEvent[] = [];
    const end = (async () => {
      const watch = client.watch(backups, {
        ...inOadp,
        resourceVersion,
        timeoutSeconds: 60,
        signal: stop.signal,
        onOpen: () => {
          opened.resolve(undefined);
        },
      });
      for await (const event of watch) events.push(event);
      return 'in good order';
    })();
    watching = { events, end: codeOf(end) };
    await opened.promise;
  });

  afterAll(() => {
    for (const stop of stops) stop.abort();
  });

  const seen = (): string[] =>
    watching.events.flatMap((event) => (event.type === 'BOOKMARK' ? [] : names([event.object]))).map(String);

  it('brings events when no fault strikes', async () => {
    const name = await makeBackup();
    await eventually(() => {
      expect(seen()).toEqual([name]);
    });
  });

  it.each<[string, Fault, string]>([
    ['is reset', { kind: 'reset', when: 'midAnswer' }, 'Unreachable'],
    ['ends early in good order', { kind: 'closesEarly' }, 'in good order'],
    ['gets an ERROR event', { kind: 'errorEvent', code: 410, reason: 'Expired' }, 'Gone'],
    ['gets an ERROR event of a server in trouble', { kind: 'errorEvent', code: 500, reason: '' }, 'ServerError'],
    ['gets a line that is no JSON', { kind: 'garbageLine', line: '{"type":"ADDED"' }, 'Malformed'],
    ['gets a line that is no event', { kind: 'garbageLine', line: '[1]' }, 'Malformed'],
  ])('%s', async (_, fault, end) => {
    proxy.inject({ fault });
    expect(await watching.end).toBe(end);
  });

  it('breaks off in the middle of an event', async () => {
    proxy.inject({ fault: { kind: 'truncatedEvent' } });
    await makeBackup();
    expect(await watching.end).toBe('Malformed');
    expect(watching.events).toEqual([]);
  });

  it('goes silent, and is reset by healing', async () => {
    proxy.inject({ fault: { kind: 'halfOpen' } });
    await makeBackup();
    await sleep(300);
    expect(watching.events).toEqual([]);
    proxy.heal();
    expect(await watching.end).toBe('Unreachable');
  });

  it('brings each event twice', async () => {
    proxy.inject({ fault: { kind: 'duplicateEvents', late: false } });
    const name = await makeBackup();
    await eventually(() => {
      expect(seen()).toEqual([name, name]);
    });
  });

  it('brings an old event again', async () => {
    proxy.inject({ fault: { kind: 'duplicateEvents', late: true } });
    const [first, second] = [await makeBackup(), await makeBackup()];
    await eventually(() => {
      expect(seen()).toEqual([first, second, first]);
    });
  });

  it('brings events in another order', async () => {
    proxy.inject({ fault: { kind: 'reorderedEvents' } });
    const [first, second] = await Promise.all([makeBackup(), makeBackup()]);
    await eventually(() => {
      expect(seen()).toHaveLength(2);
    });
    const versions = watching.events.map(({ resourceVersion }) => Number(resourceVersion));
    expect(versions[0]).toBeGreaterThan(versions[1] ?? 0);
    expect(new Set(seen())).toEqual(new Set([first, second]));
  });

  it('trickles', async () => {
    proxy.inject({ fault: { kind: 'slowBody', bytes: 50, everyMs: 20 } });
    const name = await makeBackup();
    await eventually(() => {
      expect(seen()).toEqual([name]);
    });
  });

  it('is not struck by what only a new request can meet', async () => {
    const injected = proxy.inject({ fault: { kind: 'status', status: 500, body: 'none' } });
    const name = await makeBackup();
    await eventually(() => {
      expect(seen()).toEqual([name]);
    });
    expect(injected.hits).toBe(0);
  });
});

describe('etcd put back to an earlier copy', () => {
  it('has forgotten what came later, and counts from there again', async () => {
    await stage.etcd.take('before');
    // More than an API server writes by itself when it starts.
    const [name = ''] = await Promise.all(Array.from({ length: 50 }, makeBackup));
    const later = await client.listPage(backups, inOadp);
    await stage.etcd.putBack('before');
    expect(await stage.objects.get(backups, { ...inOadp, name })).toBeUndefined();
    const { resourceVersion } = await client.listPage(backups, inOadp);
    expect(Number(resourceVersion)).toBeLessThan(Number(later.resourceVersion));
  });
});

function adminToken(): string {
  return /"?token"?:\s*"?([0-9a-f]{48})"?/.exec(stage.controlPlane.kubeconfig)?.[1] ?? '';
}
