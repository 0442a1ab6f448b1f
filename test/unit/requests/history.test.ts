import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { afterSync, historyStatus, readHistory, type History } from '../../../src/requests/history.ts';

function after(...syncs: readonly (string | undefined)[]): History | undefined {
  return syncs.reduce<History | undefined>(
    (history, failure, index) => afterSync(history, index + 1, failure),
    undefined,
  );
}

describe('the history of a namespace', () => {
  test('begins with the first sync', () => {
    expect(after(undefined)).toEqual({ attempts: 1, lastAttempt: 1, lastSuccess: 1, consecutiveFailures: 0 });
    expect(after('broken')).toEqual({
      attempts: 1,
      lastAttempt: 1,
      lastFailure: 1,
      lastFailureMessage: 'broken',
      failingSince: 1,
      consecutiveFailures: 1,
    });
  });

  test('a failure that follows a failure does not hide the first', () => {
    expect(after(undefined, 'first', 'second')).toEqual({
      attempts: 3,
      lastAttempt: 3,
      lastSuccess: 1,
      lastFailure: 3,
      lastFailureMessage: 'second',
      failingSince: 2,
      consecutiveFailures: 2,
    });
  });

  test('a success does not hide that there were failures', () => {
    expect(after('first', 'second', undefined)).toEqual({
      attempts: 3,
      lastAttempt: 3,
      lastSuccess: 3,
      lastFailure: 2,
      lastFailureMessage: 'second',
      consecutiveFailures: 0,
    });
  });

  test('is read as it was written', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.string(), { nil: undefined }), { minLength: 1, maxLength: 5 }), (syncs) => {
        const history = after(...syncs);
        expect(history && readHistory({ status: { history: historyStatus(history) } })).toEqual(history);
      }),
    );
  });

  test.each([
    [{}],
    [{ status: null }],
    [{ status: { history: 'x' } }],
    [{ status: { history: { lastAttemptTime: 5 } } }],
  ])('is none in %j', (request) => {
    expect(readHistory(request)).toBeUndefined();
  });
});
