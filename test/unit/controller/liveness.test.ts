import { describe, expect, test } from 'vitest';
import { Liveness } from '../../../src/controller/liveness.ts';
import { HealthChecks } from '../../../src/observability/health.ts';
import { healthPage } from '../../../src/observability/http-server.ts';

const minute = 60_000;

function watched() {
  const state = { now: 0, waitingSince: undefined as number | undefined, unfollowed: undefined as string | undefined };
  const liveness = new Liveness({
    longestWaitMs: () => (state.waitingSince === undefined ? 0 : state.now - state.waitingSince),
    unfollowed: () => state.unfollowed,
    now: () => state.now,
  });
  const live = new HealthChecks();
  live.set('queue', () => liveness.problem());
  live.set('watches', () => liveness.watchProblem());
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
    const { state, liveness, livez } = watched();
    state.waitingSince = 0;
    state.now = 60 * minute;
    state.unfollowed = 'backups.velero.io';
    liveness.tried('backups.velero.io');
    expect(livez().status).toBe(200);
    state.unfollowed = undefined;
    expect(livez().status).toBe(503);
  });

  test('fails when a kind is not followed and nobody has tried it for five minutes, whatever others do', () => {
    const { state, liveness, livez } = watched();
    state.unfollowed = 'backups.velero.io';
    liveness.tried('backups.velero.io');
    state.now = 5 * minute - 1;
    liveness.tried('namespaces');
    expect(livez().status).toBe(200);
    state.now = 5 * minute;
    expect(livez()).toMatchObject({
      status: 503,
      body: expect.stringMatching(
        /^\[-\]watches failed: backups.velero.io is not followed, and was not tried for 300 s$/m,
      ) as unknown,
    });
    state.unfollowed = undefined;
    expect(livez().status).toBe(200);
  });
});
