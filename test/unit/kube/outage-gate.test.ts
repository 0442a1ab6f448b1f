import { describe, expect, it } from 'vitest';
import { KubeError } from '../../../src/kube/errors.ts';
import type { KubeErrorCode } from '../../../src/kube/errors.ts';
import { OutageGate } from '../../../src/kube/outage-gate.ts';
import { ManualClock } from '../../support/manual-clock.ts';

function failure(code: KubeErrorCode, status?: number, reason?: string): KubeError {
  return new KubeError({ code, status, reason, verb: 'create', resource: 'nonadminbackups', message: code });
}

const refused = (): KubeError => failure('Unreachable');

/** A gate in virtual time, with a server that answers or not. */
class Scene {
  readonly time = new ManualClock();
  returns = 0;
  /** When requests were made, in ms. */
  readonly made: number[] = [];
  answer: () => Promise<string> = () => Promise.reject(refused());
  readonly stop = new AbortController();
  readonly gate = new OutageGate({
    clock: this.time.process(),
    random: () => 0.5,
    onReturn: () => {
      this.returns += 1;
    },
  });

  request = async (): Promise<unknown> => {
    try {
      return await this.gate.pass(this.stop.signal, () => {
        this.made.push(this.time.now);
        return this.answer();
      });
    } catch (error) {
      return error;
    }
  };

  /** So many requests one after the other. */
  async inARow(count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) await this.request();
  }

  /** Requests that come again as soon as they have failed, as many namespaces' do. */
  keepAsking(count: number): void {
    const ask = async (): Promise<void> => {
      while (!this.stop.signal.aborted && (await this.request()) !== 'answer');
    };
    for (let index = 0; index < count; index += 1) void ask();
  }
}

const answered = (): Promise<string> => Promise.resolve('answer');

describe('a gate', () => {
  it('lets everything through while the server answers', async () => {
    const scene = new Scene();
    scene.answer = answered;
    await scene.inARow(100);
    expect(scene.made).toHaveLength(100);
    expect(scene.gate.away).toBe(false);
  });

  it('closes after five requests in a row without a connection', async () => {
    const scene = new Scene();
    await scene.inARow(4);
    expect(scene.gate.away).toBe(false);
    await scene.inARow(1);
    expect(scene.gate.away).toBe(true);
  });

  it.each<[string, KubeError, boolean]>([
    ['a connection that fails', refused(), true],
    ['a load balancer without a server behind it', failure('ServerError', 503), true],
    ['an API server that is not ready', failure('ServerError', 503, 'ServiceUnavailable'), false],
    ['an API server with a broken webhook', failure('ServerError', 500, 'InternalError'), false],
    ['an error of 500 that gives no reason', failure('ServerError', 500), false],
    ['a request that is not answered in time', failure('Timeout'), false],
    ['a quota', failure('Forbidden', 403, 'Forbidden'), false],
    ['a stop', failure('Aborted'), false],
  ])('%s: does it mean that the server is away?', async (_, error, away) => {
    const scene = new Scene();
    scene.answer = () => Promise.reject(error);
    await scene.inARow(10 * Number(!away) + 5);
    expect(scene.gate.away).toBe(away);
  });

  it('forgets failures at the first answer, even one that says no', async () => {
    const scene = new Scene();
    for (let round = 0; round < 5; round += 1) {
      scene.answer = () => Promise.reject(refused());
      await scene.inARow(4);
      scene.answer = () => Promise.reject(failure('AlreadyExists', 409, 'AlreadyExists'));
      await scene.inARow(1);
    }
    expect(scene.gate.away).toBe(false);
  });

  it('is not opened by a request that is not answered in time', async () => {
    const scene = new Scene();
    await scene.inARow(5);
    scene.answer = () => Promise.reject(failure('Timeout'));
    const asked = scene.request();
    await scene.time.advance(5_000);
    await asked;
    expect(scene.gate.away).toBe(true);
  });

  it('asks a dead server once every two seconds at most, whoever waits', async () => {
    const scene = new Scene();
    scene.keepAsking(64);
    await scene.time.advance(10_000);
    const before = scene.made.length;
    await scene.time.advance(110_000);
    // Two seconds, of which half is jitter.
    expect(scene.made.length - before).toBeLessThanOrEqual(110);
    expect(scene.made.length - before).toBeGreaterThanOrEqual(55);
    // The 64 that had begun before the fifth had failed, and the faster tries of the first seconds.
    expect(before).toBeLessThanOrEqual(64 + 15);
    scene.stop.abort();
    await scene.time.advance(1);
  });

  it('lets all go on within two seconds of the return', async () => {
    const scene = new Scene();
    scene.keepAsking(64);
    await scene.time.advance(60_000);
    scene.answer = answered;
    const before = scene.made.length;
    await scene.time.advance(2_000);
    expect(scene.made.length - before).toBe(64);
    expect(scene.gate.away).toBe(false);
    expect(scene.returns).toBe(1);
    expect(scene.time.sleeping).toBe(0);
  });

  it('lets all go on at once when somebody else has reached the server', async () => {
    const scene = new Scene();
    scene.keepAsking(10);
    await scene.time.advance(60_000);
    scene.answer = answered;
    const before = scene.made.length;
    scene.gate.reached();
    await scene.time.advance(0);
    expect(scene.made.length - before).toBe(10);
    expect(scene.returns).toBe(1);
  });

  it('says nothing of a return after a moment', async () => {
    const scene = new Scene();
    scene.keepAsking(10);
    await scene.time.advance(100);
    scene.answer = answered;
    await scene.time.advance(2_000);
    expect(scene.gate.away).toBe(false);
    expect(scene.returns).toBe(0);
  });

  it('one that always breaks its connection does not hold up the others', async () => {
    const scene = new Scene();
    await scene.inARow(5);
    const poisoned = scene.request();
    const others = Promise.resolve().then(() => {
      scene.answer = answered;
      return Promise.all([scene.request(), scene.request()]);
    });
    scene.answer = () => Promise.reject(refused());
    await scene.time.advance(3_000);
    await poisoned;
    expect(await others).toEqual(['answer', 'answer']);
  });

  it('holds nobody back who is told to stop', async () => {
    const scene = new Scene();
    await scene.inARow(5);
    const waiting = [scene.request(), scene.request(), scene.request()];
    await scene.time.advance(0);
    const before = scene.made.length;
    scene.stop.abort();
    await scene.time.advance(0);
    await Promise.all(waiting);
    // Each has been asked, to see for itself that it is not wanted any more.
    expect(scene.made.length - before).toBe(3);
    expect(scene.time.sleeping).toBe(0);
  });
});
