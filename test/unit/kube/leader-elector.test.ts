import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { LeaderElector, processIdentity } from '../../../src/kube/leader-elector.ts';
import type { ElectionEnd, ElectionState, LeaderElectorOptions } from '../../../src/kube/leader-elector.ts';
import { LeaseDouble } from '../../support/lease-double.ts';
import type { Fate, Verb } from '../../support/lease-double.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import type { ProcessClock } from '../../support/manual-clock.ts';

const silent = pino({ level: 'silent' });
const hour = 3_600_000;

/** A candidate in a process of its own; its work goes on until its signal aborts. */
class Candidate {
  readonly clock: ProcessClock;
  readonly elector: LeaderElector;
  readonly states: ElectionState[] = [];
  readonly #stop = new AbortController();
  fate: (verb: Verb) => Fate = () => ({});
  signal: AbortSignal | undefined;
  ledAt: number | undefined;
  abortedAt: number | undefined;
  end: ElectionEnd | undefined;
  failure: unknown;
  finishWork: () => void = () => undefined;

  constructor(
    world: ManualClock,
    lease: LeaseDouble,
    identity: string,
    options: Partial<LeaderElectorOptions> & { wallOffsetMs?: number; monotonicOffsetMs?: number } = {},
  ) {
    this.clock = world.process(options);
    this.elector = new LeaderElector({
      client: lease.client(this.clock, (verb) => this.fate(verb)),
      namespace: 'openshift-adp',
      name: 'nab-sync',
      identity,
      log: silent,
      clock: this.clock,
      random: () => 0,
      ...options,
    });
    this.elector.onState((state) => this.states.push(state));
  }

  start(run: { ifHeld?: 'wait' | 'leave'; settleAfterMs?: number; work?: () => Promise<void> } = {}): this {
    this.end = undefined;
    this.elector
      .run({
        signal: this.#stop.signal,
        ...(run.ifHeld === undefined ? {} : { ifHeld: run.ifHeld }),
        lead: async (signal) => {
          this.signal = signal;
          this.ledAt = this.clock.world.now;
          if (run.work !== undefined) {
            await run.work();
            return;
          }
          await new Promise<void>((resolve) => {
            this.finishWork = resolve;
            signal.addEventListener('abort', () => {
              this.abortedAt = this.clock.world.now;
              resolve();
            });
          });
          await this.clock.sleep(run.settleAfterMs ?? 0);
        },
      })
      .then(
        (end) => {
          this.end = end;
        },
        (error: unknown) => {
          this.failure = error;
        },
      );
    return this;
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Like SIGKILL: nothing of it ever runs again. */
  kill(): void {
    this.clock.frozen = true;
  }

  get leading(): boolean {
    return this.signal?.aborted === false && this.end === undefined;
  }
}

let world = new ManualClock();
let lease = new LeaseDouble();
afterEach(() => {
  world = new ManualClock();
  lease = new LeaseDouble();
});

function candidate(
  identity: string,
  options?: Partial<LeaderElectorOptions> & { wallOffsetMs?: number; monotonicOffsetMs?: number },
): Candidate {
  return new Candidate(world, lease, identity, options);
}

describe('options', () => {
  const options = { client: lease.client(world.process()), namespace: 'ns', name: 'lease', identity: 'a', log: silent };

  it('are refused when a request of the old leader could end after a new leader started (field case D10)', () => {
    expect(() => new LeaderElector({ ...options, renewDeadlineMs: 10_000 })).toThrow(
      /renewDeadlineMs \+ requestTimeoutMs must be less than leaseDurationMs.*got 10000 \+ 5000 and 15000/,
    );
  });

  it('are refused when no renewal fits into the renew deadline', () => {
    expect(() => new LeaderElector({ ...options, retryPeriodMs: 8_000 })).toThrow(/retryPeriodMs must be less than/);
  });

  it.each([
    ['leaseDurationMs', 15_500, /whole seconds, got 15500/],
    ['requestTimeoutMs', 0, /requestTimeoutMs must be a positive number of milliseconds, got 0/],
    ['retryPeriodMs', Number.NaN, /retryPeriodMs must be a positive number of milliseconds, got NaN/],
    ['renewDeadlineMs', -1, /renewDeadlineMs must be a positive number of milliseconds, got -1/],
  ])('are refused when %s is %d', (name, value, message) => {
    expect(() => new LeaderElector({ ...options, [name]: value })).toThrow(message);
  });

  it.each(['identity', 'name', 'namespace'])('are refused when %s is empty', (name) => {
    expect(() => new LeaderElector({ ...options, [name]: '' })).toThrow(`${name} must not be empty`);
  });

  it('give each process an identity that names its host', () => {
    expect(processIdentity('pod-1')).toMatch(/^pod-1_[0-9a-f-]{36}$/);
    expect(processIdentity('pod-1')).not.toBe(processIdentity('pod-1'));
  });
});

describe('a single candidate', () => {
  it('creates the Lease and leads at once', async () => {
    const a = candidate('a').start();
    await world.advance(0);
    expect(a.leading).toBe(true);
    expect(a.elector.isLeading()).toBe(true);
    expect(a.elector.state).toMatchObject({ leader: true, holder: 'a', problem: undefined });
    expect(lease.spec).toEqual({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    });
  });

  it('writes times with six digits of fraction (field case C17)', async () => {
    candidate('a', { wallOffsetMs: 7 }).start();
    await world.advance(2_000);
    expect(lease.spec).toMatchObject({
      acquireTime: '2026-01-01T00:00:00.007000Z',
      renewTime: '2026-01-01T00:00:02.007000Z',
    });
  });

  it('renews with one request every retry period', async () => {
    candidate('a').start();
    await world.advance(60_000);
    expect(lease.requests.map(({ verb }) => verb)).toEqual(['get', 'create', ...Array<string>(30).fill('update')]);
  });

  it('spreads its renewals by chance, never beyond the retry period', async () => {
    candidate('a', { random: () => 0.999 }).start();
    await world.advance(1_601);
    expect(lease.requests.filter(({ verb }) => verb === 'update')).toHaveLength(1);
  });

  it('takes a Lease whose holder is empty at once, whatever else it says', async () => {
    lease.put({
      holderIdentity: '',
      leaseDurationSeconds: 3_600,
      renewTime: '2099-01-01T00:00:00Z',
      leaseTransitions: 4,
    });
    const a = candidate('a').start();
    await world.advance(0);
    expect(a.leading).toBe(true);
    expect(lease.spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 5 });
  });

  it.each([
    ['no spec', undefined],
    ['a spec of null', null],
    ['a spec that is a list', [1]],
    ['fields of null', { holderIdentity: null, renewTime: null, leaseDurationSeconds: null, leaseTransitions: null }],
    ['fields of other types', { holderIdentity: {}, renewTime: 4, leaseDurationSeconds: 'x', leaseTransitions: 'y' }],
    ['a counter at its limit', { holderIdentity: '', leaseTransitions: 2_147_483_647 }],
    ['a counter that is not one', { holderIdentity: '', leaseTransitions: -1.5 }],
  ])('copes with a Lease that has %s', async (_, spec) => {
    lease.lease = { metadata: { resourceVersion: '1' }, spec };
    const a = candidate('a').start();
    await world.advance(0);
    expect(a.leading).toBe(true);
    expect(lease.spec['leaseTransitions']).toSatisfy((count) => Number.isInteger(count) && Number(count) >= 0);
    expect(lease.spec['leaseTransitions']).toBeLessThanOrEqual(2_147_483_647);
  });

  it('keeps what it does not know of the Lease', async () => {
    lease.lease = {
      metadata: { resourceVersion: '1', labels: { team: 'x' } },
      spec: { holderIdentity: '', strategy: 'OldestEmulationVersion' },
    };
    candidate('a').start();
    await world.advance(4_000);
    expect(lease.lease).toMatchObject({
      metadata: { labels: { team: 'x' } },
      spec: { strategy: 'OldestEmulationVersion' },
    });
  });

  it('gives the Lease back when it is stopped, after its work has settled, and keeps it until then', async () => {
    const a = candidate('a').start({ settleAfterMs: 20_000 });
    const b = candidate('b').start();
    await world.advance(5_000);
    a.stop();
    await world.advance(19_999);
    expect(a.signal?.aborted).toBe(true);
    expect(a.elector.isLeading()).toBe(false);
    expect(lease.spec['holderIdentity']).toBe('a');
    expect(b.leading).toBe(false);
    await world.advance(2_001);
    expect(a.end).toEqual({ ended: 'released' });
    expect(b.leading).toBe(true);
  });

  it('gives the Lease back when its work is done', async () => {
    const a = candidate('a').start();
    await world.advance(3_000);
    a.finishWork();
    await world.advance(0);
    expect(a.end).toEqual({ ended: 'released' });
    expect(lease.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
    expect(world.sleeping).toBe(0);
  });

  it('gives the Lease back when its work fails, and passes the failure on', async () => {
    const a = candidate('a').start({ work: () => Promise.reject(new Error('broken')) });
    await world.advance(0);
    expect(a.failure).toEqual(new Error('broken'));
    expect(lease.spec['holderIdentity']).toBe('');
    expect(world.sleeping).toBe(0);
  });

  it('may run again after it was stopped, but not twice at once', async () => {
    const a = candidate('a').start();
    await world.advance(0);
    await expect(a.elector.run({ signal: AbortSignal.abort(), lead: () => Promise.resolve() })).rejects.toThrow(
      'while a run is under way',
    );
    a.finishWork();
    await world.advance(0);
    a.start();
    await world.advance(0);
    expect(a.leading).toBe(true);
    expect(lease.spec['leaseTransitions']).toBe(1);
  });

  it('leaves no timer behind when it is stopped as a candidate', async () => {
    lease.put({ holderIdentity: 'x', leaseDurationSeconds: 15, renewTime: '1' });
    const a = candidate('a').start();
    await world.advance(1_000);
    a.stop();
    await world.advance(0);
    expect(a.end).toEqual({ ended: 'released' });
    expect(a.ledAt).toBeUndefined();
    expect(world.sleeping).toBe(0);
  });
});

describe('take-over', () => {
  it('of a dead leader comes within lease duration + retry period of its last renewal', async () => {
    const a = candidate('a').start();
    await world.advance(0);
    const b = candidate('b').start();
    await world.advance(10_000);
    a.kill();
    await world.advance(14_999);
    expect(b.leading).toBe(false);
    await world.advance(2_001);
    expect(b.leading).toBe(true);
    expect(lease.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
  });

  it('comes exactly when the Lease has been seen unchanged for its duration, not a retry period later', async () => {
    lease.put({ holderIdentity: 'x', leaseDurationSeconds: 15, renewTime: '1' });
    const a = candidate('a').start();
    await world.advance(14_999);
    expect(a.leading).toBe(false);
    await world.advance(1);
    expect(a.leading).toBe(true);
  });

  it.each([
    ['a minute behind', -60_000],
    ['an hour behind', -hour],
    ['an hour ahead', hour],
  ])('is not hastened or held up by a holder whose clock is %s (field case D9)', async (_, wallOffsetMs) => {
    const a = candidate('a', { wallOffsetMs, monotonicOffsetMs: 1e9 }).start();
    await world.advance(0);
    const b = candidate('b').start();
    await world.advance(300_000);
    expect([a.leading, b.leading]).toEqual([true, false]);
    a.kill();
    await world.advance(17_000);
    expect(b.leading).toBe(true);
  });

  it("waits for the holder's own lease duration, not for that of the candidate (field case D9)", async () => {
    lease.put({ holderIdentity: 'x', leaseDurationSeconds: 60, renewTime: '1' });
    const patient = candidate('a').start();
    await world.advance(59_999);
    expect(patient.leading).toBe(false);
    await world.advance(1);
    expect(patient.leading).toBe(true);
  });

  it.each([undefined, null, 0, -15, 'soon', 1.5])(
    'waits for its own lease duration when the holder says %j',
    async (seconds) => {
      lease.put({ holderIdentity: 'x', leaseDurationSeconds: seconds, renewTime: '1' });
      const a = candidate('a').start();
      await world.advance(14_999);
      expect(a.leading).toBe(false);
      await world.advance(1);
      expect(a.leading).toBe(true);
    },
  );

  it.each([
    ['holder', { holderIdentity: 'y' }],
    ['renewTime, even a text that is no time', { renewTime: 'yesterday' }],
    ['transitions', { leaseTransitions: 9 }],
    ['resourceVersion alone', {}],
  ])('starts to count anew when the %s changes', async (_, change) => {
    const spec = { holderIdentity: 'x', leaseDurationSeconds: 15, renewTime: '1' };
    lease.put(spec);
    const a = candidate('a').start();
    await world.advance(13_000);
    lease.put({ ...spec, ...change });
    await world.advance(15_900);
    expect(a.leading).toBe(false);
    await world.advance(1_100);
    expect(a.leading).toBe(true);
  });

  it('after a release is a matter of one retry period', async () => {
    const a = candidate('a').start();
    await world.advance(0);
    const b = candidate('b').start();
    await world.advance(1_500);
    a.stop();
    await world.advance(0);
    expect([a.leading, b.leading]).toEqual([false, false]);
    await world.advance(500);
    expect(b.leading).toBe(true);
  });

  it('of a Lease that somebody deletes still waits for the holder that was seen', async () => {
    const a = candidate('a').start();
    await world.advance(0);
    const b = candidate('b').start();
    await world.advance(1_000);
    a.kill();
    lease.lease = undefined;
    await world.advance(13_999);
    expect(b.leading).toBe(false);
    await world.advance(1);
    expect(b.leading).toBe(true);
  });

  it('is won by one of two that try at the same moment; the other is not in error', async () => {
    lease.put({ holderIdentity: 'x', leaseDurationSeconds: 15, renewTime: '1' });
    const a = candidate('a').start();
    const b = candidate('b').start();
    await world.advance(20_000);
    expect([a.leading, b.leading].filter(Boolean)).toHaveLength(1);
    expect([...a.states, ...b.states].map(({ problem }) => problem)).not.toContain('Conflict');
    const holder = lease.spec['holderIdentity'];
    expect([a.elector.state.holder, b.elector.state.holder]).toEqual([holder, holder]);
  });

  it('by two that create the Lease at the same moment has one winner', async () => {
    const a = candidate('a').start();
    const b = candidate('b').start();
    await world.advance(10_000);
    expect([a.leading, b.leading].filter(Boolean)).toHaveLength(1);
  });
});

describe('loss', () => {
  it('comes no later than the renew deadline after the start of the last renewal, when requests hang (D10)', async () => {
    const a = candidate('a').start();
    await world.advance(2_000);
    a.fate = () => ({ end: 'lost' });
    await world.advance(7_999);
    expect(a.leading).toBe(true);
    await world.advance(1);
    expect(a.abortedAt).toBe(10_000);
    expect(a.elector.isLeading()).toBe(false);
    await world.advance(5_000);
    expect(a.end).toEqual({ ended: 'lost' });
    expect(world.sleeping).toBe(0);
  });

  it('counts from the start of a renewal, not from its answer', async () => {
    lease.put({ holderIdentity: '' });
    const a = candidate('a');
    let answered = false;
    a.fate = (verb) => {
      if (verb === 'get') return {};
      if (answered) return { end: 'lost' };
      answered = true;
      return { there: 1_000, back: 3_000 };
    };
    a.start();
    await world.advance(20_000);
    expect([a.ledAt, a.abortedAt]).toEqual([4_000, 8_000]);
  });

  it('does not come from one hung renewal', async () => {
    const a = candidate('a').start();
    await world.advance(1_000);
    let hung = false;
    a.fate = (verb) => {
      if (verb !== 'update' || hung) return {};
      hung = true;
      return { end: 'lost' };
    };
    await world.advance(60_000);
    expect(hung).toBe(true);
    expect(a.leading).toBe(true);
  });

  it('does not come from errors that pass within the renew deadline, and shows them meanwhile', async () => {
    const a = candidate('a').start();
    await world.advance(2_000);
    a.fate = () => ({ end: 'ServerError' });
    await world.advance(5_000);
    expect(a.elector.state).toMatchObject({ leader: true, problem: 'ServerError' });
    a.fate = () => ({});
    await world.advance(60_000);
    expect(a.elector.state).toMatchObject({ leader: true, problem: undefined });
    expect(a.leading).toBe(true);
  });

  it('does not come from a renewal that was carried out without an answer', async () => {
    const a = candidate('a').start();
    await world.advance(1_000);
    let once = true;
    a.fate = () => {
      if (!once) return {};
      once = false;
      return { end: 'unanswered' };
    };
    await world.advance(60_000);
    expect(a.leading).toBe(true);
  });

  it('does not come from a change of the Lease by somebody who leaves the holder alone', async () => {
    const a = candidate('a').start();
    await world.advance(1_000);
    lease.put({ ...lease.spec });
    await world.advance(60_000);
    expect(a.leading).toBe(true);
  });

  it('does not come when somebody deletes the Lease and nobody else wants it', async () => {
    const a = candidate('a').start();
    await world.advance(1_000);
    lease.lease = undefined;
    await world.advance(1_000);
    expect(lease.spec['holderIdentity']).toBe('a');
    expect(a.leading).toBe(true);
  });

  it('comes with the first look at a Lease that is held by another, which is left alone', async () => {
    const a = candidate('a').start();
    await world.advance(1_000);
    lease.put({ holderIdentity: 'x', leaseDurationSeconds: 15, renewTime: '1' });
    await world.advance(1_000);
    expect(a.end).toEqual({ ended: 'lost' });
    expect(a.elector.state).toMatchObject({ leader: false, holder: 'x' });
    expect(lease.spec['holderIdentity']).toBe('x');
  });

  it('frees the Lease after the work has settled, so that the next need not wait', async () => {
    const a = candidate('a').start();
    await world.advance(1_000);
    a.fate = () => ({ end: 'ServerError' });
    await world.advance(6_999);
    a.fate = () => ({});
    lease.put({ ...lease.spec, renewTime: 'changed, so that the version known to the leader is old' });
    await world.advance(1);
    expect(a.end).toEqual({ ended: 'lost' });
    expect(lease.spec['holderIdentity']).toBe('');
  });

  it('in an outage is over with the first look after it, when nobody else has led meanwhile', async () => {
    const a = candidate('a').start();
    await world.advance(1_000);
    a.fate = () => ({ end: 'Unreachable' });
    await world.advance(9_000);
    expect(a.end).toEqual({ ended: 'lost' });
    a.start();
    await world.advance(1_000);
    expect(a.leading).toBe(false);
    a.fate = () => ({});
    await world.advance(4_000);
    expect(a.leading).toBe(true);
    // The holder has not changed.
    expect(lease.spec['leaseTransitions']).toBe(0);
  });

  it('in an outage in which another has led is not over before that one’s Lease is', async () => {
    const a = candidate('a').start();
    await world.advance(1_000);
    const kept = structuredClone(lease.lease);
    a.fate = () => ({ end: 'Unreachable' });
    await world.advance(9_000);
    a.start();
    lease.put({ holderIdentity: 'b', leaseDurationSeconds: 15, renewTime: '1' });
    a.fate = () => ({});
    await world.advance(4_000);
    expect(a.leading).toBe(false);
    // Also not when an etcd that is put back shows our own write again: b may not have noticed yet.
    lease.lease = kept;
    await world.advance(4_000);
    expect(a.leading).toBe(false);
  });

  it('is known to isLeading before any timer has run, after the process was stopped', async () => {
    const a = candidate('a').start();
    await world.advance(1_000);
    a.clock.frozen = true;
    await world.advance(8_000);
    expect(a.signal?.aborted).toBe(false);
    expect(a.elector.isLeading()).toBe(false);
    expect(a.signal?.aborted).toBe(true);
  });

  it('is not undone by a renewal whose answer waited while the process was stopped', async () => {
    const a = candidate('a').start();
    a.fate = (verb) => (verb === 'update' ? { back: 1_000 } : {});
    await world.advance(2_500);
    a.clock.frozen = true;
    await world.advance(20_000);
    a.clock.frozen = false;
    await world.advance(0);
    expect(a.abortedAt).toBe(22_500);
    expect(a.elector.isLeading()).toBe(false);
  });
});

describe('faults while waiting', () => {
  it('a Lease that was taken without an answer is led at once at the next look', async () => {
    const a = candidate('a');
    let once = true;
    a.fate = (verb) => {
      if (verb !== 'create' || !once) return {};
      once = false;
      return { end: 'unanswered' };
    };
    a.start();
    await world.advance(7_001);
    expect(a.leading).toBe(true);
  });

  it('a Lease that was taken without an answer is given back on a stop', async () => {
    const a = candidate('a');
    a.fate = (verb) => (verb === 'create' ? { end: 'unanswered' } : {});
    a.start();
    await world.advance(1_000);
    expect(lease.spec['holderIdentity']).toBe('a');
    a.stop();
    await world.advance(0);
    expect(a.end).toEqual({ ended: 'released' });
    expect(lease.spec['holderIdentity']).toBe('');
  });

  it('a Lease that shows a renewal of ours without an answer is led again at once after an outage, and not waited for', async () => {
    const a = candidate('a').start();
    await world.advance(1_000);
    // The first renewal is carried out; the later ones are refused for it, which nobody hears of either.
    a.fate = () => ({ end: 'unanswered' });
    await world.advance(20_000);
    expect(a.end).toEqual({ ended: 'lost' });
    a.fate = () => ({});
    a.start();
    await world.advance(100);
    expect(a.leading).toBe(true);
  });

  it('a Lease that says to be ours though we never took it is waited for (an etcd that was put back)', async () => {
    lease.put({ holderIdentity: 'a', leaseDurationSeconds: 15, renewTime: '1' });
    const a = candidate('a').start();
    await world.advance(14_999);
    expect(a.leading).toBe(false);
    await world.advance(1);
    expect(a.leading).toBe(true);
  });

  it.each(['Forbidden', 'NamespaceNotFound', 'Unreachable', 'Throttled'] as const)(
    '%s shows in the state once, is retried at a bounded rate, and leads soon after it has gone',
    async (code) => {
      const a = candidate('a');
      a.fate = () => ({ end: code });
      a.start();
      await world.advance(120_000);
      expect(a.states).toHaveLength(1);
      expect(a.elector.state).toMatchObject({ leader: false, problem: code });
      // Two a retry period at the most, though jitter may halve each wait.
      expect(lease.requests.length).toBeLessThanOrEqual(62);
      a.fate = () => ({});
      await world.advance(4_000);
      expect(a.leading).toBe(true);
      expect(a.elector.state.problem).toBeUndefined();
    },
  );

  it('requests that hang are given up after the request timeout', async () => {
    const a = candidate('a');
    a.fate = () => ({ end: 'lost' });
    a.start();
    await world.advance(5_001);
    expect(a.elector.state).toMatchObject({ problem: 'Timeout', leader: false });
  });

  it('a listener that throws harms nothing', async () => {
    const a = candidate('a');
    a.elector.onState(() => {
      throw new Error('listener');
    });
    a.start();
    await world.advance(4_000);
    expect(a.leading).toBe(true);
  });

  it('a listener that has unsubscribed is not told', async () => {
    const a = candidate('a');
    const told: ElectionState[] = [];
    a.elector.onState((state) => told.push(state))();
    a.start();
    await world.advance(0);
    expect(told).toEqual([]);
  });
});

describe('leaving when the Lease is held', () => {
  it('leaves as soon as the holder renews, and names it', async () => {
    const a = candidate('a').start();
    await world.advance(0);
    const job = candidate('job').start({ ifHeld: 'leave' });
    await world.advance(1_999);
    expect(job.end).toBeUndefined();
    await world.advance(2_001);
    expect(job.end).toEqual({ ended: 'held', holder: 'a' });
    expect(a.leading).toBe(true);
    expect(job.ledAt).toBeUndefined();
  });

  it('takes over from a holder that shows no life for its lease duration', async () => {
    lease.put({ holderIdentity: 'x', leaseDurationSeconds: 15, renewTime: '1' });
    const job = candidate('job').start({ ifHeld: 'leave' });
    await world.advance(15_000);
    expect(job.leading).toBe(true);
  });

  it('takes a Lease that becomes free while it watches', async () => {
    const a = candidate('a').start();
    await world.advance(1_000);
    const job = candidate('job').start({ ifHeld: 'leave' });
    await world.advance(500);
    a.stop();
    await world.advance(1_500);
    expect(job.leading).toBe(true);
  });

  it('of four that start at once, one works and the others leave or work after it', async () => {
    const jobs = ['a', 'b', 'c', 'd'].map((name) => candidate(name).start({ ifHeld: 'leave' }));
    await world.advance(10_000);
    expect(jobs.filter((job) => job.leading)).toHaveLength(1);
    expect(jobs.filter((job) => job.end?.ended === 'held')).toHaveLength(3);
  });

  it('sees that it lost the race for a free Lease', async () => {
    lease.put({ holderIdentity: '' });
    const a = candidate('a').start({ ifHeld: 'leave' });
    const b = candidate('b').start({ ifHeld: 'leave' });
    await world.advance(2_000);
    expect([a, b].map((one) => one.end?.ended ?? 'leading').sort()).toEqual(['held', 'leading']);
  });

  it('fails with the last error when the API does not answer for a lease duration', async () => {
    const job = candidate('job');
    job.fate = () => ({ end: 'ServerError' });
    job.start({ ifHeld: 'leave' });
    await world.advance(14_000);
    expect(job.failure).toBeUndefined();
    await world.advance(6_000);
    expect(job.failure).toMatchObject({ code: 'ServerError' });
    expect(world.sleeping).toBe(0);
  });

  it.each(['Forbidden', 'Unauthorized', 'KindNotInstalled'] as const)(
    'fails at once with %s: only an admin can help, and nobody waits for him',
    async (code) => {
      const job = candidate('job');
      job.fate = () => ({ end: code });
      job.start({ ifHeld: 'leave' });
      await world.advance(100);
      expect(job.failure).toMatchObject({ code });
      expect(world.sleeping).toBe(0);
    },
  );
});
