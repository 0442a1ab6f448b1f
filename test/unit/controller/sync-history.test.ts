import { describe, expect, test } from 'vitest';
import { SyncHistory } from '../../../src/controller/sync-history.ts';
import { statusConfigMapName, statusData, type SyncStatus } from '../../../src/controller/sync-status.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { logRecorder } from '../sync/support/recorders.ts';
import { failing, scriptedClient, type Answer } from '../sync/support/scripted-client.ts';

const noon = Date.UTC(2026, 0, 15, 12);
const minute = 60_000;
const success = (time: number) => ({ start: time, end: time, reasons: { Present: 1 } }) as const;
const failure = (time: number) => ({ start: time, end: time, failure: 'exceeded quota' }) as const;

function stored(data: Readonly<Record<string, unknown>>): JsonObject {
  return { metadata: { name: statusConfigMapName, namespace: 'adp', resourceVersion: '5' }, data };
}

/** A history over a server on which `present` is kept, unless the answer says otherwise. */
function historyOver(present: JsonObject | undefined, answer: Answer = () => undefined) {
  let kept = present;
  const client = scriptedClient([], (call) => {
    const given = answer(call);
    if (given !== undefined) return given;
    if (call.verb === 'get') return kept ?? failing(call, 'NotFound');
    kept = call.body;
    return undefined;
  });
  const { log, lines } = logRecorder();
  const told: SyncStatus[] = [];
  const history = new SyncHistory({
    client,
    oadpNamespace: 'adp',
    log,
    now: () => noon,
    onStatus: (status) => told.push(status),
  });
  const data = (): unknown => kept?.['data'];
  return { history, client, lines, told, data };
}

describe('the kept status', () => {
  test('is made at the end of the first pass, and written once a pass from then on', async () => {
    const { history, client, data } = historyOver(undefined);
    history.open();
    await history.close();
    expect(client.said()).toEqual([`get ${statusConfigMapName}`]);
    history.add(success(noon));
    await history.close();
    history.add(failure(noon + minute));
    await history.close();
    expect(client.said().slice(1)).toEqual(
      ['get', 'create', 'get', 'update'].map((verb) => `${verb} ${statusConfigMapName}`),
    );
    expect(data()).toEqual(
      statusData({
        lastAttempt: noon + minute,
        lastSuccess: noon,
        lastFailure: noon + minute,
        lastFailureMessage: 'exceeded quota',
        consecutiveFailures: 1,
        reasons: { Present: 1 },
      }),
    );
  });

  test('goes on from what an earlier process left, and shows it at once', async () => {
    const before = { lastAttempt: noon - minute, lastSuccess: noon - minute, consecutiveFailures: 4, reasons: {} };
    const { history, told, data } = historyOver(stored(statusData(before)));
    history.open();
    await history.close();
    expect(told).toEqual([before]);
    history.add(failure(noon));
    await history.close();
    expect(data()).toMatchObject({ lastSuccessfulSyncTime: '2026-01-15T11:59:00Z', consecutiveFailures: '5' });
  });

  test('of passes that end while a write is under way is written once', async () => {
    const { history, client, data } = historyOver(stored({}));
    history.add(failure(noon));
    history.add(failure(noon + 1_000));
    history.add(failure(noon + 2_000));
    await history.close();
    expect(client.count('update')).toBe(1);
    expect(data()).toMatchObject({ consecutiveFailures: '3', lastFailureTime: '2026-01-15T12:00:02Z' });
  });

  test('that is the same is not written', async () => {
    const { history, client } = historyOver(undefined);
    history.add(success(noon));
    await history.close();
    history.add(success(noon));
    await history.close();
    expect([client.count('create'), client.count('update')]).toEqual([1, 0]);
  });

  test('that somebody broke by hand is told of once, and written anew', async () => {
    const { history, lines, data } = historyOver(stored({ lastSuccessfulSyncTime: 'never', reasons: 5 }));
    history.open();
    await history.close();
    expect(lines).toMatchObject([{ level: 40, unreadable: ['lastSuccessfulSyncTime', 'reasons'] }]);
    history.add(success(noon));
    await history.close();
    expect(data()).toMatchObject({ lastSuccessfulSyncTime: '2026-01-15T12:00:00Z', reasons: '{"Present":1}' });
    expect(lines).toHaveLength(1);
  });

  test('is tried again when somebody else wrote in between, and given up after the third time', async () => {
    let conflicts = 2;
    const { history, client, lines, data } = historyOver(stored({}), (call) => {
      if (call.verb !== 'update' || conflicts === 0) return undefined;
      conflicts -= 1;
      return failing(call, 'Conflict');
    });
    history.add(success(noon));
    await history.close();
    expect(client.count('update')).toBe(3);
    expect({ data: data(), lines }).toMatchObject({ data: { consecutiveFailures: '0' }, lines: [] });

    conflicts = 3;
    history.add(success(noon + minute));
    await history.close();
    expect(client.count('update')).toBe(6);
    expect(lines).toMatchObject([{ msg: 'status of the passes not kept' }]);
  });

  test.each(['get', 'update'] as const)(
    'that cannot be kept for a failing %s harms nothing, and is told once',
    async (verb) => {
      let allowed = false;
      const before = statusData({ consecutiveFailures: 2, reasons: {} });
      const { history, lines, told, data } = historyOver(stored(before), (call) =>
        call.verb === verb && !allowed ? failing(call, 'Forbidden') : undefined,
      );
      for (const time of [noon, noon + minute]) {
        history.add(failure(time));
        await history.close();
      }
      expect(lines).toMatchObject([{ level: 40, msg: 'status of the passes not kept', err: { code: 'Forbidden' } }]);
      expect(told.at(-1)).toMatchObject({ lastFailure: noon + minute });
      expect(data()).toEqual(before);
      allowed = true;
      history.add(failure(noon + 2 * minute));
      await history.close();
      expect(data()).toMatchObject({ consecutiveFailures: '5' });
    },
  );
});
