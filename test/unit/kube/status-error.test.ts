import { describe, expect, test } from 'vitest';
import type { KubeErrorCode } from '../../../src/kube/errors.ts';
import { statusError, type ErrorAnswer, type RequestFacts } from '../../../src/kube/status-error.ts';
import { backups, namespaces } from './kinds.ts';

// The Status objects in here are those that kube-apiserver 1.37 answered with, cut to what matters.

const create: RequestFacts = { verb: 'create', resource: backups, ref: { namespace: 'team-a' } };
const get: RequestFacts = { verb: 'get', resource: backups, ref: { namespace: 'team-a', name: 'x' } };
const update: RequestFacts = { verb: 'update', resource: backups, ref: { namespace: 'team-a', name: 'x' } };

function status(code: number, reason?: string, details?: object, message = 'said the server'): ErrorAnswer {
  return { status: code, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, message, reason, details, code } };
}

const named = { group: 'velero.io', kind: 'backups', name: 'x' };
const unnamed = { group: 'velero.io', kind: 'backups' };

describe('an answer becomes the error that it stands for', () => {
  const table: readonly (readonly [string, RequestFacts, ErrorAnswer, KubeErrorCode])[] = [
    ['401', get, status(401, 'Unauthorized'), 'Unauthorized'],
    ['403 of a read', get, status(403, 'Forbidden', named), 'Forbidden'],
    [
      '403 of a create into a namespace that is going away',
      create,
      status(403, 'Forbidden', { ...named, causes: [{ reason: 'NamespaceTerminating', field: 'metadata.namespace' }] }),
      'NamespaceTerminating',
    ],
    ['404 that names the object', get, status(404, 'NotFound', named), 'NotFound'],
    [
      '404 that names the namespace',
      create,
      status(404, 'NotFound', { kind: 'namespaces', name: 'team-a' }),
      'NamespaceNotFound',
    ],
    [
      '404 of a namespace that was asked for itself',
      { verb: 'get', resource: namespaces, ref: { name: 'team-a' } },
      status(404, 'NotFound', { kind: 'namespaces', name: 'team-a' }),
      'NotFound',
    ],
    ['404 in plain text', get, { status: 404, body: undefined }, 'KindNotInstalled'],
    ['404 whose Status names nothing', get, status(404, 'NotFound', {}), 'KindNotInstalled'],
    ['404 of a proxy in JSON', get, { status: 404, body: { error: 'no route' } }, 'KindNotInstalled'],
    ['405', create, status(405, 'MethodNotAllowed', unnamed), 'BadRequest'],
    ['408', get, { status: 408 }, 'Timeout'],
    ['409 AlreadyExists', create, status(409, 'AlreadyExists', named), 'AlreadyExists'],
    ['409 Conflict', update, status(409, 'Conflict', named), 'Conflict'],
    ['409 of nobody knows what', create, { status: 409 }, 'Conflict'],
    ['410 Gone', get, status(410, 'Gone'), 'Gone'],
    ['410 Expired', get, status(410, 'Expired'), 'Gone'],
    ['413', create, status(413, 'RequestEntityTooLarge'), 'TooLarge'],
    ['400', create, status(400, 'BadRequest'), 'BadRequest'],
    ['415', create, status(415, 'UnsupportedMediaType'), 'BadRequest'],
    ['422', create, status(422, 'Invalid', named), 'Invalid'],
    ['429', get, status(429, 'TooManyRequests'), 'Throttled'],
    ['500', get, status(500, 'InternalError'), 'ServerError'],
    ['503', get, { status: 503, body: '<html>' }, 'ServerError'],
    ['504', get, status(504, 'Timeout'), 'Timeout'],
    ['302 to a login page', get, { status: 302 }, 'Malformed'],
  ];

  test.each(table)('%s', (_name, request, answer, code) => {
    const error = statusError(request, answer);
    expect(error.code).toBe(code);
    expect(error.status).toBe(answer.status);
  });

  test('a 500 without a reason means too large for etcd when we sent that much, and a fault of the server otherwise', () => {
    const answer = status(500);
    expect(statusError({ ...create, bodyBytes: 1_600_000 }, answer).code).toBe('TooLarge');
    expect(statusError({ ...create, bodyBytes: 100_000 }, answer).code).toBe('ServerError');
    expect(statusError({ ...create, bodyBytes: 1_600_000 }, status(500, 'InternalError')).code).toBe('ServerError');
    expect(statusError({ ...create, bodyBytes: 1_600_000 }, { status: 500 }).code).toBe('ServerError');
  });

  test('of a status less is needed, since it is stored together with the rest of the object', () => {
    const ofStatus: RequestFacts = { ...update, ref: { ...update.ref, subresource: 'status' } };
    expect(statusError({ ...ofStatus, bodyBytes: 1_000_000 }, status(500)).code).toBe('TooLarge');
    expect(statusError({ ...update, bodyBytes: 1_000_000 }, status(500)).code).toBe('ServerError');
    expect(statusError({ ...ofStatus, bodyBytes: 100_000 }, status(500)).code).toBe('ServerError');
  });
});

describe('who denied it', () => {
  test('RBAC, when a create is refused without knowing its name', () => {
    expect(statusError(create, status(403, 'Forbidden', unnamed)).deniedBy).toBe('authorization');
  });

  test('a quota, when a create is refused by name', () => {
    expect(statusError(create, status(403, 'Forbidden', named)).deniedBy).toBe('admission');
  });

  test('a policy, when the causes name neither field nor reason, with 403 and with 422', () => {
    const details = { ...named, causes: [{ message: "ValidatingAdmissionPolicy 'p' denied request: no such names" }] };
    expect(statusError(create, status(403, 'Forbidden', details)).deniedBy).toBe('admission');
    expect(statusError(create, status(422, 'Invalid', details)).deniedBy).toBe('admission');
    expect(statusError(update, status(403, 'Forbidden', details)).deniedBy).toBe('admission');
  });

  test('a webhook, when nothing is named at all', () => {
    expect(statusError(create, status(403, 'Forbidden')).deniedBy).toBe('admission');
  });

  test('RBAC for every read and for an update that is refused by name', () => {
    expect(statusError(get, status(403, 'Forbidden', named)).deniedBy).toBe('authorization');
    expect(statusError(update, status(403, 'Forbidden', named)).deniedBy).toBe('authorization');
  });

  test('nobody, when the schema refused it', () => {
    const causes = [{ reason: 'FieldValueInvalid', message: 'Invalid value', field: 'metadata.name' }];
    expect(statusError(create, status(422, 'Invalid', { ...named, causes })).deniedBy).toBeUndefined();
  });
});

describe('how long to stay away', () => {
  test('is read from the header in seconds and as a date, and from the Status', () => {
    expect(statusError(get, { status: 429, retryAfter: '7' }).retryAfterMs).toBe(7_000);
    expect(statusError(get, status(429, 'TooManyRequests', { retryAfterSeconds: 3 })).retryAfterMs).toBe(3_000);
    const inAMinute = new Date(Date.now() + 60_000).toUTCString();
    const asked = statusError(get, { status: 503, retryAfter: inAMinute }).retryAfterMs ?? 0;
    expect(asked).toBeGreaterThan(57_000);
    expect(asked).toBeLessThanOrEqual(60_000);
  });

  test('is the longer one where both are given', () => {
    const answer = { ...status(429, 'TooManyRequests', { retryAfterSeconds: 3 }), retryAfter: '1' };
    expect(statusError(get, answer).retryAfterMs).toBe(3_000);
  });

  test('is unknown when what was said makes no sense, and not negative for a date that has passed', () => {
    expect(statusError(get, { status: 429, retryAfter: 'soon' }).retryAfterMs).toBeUndefined();
    expect(statusError(get, { status: 429, retryAfter: '-5' }).retryAfterMs ?? 0).toBe(0);
    expect(statusError(get, { status: 429, retryAfter: 'Wed, 21 Oct 2015 07:28:00 GMT' }).retryAfterMs).toBe(0);
    expect(statusError(get, status(429, 'x', { retryAfterSeconds: 'never' })).retryAfterMs).toBeUndefined();
  });
});

describe('the message', () => {
  test('says what was asked for, what came of it and what the server said', () => {
    const error = statusError(create, status(403, 'Forbidden', named, 'exceeded quota: q'));
    expect(error.message).toBe('create backups.velero.io in namespace team-a: forbidden: exceeded quota: q');
    expect(error).toMatchObject({
      verb: 'create',
      resource: 'backups.velero.io',
      namespace: 'team-a',
      reason: 'Forbidden',
    });
  });

  test('names the object and the subresource', () => {
    const request: RequestFacts = {
      verb: 'update',
      resource: backups,
      ref: { namespace: 'a', name: 'x', subresource: 'status' },
    };
    expect(statusError(request, { status: 500 }).message).toBe(
      'update backups.velero.io/status x in namespace a: server error: HTTP 500',
    );
  });

  test('is one short line whatever the server said', () => {
    const error = statusError(get, status(500, 'InternalError', {}, `bad\n${'\u0007x'.repeat(5_000)}`));
    expect(error.message).not.toMatch(/[\n\u0007]/);
    expect(error.message.length).toBeLessThan(820);
    expect(error.message.endsWith('…')).toBe(true);
  });

  test('keeps what the server says behind a name of 253 characters', () => {
    const said = `nonadminbackups.oadp.openshift.io "${'a'.repeat(253)}" is forbidden: exceeded quota: q, requested: 1`;
    expect(statusError(create, status(403, 'Forbidden', named, said)).message).toMatch(
      /exceeded quota: q, requested: 1$/,
    );
  });

  test('survives a Status of the wrong shape', () => {
    const body = { kind: 'Status', message: 5, reason: [], details: { causes: [null, 5, { reason: 1 }], name: {} } };
    expect(statusError(get, { status: 422, body })).toMatchObject({ code: 'Invalid', reason: undefined, causes: [{}] });
    expect(statusError(get, { status: 404, body: null }).code).toBe('KindNotInstalled');
    expect(statusError(get, { status: 500, body: [] }).code).toBe('ServerError');
  });
});
