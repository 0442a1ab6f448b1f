import { describe, expect, test } from 'vitest';
import type { KubeErrorCode } from '../../../src/kube/errors.ts';
import { toWriteFailure, type WriteFailure } from '../../../src/sync/failure.ts';
import { failureReasons } from '../../../src/sync/reasons.ts';
import { kubeError } from './support/scripted-client.ts';

const quota = 'create nonadminbackups: forbidden: exceeded quota: few';

describe('an error becomes a reason, and says what the rest of the namespace can expect', () => {
  test.each<[KubeErrorCode, WriteFailure['reason'], WriteFailure['rest'], boolean]>([
    ['Timeout', 'Timeout', 'doubt', false],
    ['Unreachable', 'Unreachable', 'doubt', false],
    ['ServerError', 'ServerError', 'doubt', false],
    ['Malformed', 'ServerError', 'doubt', false],
    ['Gone', 'ServerError', 'doubt', false],
    ['BadRequest', 'AdmissionDenied', 'doubt', false],
    ['Invalid', 'Invalid', 'next', true],
    ['TooLarge', 'TooLarge', 'next', true],
    ['Unauthorized', 'Unauthorized', 'stop', false],
    ['KindNotInstalled', 'KindNotInstalled', 'stop', false],
    ['Throttled', 'Throttled', 'stop', false],
    ['Aborted', 'Aborted', 'stop', false],
    ['Forbidden', 'Forbidden', 'stop', false],
    ['Conflict', 'ServerError', 'next', false],
    ['AlreadyExists', 'ServerError', 'next', false],
    ['NotFound', 'ServerError', 'next', false],
    ['NamespaceNotFound', 'ServerError', 'next', false],
    ['NamespaceTerminating', 'ServerError', 'next', false],
  ])('%s: %s, then %s', (code, reason, rest, permanent) => {
    expect(toWriteFailure(kubeError(code))).toEqual({
      reason,
      rest,
      permanent,
      message: `the server says ${code}`,
      retryAfterMs: undefined,
    });
  });

  test('a 422 that admission answered is a policy’s, and may pass', () => {
    expect(toWriteFailure(kubeError('Invalid', { deniedBy: 'admission' }))).toMatchObject({
      reason: 'AdmissionDenied',
      rest: 'doubt',
      permanent: false,
    });
  });

  test('a 403 that admission answered is a quota’s or a policy’s', () => {
    expect(toWriteFailure(kubeError('Forbidden', { message: quota, deniedBy: 'admission' }))).toMatchObject({
      reason: 'QuotaDenied',
      rest: 'stop',
      permanent: false,
    });
    expect(toWriteFailure(kubeError('Forbidden', { deniedBy: 'admission' }))).toMatchObject({
      reason: 'AdmissionDenied',
      rest: 'doubt',
      permanent: false,
    });
  });

  test('a 403 of RBAC is Forbidden, whatever it says', () => {
    expect(toWriteFailure(kubeError('Forbidden', { message: quota, deniedBy: 'authorization' })).reason).toBe(
      'Forbidden',
    );
  });

  test('what the server asked for is passed on', () => {
    expect(toWriteFailure(kubeError('Throttled', { retryAfterMs: 5000 })).retryAfterMs).toBe(5000);
  });

  test.each([new TypeError('x is not a function'), 'text', undefined, { code: 'Timeout' }])(
    '%s is a fault of ours',
    (error) => {
      expect(toWriteFailure(error)).toMatchObject({ reason: 'InternalError', rest: 'next', permanent: false });
    },
  );

  test('its text is cut and printable', () => {
    const { message } = toWriteFailure(kubeError('Timeout', { message: `\u001b[2J\n${'x'.repeat(10_000)}` }));
    expect(message).toMatch(/^\\u\{1b\}\[2J\\u\{a\}x+…$/);
    expect(message.length).toBeLessThan(750);
  });

  test('every failure reason but none else can come out', () => {
    const codes: KubeErrorCode[] = [
      'Timeout',
      'Unreachable',
      'ServerError',
      'BadRequest',
      'TooLarge',
      'Unauthorized',
      'KindNotInstalled',
      'Throttled',
      'Aborted',
      'Forbidden',
    ];
    const reasons = [
      ...codes.map((code) => toWriteFailure(kubeError(code)).reason),
      toWriteFailure(kubeError('Invalid')).reason,
      toWriteFailure(kubeError('Forbidden', { message: quota, deniedBy: 'admission' })).reason,
      toWriteFailure(new Error('x')).reason,
    ];
    expect([...reasons].sort()).toEqual([...failureReasons].sort());
  });
});
