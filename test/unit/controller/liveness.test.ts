import { describe, expect, test } from 'vitest';
import { Liveness } from '../../../src/controller/liveness.ts';
import { HealthChecks } from '../../../src/observability/health.ts';
import { healthPage } from '../../../src/observability/http-server.ts';

const minute = 60_000;

function watched() {
  const state = { now: 0, waitingSince: undefined as number | undefined, excuse: undefined as string | undefined };
  const liveness = new Liveness({
    longestWaitMs: () => (state.waitingSince === undefined ? 0 : state.now - state.waitingSince),
    excuse: () => state.excuse,
    now: () => state.now,
  });
  const live = new HealthChecks();
  live.set('queue', () => liveness.problem());
  return { state, liveness, livez: healthPage('livez', live) };
}

describe('/livez', () => {
  test('fails once namespaces wait while none was done for two minutes', () => {
    const { state, livez } = watched();
    state.waitingSince = 0;
    state.now = 2 * minute - 1;
    expect(livez().status).toBe(200);
    state.now = 2 * minute;
    expect(livez()).toMatchObject({
      status: 503,
      body: expect.stringMatching(/^\[-\]queue failed: namespaces wait, and none was done for 120 s$/m) as unknown,
    });
  });

  test('passes however long one waits, as long as others are done', () => {
    const { state, liveness, livez } = watched();
    state.waitingSince = 0;
    for (state.now = minute; state.now < 60 * minute; state.now += minute) {
      liveness.worked();
      expect(livez().status).toBe(200);
    }
  });

  test('passes while there is nothing to do, and just after something has come', () => {
    const { state, livez } = watched();
    state.now = 60 * minute;
    expect(livez().status).toBe(200);
    state.waitingSince = state.now;
    expect(livez().status).toBe(200);
    state.now += 2 * minute;
    expect(livez().status).toBe(503);
  });

  test('passes while the API server is away, which no restart would bring back', () => {
    const { state, livez } = watched();
    state.waitingSince = 0;
    state.now = 60 * minute;
    state.excuse = 'backups.velero.io: offline';
    expect(livez().status).toBe(200);
    state.excuse = undefined;
    expect(livez().status).toBe(503);
  });
});
