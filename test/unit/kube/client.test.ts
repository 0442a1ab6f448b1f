import nock from 'nock';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { KubeClient, type KubeClientOptions, type RequestInfo } from '../../../src/kube/client.ts';
import type { WatchEvent } from '../../../src/kube/watch-stream.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { connectionTo } from './connections.ts';
import { failure } from './failure.ts';
import { backups } from './kinds.ts';

const SERVER = 'http://api.test:6443';
const COLLECTION = '/apis/velero.io/v1/namespaces/team-a/backups';
const backup = {
  apiVersion: 'velero.io/v1',
  kind: 'Backup',
  metadata: { name: 'x', namespace: 'team-a', resourceVersion: '7' },
};

const open: KubeClient[] = [];

function clientWith(options: KubeClientOptions = {}, connection = connectionTo(SERVER)): KubeClient {
  const client = new KubeClient(connection, options);
  open.push(client);
  return client;
}

beforeAll(() => {
  nock.disableNetConnect();
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client.close()));
  expect(nock.pendingMocks()).toEqual([]);
  nock.cleanAll();
});

afterAll(() => {
  nock.enableNetConnect();
  nock.restore();
});

describe('requests for one object', () => {
  test('get reads it, with our credentials and without asking for compression', async () => {
    nock(SERVER, { badheaders: ['accept-encoding'] })
      .get(`${COLLECTION}/x`)
      .matchHeader('authorization', 'Bearer token-1')
      .matchHeader('accept', 'application/json')
      .matchHeader('user-agent', 'nab-sync')
      .reply(200, backup);
    expect(await clientWith().get(backups, { namespace: 'team-a', name: 'x' })).toEqual(backup);
  });

  test('create posts to the collection', async () => {
    nock(SERVER).post(COLLECTION, backup).matchHeader('content-type', 'application/json').reply(201, backup);
    expect(await clientWith().create(backups, { namespace: 'team-a' }, backup)).toEqual(backup);
  });

  test('update puts the object, or its status', async () => {
    nock(SERVER).put(`${COLLECTION}/x`, backup).reply(200, backup);
    nock(SERVER).put(`${COLLECTION}/x/status`, backup).reply(200, backup);
    const client = clientWith();
    await client.update(backups, { namespace: 'team-a', name: 'x' }, backup);
    await client.update(backups, { namespace: 'team-a', name: 'x', subresource: 'status' }, backup);
  });

  test('patch is a merge patch', async () => {
    nock(SERVER)
      .patch(`${COLLECTION}/x`, { status: { phase: 'Created' } })
      .matchHeader('content-type', 'application/merge-patch+json')
      .reply(200, backup);
    await clientWith().patch(backups, { namespace: 'team-a', name: 'x' }, { status: { phase: 'Created' } });
  });

  test('delete removes the one with that uid', async () => {
    const preconditions = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: 'uid-1' } };
    nock(SERVER)
      .delete(`${COLLECTION}/x`, preconditions)
      .matchHeader('content-type', 'application/json')
      .reply(200, { kind: 'Status', apiVersion: 'v1', status: 'Success' });
    await clientWith().delete(backups, { namespace: 'team-a', name: 'x' }, 'uid-1');
  });

  test('go to the path that the server URL has', async () => {
    nock(SERVER).get(`/k8s/clusters/c-1${COLLECTION}/x`).reply(200, backup);
    await clientWith({}, connectionTo(`${SERVER}/k8s/clusters/c-1`)).get(backups, { namespace: 'team-a', name: 'x' });
  });

  test.each(['', '.', '..', 'a/status', 'a%2Fstatus'])('for the name %j are not even sent', async (name) => {
    const client = clientWith();
    expect((await failure(client.get(backups, { namespace: 'team-a', name }))).code).toBe('BadRequest');
    expect((await failure(client.create(backups, { namespace: name }, backup))).code).toBe('BadRequest');
  });

  test('reject an object that is nested too deep to be written', async () => {
    let deep: JsonObject = {};
    for (let depth = 0; depth < 100_000; depth += 1) deep = { deep };
    expect((await failure(clientWith().create(backups, { namespace: 'team-a' }, deep))).code).toBe('Invalid');
  });
});

describe('answers that are not what was asked for', () => {
  test.each([
    ['an empty body', ''],
    ['a page of HTML', '<html>sign in</html>'],
    ['cut JSON', '{"kind":"Backup","metadata":{'],
    ['an array', '[]'],
    ['null', 'null'],
    ['a number', '5'],
    ['an object without anything', '{}'],
    ['a Status', JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' })],
    ['an object of another kind', JSON.stringify({ ...backup, kind: 'Restore' })],
    ['an object of another name', JSON.stringify({ ...backup, metadata: { ...backup.metadata, name: 'y' } })],
    ['an object elsewhere', JSON.stringify({ ...backup, metadata: { ...backup.metadata, namespace: 'team-b' } })],
    ['an object that was never stored', JSON.stringify({ ...backup, metadata: { name: 'x', namespace: 'team-a' } })],
  ])('%s is malformed', async (_name, body) => {
    nock(SERVER).get(`${COLLECTION}/x`).reply(200, body);
    const error = await failure(clientWith().get(backups, { namespace: 'team-a', name: 'x' }));
    expect(error).toMatchObject({ code: 'Malformed', status: 200 });
  });

  test('what a create is answered must be what was to be created', async () => {
    nock(SERVER).post(COLLECTION).reply(201, '{}');
    nock(SERVER)
      .post(COLLECTION)
      .reply(201, { ...backup, metadata: { ...backup.metadata, name: 'y' } });
    const client = clientWith();
    for (let round = 0; round < 2; round += 1) {
      expect((await failure(client.create(backups, { namespace: 'team-a' }, backup))).code).toBe('Malformed');
    }
  });

  test('an answer over the cap is too large, whether its length was announced or not', async () => {
    const large = JSON.stringify({ ...backup, spec: 'x'.repeat(2_000) });
    const client = clientWith({ maxAnswerBytes: 1_000 });
    nock(SERVER)
      .get(`${COLLECTION}/x`)
      .reply(200, large, { 'content-length': String(large.length) });
    nock(SERVER).get(`${COLLECTION}/x`).reply(200, large);
    for (let round = 0; round < 2; round += 1) {
      const error = await failure(client.get(backups, { namespace: 'team-a', name: 'x' }));
      expect(error).toMatchObject({ code: 'TooLarge', status: 200 });
    }
  });

  test.each([
    ['no metadata', { items: [] }],
    ['no resourceVersion', { metadata: {}, items: [] }],
    ['an empty resourceVersion', { metadata: { resourceVersion: '' }, items: [] }],
    ['no items', { metadata: { resourceVersion: '1' } }],
    ['items that are no array', { metadata: { resourceVersion: '1' }, items: {} }],
    ['an item that is null', { metadata: { resourceVersion: '1' }, items: [backup, null] }],
  ])('a list with %s is malformed, and not taken for an empty one', async (_name, list) => {
    nock(SERVER).get('/apis/velero.io/v1/backups').reply(200, list);
    expect((await failure(clientWith().listPage(backups))).code).toBe('Malformed');
  });
});

describe('lists', () => {
  test('ask for what was wanted and tell what comes next', async () => {
    nock(SERVER)
      .get(COLLECTION)
      .query({ labelSelector: 'a=b,c', limit: '2', continue: 'to/ken==', resourceVersion: '0' })
      .reply(200, { metadata: { resourceVersion: '7', continue: 'next' }, items: [backup] });
    const page = await clientWith().listPage(backups, {
      namespace: 'team-a',
      labelSelector: 'a=b,c',
      limit: 2,
      continue: 'to/ken==',
      resourceVersion: '0',
    });
    expect(page).toMatchObject({ items: [backup], resourceVersion: '7', continue: 'next' });
    expect(page.bytes).toBeGreaterThan(100);
  });

  test('take null for an empty collection, as Go writes it', async () => {
    nock(SERVER)
      .get('/apis/velero.io/v1/backups')
      .reply(200, { metadata: { resourceVersion: '7' }, items: null });
    const page = await clientWith().listPage(backups);
    expect(page.items).toEqual([]);
    expect('continue' in page).toBe(false);
  });
});

describe('errors of the server', () => {
  test('keep the reason, the causes and the time to stay away', async () => {
    nock(SERVER)
      .post(COLLECTION)
      .reply(
        429,
        { kind: 'Status', message: 'storage is (re)initializing', reason: 'TooManyRequests', code: 429 },
        { 'retry-after': '1' },
      );
    const error = await failure(clientWith().create(backups, { namespace: 'team-a' }, backup));
    expect(error).toMatchObject({ code: 'Throttled', status: 429, reason: 'TooManyRequests', retryAfterMs: 1_000 });
    expect(error.message).toBe('create backups.velero.io in namespace team-a: throttled: storage is (re)initializing');
  });

  test('a create beyond what etcd takes is too large for good', async () => {
    nock(SERVER)
      .post(COLLECTION)
      .reply(500, { kind: 'Status', message: 'etcdserver: request is too large', code: 500 });
    const large = { ...backup, spec: 'x'.repeat(1_600_000) };
    expect((await failure(clientWith().create(backups, { namespace: 'team-a' }, large))).code).toBe('TooLarge');
  });

  test('an error with a body of megabytes is still an error, and short', async () => {
    nock(SERVER).get(`${COLLECTION}/x`).reply(503, 'x'.repeat(3_000_000));
    const error = await failure(clientWith().get(backups, { namespace: 'team-a', name: 'x' }));
    expect(error).toMatchObject({ code: 'ServerError', status: 503 });
    expect(error.message.length).toBeLessThan(200);
  });

  test('no connection is unreachable, and names the server and the system error', async () => {
    nock(SERVER)
      .get(`${COLLECTION}/x`)
      .replyWithError(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }));
    const error = await failure(clientWith().get(backups, { namespace: 'team-a', name: 'x' }));
    expect(error).toMatchObject({ code: 'Unreachable', status: undefined });
    expect(error.message).toContain(`${SERVER}: ECONNREFUSED`);
  });
});

describe('a 401', () => {
  test('reloads the credentials and tries exactly once more', async () => {
    const connection = connectionTo(SERVER, ['old', 'new']);
    nock(SERVER).get(`${COLLECTION}/x`).matchHeader('authorization', 'Bearer old').reply(401);
    nock(SERVER).get(`${COLLECTION}/x`).matchHeader('authorization', 'Bearer new').reply(200, backup);
    expect(await clientWith({}, connection).get(backups, { namespace: 'team-a', name: 'x' })).toEqual(backup);
    expect(connection.reloads).toBe(1);
  });

  test('is an error when the new credentials are refused as well', async () => {
    const connection = connectionTo(SERVER, ['old', 'new', 'newer']);
    nock(SERVER).get(`${COLLECTION}/x`).twice().reply(401, { kind: 'Status', message: 'Unauthorized' });
    const error = await failure(clientWith({}, connection).get(backups, { namespace: 'team-a', name: 'x' }));
    expect(error.code).toBe('Unauthorized');
    expect(connection.reloads).toBe(1);
  });

  test('is an error that says why when there are no new credentials', async () => {
    const connection = connectionTo(SERVER);
    connection.reload = () => Promise.reject(new Error('cannot read token file /x/token'));
    nock(SERVER).get(`${COLLECTION}/x`).reply(401);
    const error = await failure(clientWith({}, connection).get(backups, { namespace: 'team-a', name: 'x' }));
    expect(error.code).toBe('Unauthorized');
    expect(error.message).toContain('cannot get credentials: cannot read token file /x/token');
  });

  test('of a watch is tried again too', async () => {
    const connection = connectionTo(SERVER, ['old', 'new']);
    const query = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion: '5', timeoutSeconds: '60' };
    nock(SERVER).get('/apis/velero.io/v1/backups').query(query).reply(401);
    nock(SERVER)
      .get('/apis/velero.io/v1/backups')
      .query(query)
      .matchHeader('authorization', 'Bearer new')
      .reply(200, `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } })}\n`);
    const events: WatchEvent[] = [];
    for await (const event of clientWith({}, connection).watch(backups, { resourceVersion: '5', timeoutSeconds: 60 })) {
      events.push(event);
    }
    expect(events).toEqual([{ type: 'BOOKMARK', resourceVersion: '9' }]);
  });
});

describe('a watch from no version', () => {
  test('asks for what is there first, in words that older servers refuse instead of misunderstanding', async () => {
    nock(SERVER)
      .get('/apis/velero.io/v1/backups')
      .query({
        watch: 'true',
        allowWatchBookmarks: 'true',
        labelSelector: 'a=b',
        sendInitialEvents: 'true',
        resourceVersionMatch: 'NotOlderThan',
        timeoutSeconds: '60',
      })
      .reply(422, {
        kind: 'Status',
        reason: 'Invalid',
        code: 422,
        message: 'resourceVersionMatch is forbidden for watch',
      });
    const events = clientWith().watch(backups, { labelSelector: 'a=b', timeoutSeconds: 60 });
    expect((await failure(events.next())).code).toBe('Invalid');
  });
});

describe('the hook for metrics', () => {
  test('hears of every request once, with verb, kind, outcome and time', async () => {
    const heard: RequestInfo[] = [];
    const client = clientWith({ onRequest: (info) => heard.push(info) }, connectionTo(SERVER, ['old', 'new']));
    nock(SERVER).get(`${COLLECTION}/x`).reply(401);
    nock(SERVER).get(`${COLLECTION}/x`).reply(200, backup);
    await client.get(backups, { namespace: 'team-a', name: 'x' });
    nock(SERVER).get('/apis/velero.io/v1/backups').reply(503);
    await failure(client.listPage(backups));
    expect(heard.map(({ verb, resource, code, status }) => [verb, resource, code, status])).toEqual([
      ['get', 'backups.velero.io', 'Unauthorized', 401],
      ['get', 'backups.velero.io', 'OK', 200],
      ['list', 'backups.velero.io', 'ServerError', 503],
    ]);
    expect(heard.every(({ seconds }) => seconds >= 0 && seconds < 1)).toBe(true);
  });

  test('fails no request by throwing', async () => {
    nock(SERVER).get(`${COLLECTION}/x`).reply(200, backup);
    const client = clientWith({
      onRequest: () => {
        throw new Error('no such label');
      },
    });
    expect(await client.get(backups, { namespace: 'team-a', name: 'x' })).toEqual(backup);
  });
});

describe('options', () => {
  test.each([
    ['connections', 0],
    ['readTimeoutMs', -1],
    ['writeTimeoutMs', Number.NaN],
    ['maxAnswerBytes', 1.5],
  ])('%s of %d is refused with what was expected', (name, value) => {
    expect(() => clientWith({ [name]: value })).toThrow(`${name} must be a positive integer, got ${String(value)}`);
  });
});
