import nock from 'nock';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { KubeClient } from '../../../src/kube/client.ts';
import { systemClock, type Clock } from '../../../src/kube/clock.ts';
import { objectAt } from '../../../src/kube/json.ts';
import { PageSize } from '../../../src/kube/page-size.ts';
import { listAll, type ListAllOptions } from '../../../src/kube/pager.ts';
import { connectionTo } from './connections.ts';
import { failure } from './failure.ts';
import { backups } from './kinds.ts';

const SERVER = 'http://api.test:6443';
const PATH = '/apis/velero.io/v1/backups';

let client: KubeClient;
let slept: number[];

/** Sleeps no time at all and remembers for how long it should have. */
const clock: Clock = {
  ...systemClock,
  sleep(ms) {
    slept.push(ms);
    return Promise.resolve();
  },
};

/** Lists everything; resolves with the names, one array a page, as they stood in the end. */
async function names(options: Partial<ListAllOptions> = {}): Promise<{ pages: unknown[][]; resourceVersion: string }> {
  const pages: unknown[][] = [];
  const resourceVersion = await listAll({
    client,
    resource: backups,
    pageSize: new PageSize({ initial: 2, max: 2 }),
    pageCapBytes: 1_000_000,
    onItems: (items) => pages.push(items.map((item) => objectAt(item, 'metadata')['name'])),
    onRestart: () => pages.splice(0),
    firstPageTries: 1,
    signal: undefined,
    clock,
    random: () => 0,
    ...options,
  });
  return { pages, resourceVersion };
}

function page(items: readonly string[], next?: string, resourceVersion = '7'): object {
  return {
    metadata: { resourceVersion, ...(next === undefined ? {} : { continue: next }) },
    items: items.map((name) => ({ metadata: { name } })),
  };
}

function expectPage(token?: string, limit = 2): nock.Interceptor {
  return nock(SERVER)
    .get(PATH)
    .query({ limit: String(limit), ...(token === undefined ? {} : { continue: token }) });
}

const expired = { kind: 'Status', reason: 'Expired', code: 410, message: 'the provided continue parameter is too old' };

beforeAll(() => {
  nock.disableNetConnect();
});

beforeEach(() => {
  client = new KubeClient(connectionTo(SERVER));
  slept = [];
});

afterEach(async () => {
  await client.close();
  expect(nock.pendingMocks()).toEqual([]);
  nock.cleanAll();
});

afterAll(() => {
  nock.enableNetConnect();
  nock.restore();
});

describe('a paged list', () => {
  test('goes on until there is no continue token', async () => {
    expectPage().reply(200, page(['a', 'b'], 'one'));
    expectPage('one').reply(200, page(['c', 'd'], 'two'));
    expectPage('two').reply(200, page(['e']));
    expect(await names()).toEqual({ pages: [['a', 'b'], ['c', 'd'], ['e']], resourceVersion: '7' });
  });

  test('asks for the next page before it hands one on', async () => {
    const told: string[] = [];
    const listPage: KubeClient['listPage'] = async (resource, options) => {
      told.push(`ask ${options?.continue ?? 'first'}`);
      return await client.listPage(resource, options);
    };
    expectPage().reply(200, page(['a'], 'one'));
    expectPage('one').reply(200, page(['b']));
    await names({ client: { listPage }, onItems: (items) => told.push(`take ${items.length}`) });
    expect(told).toEqual(['ask first', 'ask one', 'take 1', 'take 1']);
  });

  test('has nothing under way any more when a page was not taken', async () => {
    let underWay = 0;
    const listPage: KubeClient['listPage'] = async (resource, options) => {
      underWay += 1;
      try {
        return await client.listPage(resource, options);
      } finally {
        underWay -= 1;
      }
    };
    expectPage().reply(200, page(['a'], 'one'));
    expectPage('one')
      .delay(30)
      .reply(200, page(['b']));
    const onItems = (): never => {
      throw new Error('not taken');
    };
    await expect(names({ client: { listPage }, onItems })).rejects.toThrow('not taken');
    expect(underWay).toBe(0);
  });

  test('is to be watched from where its first page was, whatever later pages say', async () => {
    expectPage().reply(200, page(['a'], 'one', '7'));
    expectPage('one').reply(200, page(['b'], undefined, '9'));
    expect((await names()).resourceVersion).toBe('7');
  });

  test('may have empty pages in the middle, as a selector causes them', async () => {
    expectPage().reply(200, page([], 'one'));
    expectPage('one').reply(200, page(['b']));
    expect((await names()).pages).toEqual([[], ['b']]);
  });

  test('asks for more at a time when items turn out to be small', async () => {
    expectPage(undefined, 2).reply(200, page(['a', 'b'], 'one'));
    expectPage('one', 8).reply(200, page(['c'], 'two'));
    expectPage('two', 32).reply(200, page(['d']));
    const pageSize = new PageSize({ initial: 2 });
    expect((await names({ pageSize })).pages).toEqual([['a', 'b'], ['c'], ['d']]);
  });

  test('starts over when its token has expired in the middle, and forgets what it had', async () => {
    expectPage().reply(200, page(['a', 'gone'], 'one'));
    expectPage('one').reply(410, expired);
    expectPage().reply(200, page(['a', 'b'], 'two', '8'));
    expectPage('two').reply(200, page(['c'], undefined, '8'));
    expect(await names()).toEqual({ pages: [['a', 'b'], ['c']], resourceVersion: '8' });
  });

  test('does not start over for ever', async () => {
    expectPage()
      .times(4)
      .reply(200, page(['a'], 'one'));
    expectPage('one').times(4).reply(410, expired);
    expect((await failure(names())).code).toBe('Gone');
  });

  test('that fails in the middle is no list at all', async () => {
    expectPage().reply(200, page(['a', 'b'], 'one'));
    expectPage('one').reply(403, { kind: 'Status', reason: 'Forbidden', code: 403 });
    expect((await failure(names())).code).toBe('Forbidden');
  });

  test('tries a later page again, with the delay that the server asked for', async () => {
    expectPage().reply(200, page(['a'], 'one'));
    expectPage('one').reply(429, {}, { 'retry-after': '2' });
    expectPage('one').reply(503);
    expectPage('one').reply(200, page(['b']));
    expect((await names()).pages).toEqual([['a'], ['b']]);
    expect(slept).toEqual([2_000, 250]);
  });

  test('gives up a later page after three tries', async () => {
    expectPage().reply(200, page(['a'], 'one'));
    expectPage('one').times(3).reply(500);
    expect((await failure(names())).code).toBe('ServerError');
  });

  test('tries its first page as often as its caller wants', async () => {
    expectPage().reply(503);
    expect((await failure(names())).code).toBe('ServerError');
    expectPage().times(2).reply(503);
    expectPage().reply(200, page(['a']));
    expect((await names({ firstPageTries: 4 })).pages).toEqual([['a']]);
  });

  test('does not ask again when that would not help', async () => {
    expectPage().reply(404, '404 page not found');
    expect((await failure(names({ firstPageTries: 4 }))).code).toBe('KindNotInstalled');
  });

  test('does not follow a token that leads back to itself', async () => {
    expectPage().reply(200, page(['a'], 'one'));
    expectPage('one').reply(200, page(['a'], 'one'));
    expect((await failure(names())).code).toBe('Malformed');
  });
});

describe('a page over the cap', () => {
  const big = (name: string): object => ({ metadata: { name, annotations: { x: 'x'.repeat(1_000) } } });
  const bigPage = (items: readonly string[], next?: string): object => ({ ...page([], next), items: items.map(big) });

  test('is asked for again with half as many items, and with one as it comes', async () => {
    expectPage(undefined, 4).reply(200, bigPage(['a', 'b', 'c', 'd']));
    expectPage(undefined, 2).reply(200, bigPage(['a', 'b'], 'one'));
    expectPage(undefined, 1).reply(200, bigPage(['a'], 'one'));
    expectPage('one', 1).reply(200, bigPage(['b']));
    const pageSize = new PageSize({ initial: 4, max: 500, targetBytes: 900 });
    expect((await names({ pageSize, pageCapBytes: 800 })).pages).toEqual([['a'], ['b']]);
    expect(slept).toEqual([]);
  });

  test('keeps its token when it is in the middle', async () => {
    expectPage(undefined, 2).reply(200, page(['a', 'b'], 'one'));
    expectPage('one', 2).reply(200, bigPage(['c', 'd']));
    expectPage('one', 1).reply(200, bigPage(['c'], 'two'));
    expectPage('two', 1).reply(200, bigPage(['d']));
    const pageSize = new PageSize({ initial: 2, max: 2, targetBytes: 500 });
    expect((await names({ pageSize, pageCapBytes: 1_500 })).pages).toEqual([['a', 'b'], ['c'], ['d']]);
  });

  test('of a single item over the cap of the client is an error', async () => {
    await client.close();
    client = new KubeClient(connectionTo(SERVER), { maxAnswerBytes: 500 });
    expectPage(undefined, 1).reply(200, bigPage(['a']));
    const pageSize = new PageSize({ initial: 1 });
    expect(await failure(names({ pageSize }))).toMatchObject({ code: 'TooLarge', status: 200 });
  });

  test('is not mistaken for a 413 of the server', async () => {
    expectPage().reply(413, { kind: 'Status', code: 413 });
    expect(await failure(names())).toMatchObject({ code: 'TooLarge', status: 413 });
  });
});
