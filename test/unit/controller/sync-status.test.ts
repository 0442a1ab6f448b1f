import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/kube/resource.ts';
import {
  afterPass,
  continued,
  neverSynced,
  readStatus,
  statusConfigMap,
  statusData,
  statusDocument,
  type EndedPass,
  type SyncStatus,
} from '../../../src/controller/sync-status.ts';

const second = 1_000;
const noon = Date.UTC(2026, 0, 15, 12);

const status: SyncStatus = {
  lastAttempt: noon,
  lastSuccess: noon - 60 * second,
  lastFailure: noon + second,
  lastFailureMessage: '1 backup could not be brought back',
  consecutiveFailures: 2,
  reasons: { Present: 3, QuotaDenied: 1 },
};

/** The ConfigMap that some process left, with `data` laid over it. */
function configMap(data: Readonly<Record<string, unknown>> = {}): JsonObject {
  return { data: { ...statusData(status), ...data } };
}

function statusAfter(...passes: readonly EndedPass[]): SyncStatus {
  return passes.reduce(afterPass, neverSynced);
}

describe('attempt, success and failure', () => {
  test('have a time each, and a failure leaves that of the last success alone', () => {
    expect(
      statusAfter(
        { start: noon, end: noon + second, reasons: { Missing: 2 } },
        { start: noon + 10 * second, end: noon + 12 * second, failure: 'exceeded quota', reasons: { QuotaDenied: 2 } },
      ),
    ).toEqual({
      lastAttempt: noon + 10 * second,
      lastSuccess: noon + second,
      lastFailure: noon + 12 * second,
      lastFailureMessage: 'exceeded quota',
      consecutiveFailures: 1,
      reasons: { QuotaDenied: 2 },
    });
  });

  test('a success ends the row of failures, and the last failure stays to be read', () => {
    const failed = { start: noon, end: noon + second, failure: 'forbidden' };
    expect(statusAfter(failed, failed).consecutiveFailures).toBe(2);
    expect(statusAfter(failed, failed, { start: noon, end: noon + 2 * second, reasons: {} })).toMatchObject({
      consecutiveFailures: 0,
      lastFailure: noon + second,
      lastFailureMessage: 'forbidden',
    });
  });

  test('a pass that never came to an end is an attempt and no more', () => {
    expect(afterPass(status, { start: noon + 99 * second })).toEqual({ ...status, lastAttempt: noon + 99 * second });
  });

  test('a failure that did not come through leaves the counts of the last one that did', () => {
    const pass = { start: noon, end: noon, failure: 'list backups.velero.io: forbidden' };
    expect(afterPass(status, pass).reasons).toEqual(status.reasons);
  });

  test('what a message holds is cut and made fit to be shown', () => {
    const { lastFailureMessage = '' } = statusAfter({
      start: noon,
      end: noon,
      failure: `\u001b[2J${'x'.repeat(5000)}`,
    });
    expect(lastFailureMessage).toMatch(/^\\u\{1b\}\[2Jx/);
    expect(lastFailureMessage.length).toBeLessThan(1_100);
  });
});

describe('a status that is taken over', () => {
  test('is what was kept, where nothing happened since', () => {
    expect(continued(status, neverSynced)).toEqual(status);
  });

  test('goes on counting failures', () => {
    const since = statusAfter({ start: noon, end: noon + 9 * second, failure: 'again' });
    expect(continued(status, since)).toEqual({
      ...status,
      lastFailure: noon + 9 * second,
      lastFailureMessage: 'again',
      consecutiveFailures: 3,
    });
  });

  test('forgets the failures before a success, but for the last', () => {
    const since = statusAfter({ start: noon, end: noon + 9 * second, reasons: { Present: 4 } });
    expect(continued(status, since)).toEqual({
      ...status,
      lastSuccess: noon + 9 * second,
      consecutiveFailures: 0,
      reasons: { Present: 4 },
    });
  });
});

describe('the ConfigMap', () => {
  test('says what happened in plain words', () => {
    expect(statusData(status)).toEqual({
      lastAttemptTime: '2026-01-15T12:00:00Z',
      lastSuccessfulSyncTime: '2026-01-15T11:59:00Z',
      lastFailureTime: '2026-01-15T12:00:01Z',
      lastFailureMessage: '1 backup could not be brought back',
      consecutiveFailures: '2',
      reasons: '{"Present":3,"QuotaDenied":1}',
    });
    expect(statusData(neverSynced)).toEqual({ consecutiveFailures: '0', reasons: '{}' });
  });

  test('keeps the labels that others put on it, and nothing of its content', () => {
    const present = {
      metadata: { name: 'nab-sync-status', resourceVersion: '7', labels: { a: 'b' } },
      data: { x: 'y' },
    };
    expect(statusConfigMap(neverSynced, 'adp', present)).toMatchObject({ metadata: present.metadata });
    expect(statusConfigMap(neverSynced, 'adp', present)['data']).toEqual(statusData(neverSynced));
  });

  test('reads as it was written', () => {
    expect(readStatus(configMap(), noon + second)).toEqual({ status, unreadable: [] });
  });

  test('that was never written reads as never synced', () => {
    expect(readStatus({}, noon)).toEqual({ status: neverSynced, unreadable: [] });
  });

  test.each([
    ['lastAttemptTime', 'yesterday'],
    ['lastSuccessfulSyncTime', '2026-01-15'],
    ['lastFailureTime', 7],
    ['consecutiveFailures', '-1'],
    ['consecutiveFailures', '1e3'],
    ['consecutiveFailures', '99999999999999999999'],
    ['reasons', '{"Present":'],
    ['reasons', '[3]'],
  ])('%s %j, which we never write, counts as never written', (field, value) => {
    const { status: read, unreadable } = readStatus(configMap({ [field]: value }), noon + second);
    expect(unreadable).toEqual([field]);
    const { [field]: _, ...data } = statusData(status);
    expect(read).toEqual(readStatus({ data }, noon + second).status);
  });

  test('a time in the future is nobody’s last success', () => {
    const future = { lastSuccessfulSyncTime: '2099-01-01T00:00:00Z' };
    expect(readStatus(configMap(future), noon).unreadable).toEqual(['lastSuccessfulSyncTime']);
    // Clocks of two replicas differ.
    expect(readStatus(configMap(), noon - 30 * second).unreadable).toEqual([]);
  });

  test('counts of reasons that there are not, or that are no counts, are left out', () => {
    const reasons = JSON.stringify({ Present: 3, Expired: -1, Nonsense: 2, Missing: 'many', __proto__: 1 });
    expect(readStatus(configMap({ reasons }), noon).status.reasons).toEqual({ Present: 3 });
  });

  test('never throws, whatever stands in it, and gives only what can be printed', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.dictionary(fc.constantFrom(...Object.keys(statusData(status))), fc.string()),
        (junk, data) => {
          for (const object of [{ data: junk }, { data }]) {
            const text = JSON.stringify(statusDocument(readStatus(object, noon).status));
            expect(text).not.toMatch(/[\u0000-\u001f\u202e]/);
          }
        },
      ),
    );
  });
});
