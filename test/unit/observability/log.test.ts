import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/kube/configuration-error.ts';
import { KubeError } from '../../../src/kube/errors.ts';
import { createLogger, errorForLog, isBug } from '../../../src/observability/log.ts';

function sink(): { readonly stream: PassThrough; readonly text: () => string } {
  const stream = new PassThrough();
  return { stream, text: () => String(stream.read() ?? '') };
}

const refused = new KubeError({
  code: 'Forbidden',
  verb: 'create',
  resource: 'nonadminbackups.oadp.openshift.io',
  namespace: 'team-a',
  objectName: 'nightly',
  status: 403,
  reason: 'Forbidden',
  message: 'create nonadminbackups.oadp.openshift.io nightly in namespace team-a: forbidden',
});

describe('a log line', () => {
  test('is one JSON object with level, time, message and the given facts', async () => {
    const { stream, text } = sink();
    const log = await createLogger({ level: 'info', format: 'json', color: false, destination: stream });
    log.child({ namespace: 'team-a' }).info({ created: 3 }, 'namespace done');
    const { time, ...line } = JSON.parse(text()) as Record<string, unknown>;
    expect(line).toEqual({ level: 'info', namespace: 'team-a', created: 3, msg: 'namespace done' });
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  test('below the level is not written', async () => {
    const { stream, text } = sink();
    const log = await createLogger({ level: 'warn', format: 'json', color: false, destination: stream });
    log.info('quiet');
    expect(text()).toBe('');
  });

  test('for people shows nothing that a terminal would act on, wherever it came from', async () => {
    const { stream, text } = sink();
    const log = await createLogger({ level: 'info', format: 'pretty', color: false, destination: stream });
    log.error({ err: new Error('bad \u001b[31m name'), backup: '\u001b]0;title\u0007' }, 'odd \u001b[2J');
    const written = text();
    expect(written).toContain('odd');
    expect(written).not.toContain('\u001b');
    expect(written).not.toContain('\u0007');
  });
});

describe('an error in the log', () => {
  test('of the API server has its code, message and what was asked for, and no stack', () => {
    expect(errorForLog(refused)).toEqual({
      code: 'Forbidden',
      message: 'create nonadminbackups.oadp.openshift.io nightly in namespace team-a: forbidden',
      verb: 'create',
      resource: 'nonadminbackups.oadp.openshift.io',
      namespace: 'team-a',
      name: 'nightly',
      status: 403,
      reason: 'Forbidden',
    });
  });

  test('carries its causes, a few levels down', () => {
    const socket = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const facts = {
      code: 'Unreachable',
      verb: 'list',
      resource: 'backups.velero.io',
      message: 'no connection',
    } as const;
    expect(errorForLog(new KubeError({ ...facts, cause: socket }))).toMatchObject({
      cause: { code: 'ECONNREFUSED', message: 'connect ECONNREFUSED' },
    });
    const loop = new Error('loop');
    loop.cause = loop;
    expect(JSON.stringify(errorForLog(loop)).length).toBeLessThan(10_000);
  });

  test('never carries what else a library hung on it', () => {
    const error = Object.assign(new Error('HTTP 401'), { code: 'X', headers: { authorization: 'Bearer secret' } });
    expect(JSON.stringify(errorForLog(error))).not.toContain('secret');
  });

  test('that is a fault of ours has its stack', () => {
    expect(errorForLog(new TypeError('x is undefined'))).toMatchObject({
      type: 'TypeError',
      stack: expect.stringContaining('log.test.ts') as string,
    });
  });

  test('that is no error is shown as it is', () => {
    expect(errorForLog('just text')).toBe('just text');
  });
});

test.each<[unknown, boolean]>([
  [refused, false],
  [new ConfigurationError('no kubeconfig'), false],
  [Object.assign(new Error('no space'), { code: 'ENOSPC' }), false],
  [new Error('cannot happen'), true],
  [new TypeError('x is undefined'), true],
  [Object.assign(new TypeError('bad argument'), { code: 'ERR_INVALID_ARG_TYPE' }), true],
  ['thrown text', true],
])('%s is a fault of ours: %s', (error, ours) => {
  expect(isBug(error)).toBe(ours);
});
