import { describe, expect, test } from 'vitest';
import {
  KubeError,
  policyFor,
  type ErrorPolicy,
  type KubeErrorCode,
  type KubeErrorFacts,
} from '../../../src/kube/errors.ts';

function fault(code: KubeErrorCode, more: Partial<KubeErrorFacts> = {}): KubeError {
  return new KubeError({ verb: 'create', resource: 'backups.velero.io', message: 'as it happens', ...more, code });
}

const PLAIN: readonly (readonly [KubeErrorCode, ErrorPolicy])[] = [
  ['Timeout', 'retry'],
  ['Unreachable', 'retry'],
  ['Throttled', 'retry'],
  ['ServerError', 'retry'],
  ['Malformed', 'retry'],
  ['Gone', 'retry'],
  ['Conflict', 'retry'],
  ['NotFound', 'lostRace'],
  ['AlreadyExists', 'lostRace'],
  ['NamespaceNotFound', 'stopNamespace'],
  ['NamespaceTerminating', 'stopNamespace'],
  ['Forbidden', 'needsAdmin'],
  ['Unauthorized', 'needsAdmin'],
  ['KindNotInstalled', 'needsAdmin'],
  ['TooLarge', 'giveUpThisPass'],
  ['Invalid', 'giveUpThisPass'],
  ['BadRequest', 'giveUpThisPass'],
  ['Aborted', 'giveUpThisPass'],
];

describe('the policy for an error', () => {
  test.each(PLAIN)('%s on a create means %s', (code, policy) => {
    expect(policyFor(fault(code))).toBe(policy);
  });

  test('a conflict is a lost race where a precondition was sent, and passes by itself where none was', () => {
    expect(policyFor(fault('Conflict', { verb: 'update' }))).toBe('lostRace');
    expect(policyFor(fault('Conflict', { verb: 'patch' }))).toBe('lostRace');
    expect(policyFor(fault('Conflict', { verb: 'create' }))).toBe('retry');
  });

  test('a quota or policy stops its namespace, whichever status it came with', () => {
    expect(policyFor(fault('Forbidden', { deniedBy: 'admission' }))).toBe('stopNamespace');
    expect(policyFor(fault('Invalid', { deniedBy: 'admission' }))).toBe('stopNamespace');
  });

  test('a missing right needs an admin, and never means that something is not there', () => {
    for (const verb of ['get', 'list', 'watch', 'create']) {
      expect(policyFor(fault('Forbidden', { verb, deniedBy: 'authorization' }))).toBe('needsAdmin');
    }
  });

  test('a fault of our own is given up instead of being retried', () => {
    expect(policyFor(new TypeError('undefined is not a function'))).toBe('giveUpThisPass');
    expect(policyFor(undefined)).toBe('giveUpThisPass');
  });

  test('keeps what led to it', () => {
    const cause = new Error('socket hang up');
    expect(fault('Unreachable', { cause }).cause).toBe(cause);
    expect('cause' in fault('Unreachable')).toBe(false);
  });
});
