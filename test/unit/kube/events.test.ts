import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { KubeError } from '../../../src/kube/errors.ts';
import type { KubeErrorCode } from '../../../src/kube/errors.ts';
import { EventRecorder } from '../../../src/kube/events.ts';
import type { EventClient, EventFact, EventRecorderOptions } from '../../../src/kube/events.ts';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { ManualClock } from '../../support/manual-clock.ts';

type Verb = 'create' | 'patch';
/** What happens to one request: carried out and answered; carried out without an answer; never answered; refused. */
type Fate = 'answered' | 'unanswered' | 'hangs' | KubeErrorCode;

/** Events by `namespace/name`, as an API server would keep them; no more of one than this. */
class EventsDouble implements EventClient {
  readonly events = new Map<string, JsonObject>();
  readonly requests: { readonly verb: Verb; readonly key: string; readonly at: number; readonly body: JsonObject }[] =
    [];
  readonly #clock: ManualClock;
  fate: (verb: Verb) => Fate = () => 'answered';
  latencyMs = 0;
  atOnce = 0;
  mostAtOnce = 0;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  create: EventClient['create'] = (_resource, { namespace = '' }, body, { signal }) => {
    const key = `${namespace}/${stringAt(objectAt(body, 'metadata'), 'name') ?? ''}`;
    return this.#send('create', key, body, signal, () => {
      if (this.events.has(key)) throw this.#error('AlreadyExists', 'create');
      this.events.set(key, body);
      return body;
    });
  };

  patch: EventClient['patch'] = (_resource, { namespace = '', name = '' }, body, { signal }) => {
    const key = `${namespace}/${name}`;
    return this.#send('patch', key, body, signal, () => {
      const event = this.events.get(key);
      if (event === undefined) throw this.#error('NotFound', 'patch');
      const involvedObject = { ...objectAt(event, 'involvedObject'), ...objectAt(body, 'involvedObject') };
      const patched = { ...event, ...body, involvedObject };
      this.events.set(key, patched);
      return patched;
    });
  };

  get only(): JsonObject {
    const [event, ...others] = this.events.values();
    expect(others).toEqual([]);
    expect(event).toBeDefined();
    return event ?? {};
  }

  async #send(
    verb: Verb,
    key: string,
    body: JsonObject,
    signal: AbortSignal,
    act: () => JsonObject,
  ): Promise<JsonObject> {
    this.requests.push({ verb, key, at: this.#clock.now, body });
    this.atOnce += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.atOnce);
    signal.addEventListener('abort', () => (this.atOnce -= 1), { once: true });
    const fate = this.fate(verb);
    await this.#clock.network.sleep(this.latencyMs);
    if (fate === 'hangs') return await new Promise(() => undefined);
    if (fate !== 'answered' && fate !== 'unanswered') throw this.#error(fate, verb);
    const answer = act();
    if (fate === 'unanswered') return await new Promise(() => undefined);
    return answer;
  }

  #error(code: KubeErrorCode, verb: string): KubeError {
    return new KubeError({ code, verb, resource: 'events', namespace: 'team-a', message: code });
  }
}

const silent = pino({ level: 'silent' });
const fact: EventFact = {
  regarding: {
    apiVersion: 'oadp.openshift.io/v1alpha1',
    kind: 'NonAdminBackup',
    namespace: 'team-a',
    name: 'daily',
    uid: 'u1',
  },
  type: 'Normal',
  reason: 'RecreatedFromVeleroBackup',
  message: 'Re-created.',
  dedupeKey: 'backup-1',
};

function setUp(options: Partial<EventRecorderOptions> = {}) {
  const clock = new ManualClock();
  const api = new EventsDouble(clock);
  const another = (instance: string): EventRecorder =>
    new EventRecorder({
      client: api,
      log: silent,
      component: 'nab-sync',
      instance,
      clock: clock.process(),
      random: () => 0.5,
      ...options,
    });
  return { clock, api, recorder: another('pod-1_uuid'), another };
}

function about(name: string): EventFact {
  return { ...fact, regarding: { ...fact.regarding, name } };
}

/** A logger whose lines can be read. */
function listening(): { log: EventRecorderOptions['log']; lines: JsonObject[] } {
  const lines: JsonObject[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line) as JsonObject) });
  return { log, lines };
}

describe('the event', () => {
  it('says what, about what, when and by whom', async () => {
    const { clock, api, recorder } = setUp();
    recorder.record(fact);
    await clock.advance(0);
    const name = stringAt(objectAt(api.only, 'metadata'), 'name');
    expect(name).toMatch(/^daily\.[0-9a-f]{20}$/);
    expect(api.only).toEqual({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace: 'team-a' },
      involvedObject: {
        apiVersion: 'oadp.openshift.io/v1alpha1',
        kind: 'NonAdminBackup',
        namespace: 'team-a',
        name: 'daily',
        uid: 'u1',
      },
      type: 'Normal',
      reason: 'RecreatedFromVeleroBackup',
      message: 'Re-created.',
      count: 1,
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:00:00Z',
      source: { component: 'nab-sync' },
      reportingComponent: 'nab-sync',
      reportingInstance: 'pod-1_uuid',
    });
    expect(recorder.counters).toEqual({ sent: 1, aggregated: 0, dropped: 0, failed: 0, waiting: 0 });
  });

  it('about a Namespace is in that namespace, where its people can read it', async () => {
    const { clock, api, recorder } = setUp();
    recorder.record({ ...fact, regarding: { apiVersion: 'v1', kind: 'Namespace', name: 'team-a' } });
    await clock.advance(0);
    expect([...api.events.keys()]).toEqual([expect.stringMatching(/^team-a\/team-a\./)]);
    expect(api.only['involvedObject']).toEqual({
      apiVersion: 'v1',
      kind: 'Namespace',
      namespace: 'team-a',
      name: 'team-a',
    });
  });

  it('about another cluster-scoped object is in default', async () => {
    const { clock, api, recorder } = setUp();
    recorder.record({ ...fact, regarding: { apiVersion: 'x.io/v1', kind: 'Namespace', name: 'y' } });
    await clock.advance(0);
    expect([...api.events.keys()]).toEqual([expect.stringMatching(/^default\/y\./)]);
    expect(api.only['involvedObject']).toEqual({ apiVersion: 'x.io/v1', kind: 'Namespace', name: 'y' });
  });

  it.each([
    ['a name at the limit', 'n'.repeat(253)],
    ['dots where the name is cut', `${'n'.repeat(199)}.${'m'.repeat(53)}`],
    ['no name', ''],
    ['a name in capitals', 'DAILY'],
    ['a name that is a path', '../../secrets'],
    ['a name with a null byte and emoji', 'a\0😀'],
  ])('has a legal name for an object with %s', async (_, name) => {
    const { clock, api, recorder } = setUp();
    recorder.record(about(name));
    await clock.advance(0);
    const eventName = stringAt(objectAt(api.only, 'metadata'), 'name') ?? '';
    expect(eventName).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
    expect(eventName.length).toBeLessThanOrEqual(253);
  });

  it('has another name for another object, reason or key', async () => {
    const { clock, api, recorder } = setUp();
    const { regarding } = fact;
    recorder.record(fact);
    recorder.record({ ...fact, reason: 'Other' });
    recorder.record({ ...fact, dedupeKey: 'backup-2' });
    recorder.record({ ...fact, regarding: { ...regarding, name: 'weekly' } });
    recorder.record({ ...fact, regarding: { ...regarding, kind: 'Other' } });
    recorder.record({ ...fact, regarding: { ...regarding, namespace: 'team-b' } });
    // The parts are told apart, not run together.
    recorder.record({ ...fact, reason: `${fact.reason}backup-`, dedupeKey: '1' });
    await clock.advance(0);
    expect(api.events.size).toBe(7);
  });

  it.each(['', '.', '..', 'a/b', 'A', 'n'.repeat(64), 'a\nb'])(
    'for a namespace that cannot exist (%j) is not sent',
    async (namespace) => {
      const { clock, api, recorder } = setUp();
      recorder.record({ ...fact, regarding: { ...fact.regarding, namespace } });
      await clock.advance(0);
      expect(api.requests).toEqual([]);
      expect(recorder.counters).toMatchObject({ failed: 1, sent: 0 });
    },
  );

  it('has a message of one printable line and at most 1,024 bytes, no character cut in two', async () => {
    const { clock, api, recorder } = setUp();
    recorder.record({ ...fact, message: `a\u001b[31m\nb\u202e${'é😀'.repeat(5_000)}` });
    await clock.advance(0);
    const message = stringAt(api.only, 'message') ?? '';
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1_024);
    expect(Buffer.byteLength(message)).toBeGreaterThan(1_010);
    expect(message).toMatch(/^a \[31m b (é😀)+é?…$/u);
    expect(message.isWellFormed()).toBe(true);
  });

  it('has a reason and an instance of at most 128 characters', async () => {
    const { clock, api, another } = setUp();
    another('i'.repeat(300)).record({ ...fact, reason: 'R'.repeat(300) });
    await clock.advance(0);
    expect(api.only).toMatchObject({ reason: 'R'.repeat(128), reportingInstance: 'i'.repeat(128) });
  });
});

describe('the same fact', () => {
  it('told again is one event whose count and time go up (field case D13)', async () => {
    const { clock, api, recorder } = setUp();
    for (let time = 0; time < 3; time += 1) {
      recorder.record(fact);
      await clock.advance(60_000);
    }
    expect(api.only).toMatchObject({
      count: 3,
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:02:00Z',
    });
    expect(recorder.counters).toMatchObject({ sent: 1, aggregated: 2 });
  });

  it('told again after a restart raises the count that the server has', async () => {
    const { clock, api, recorder, another } = setUp();
    recorder.record(fact);
    await clock.advance(1_000);
    recorder.record(fact);
    await clock.advance(1_000);
    const next = another('pod-2_uuid');
    next.record(fact);
    await clock.advance(1_000);
    expect(api.only).toMatchObject({ count: 3, reportingInstance: 'pod-2_uuid' });
    expect(next.counters).toMatchObject({ sent: 0, aggregated: 1 });
  });

  it('told by two writers at once is one event with count 2', async () => {
    const { clock, api, recorder, another } = setUp();
    api.latencyMs = 100;
    recorder.record(fact);
    another('pod-2_uuid').record(fact);
    await clock.advance(1_000);
    expect(api.only).toMatchObject({ count: 2 });
  });

  it('told again while it waits costs no further request', async () => {
    const { clock, api, recorder } = setUp();
    for (let time = 0; time < 5; time += 1) recorder.record({ ...fact, message: `the ${time}th` });
    await clock.advance(0);
    expect(api.requests).toHaveLength(1);
    expect(api.only).toMatchObject({ count: 5, message: 'the 4th' });
    expect(recorder.counters).toMatchObject({ sent: 5 });
  });

  it('told again while it is under way waits for that to end', async () => {
    const { clock, api, recorder } = setUp();
    api.latencyMs = 1_000;
    recorder.record(fact);
    await clock.advance(500);
    recorder.record(fact);
    await clock.advance(2_000);
    expect(api.requests.map(({ verb, at }) => [verb, at])).toEqual([
      ['create', 0],
      ['patch', 1_000],
    ]);
    expect(api.only).toMatchObject({ count: 2 });
  });

  it('about an object that was made anew points at the new one', async () => {
    const { clock, api, recorder } = setUp();
    recorder.record(fact);
    await clock.advance(0);
    recorder.record({ ...fact, message: 'Again.', regarding: { ...fact.regarding, uid: 'u2', resourceVersion: '7' } });
    await clock.advance(0);
    expect(api.only).toMatchObject({
      count: 2,
      message: 'Again.',
      involvedObject: { kind: 'NonAdminBackup', uid: 'u2', resourceVersion: '7' },
    });
  });

  it('told again after thousands of others still raises the count', async () => {
    const { clock, api, recorder } = setUp({ burst: 10_000 });
    recorder.record(fact);
    for (let number = 0; number < 4_096; number += 1) recorder.record(about(`nab-${number}`));
    await clock.advance(0);
    recorder.record(fact);
    await clock.advance(0);
    expect(api.events.size).toBe(4_097);
    // Its count was forgotten here, so the server was asked.
    expect(api.requests.slice(-3).map(({ verb }) => verb)).toEqual(['create', 'patch', 'patch']);
    expect([...api.events.values()][0]).toMatchObject({ count: 2 });
  });

  it('told again after the event has expired makes it anew', async () => {
    const { clock, api, recorder } = setUp();
    recorder.record(fact);
    await clock.advance(0);
    api.events.clear();
    recorder.record(fact);
    await clock.advance(0);
    expect(api.only).toMatchObject({ count: 1 });
    expect(recorder.counters).toMatchObject({ sent: 2 });
  });

  it.each([undefined, null, 'many', -1, 1.5])('copes with an event whose count is %j', async (count) => {
    const { clock, api, recorder, another } = setUp();
    recorder.record(fact);
    await clock.advance(0);
    for (const [key, event] of api.events) api.events.set(key, { ...event, count });
    another('pod-2_uuid').record(fact);
    await clock.advance(0);
    expect(api.only).toMatchObject({ count: 2 });
  });

  it('whose first try was carried out without an answer counts once', async () => {
    const { clock, api, recorder } = setUp();
    let tries = 0;
    api.fate = () => (tries++ === 0 ? 'unanswered' : 'answered');
    recorder.record(fact);
    await clock.advance(20_000);
    expect(api.only).toMatchObject({ count: 1 });
    expect(recorder.counters).toMatchObject({ sent: 1, failed: 0, waiting: 0 });
  });
});

describe('bounds', () => {
  it('pace: a burst at once, then so many a second', async () => {
    const { clock, api, recorder } = setUp({ perSecond: 10, burst: 50 });
    for (let number = 0; number < 100; number += 1) recorder.record(about(`nab-${number}`));
    await clock.advance(0);
    expect(api.requests.length).toBeGreaterThanOrEqual(50);
    expect(api.requests.length).toBeLessThanOrEqual(51);
    await clock.advance(1_000);
    expect(api.requests.length).toBeGreaterThanOrEqual(60);
    expect(api.requests.length).toBeLessThanOrEqual(61);
    await clock.advance(4_000);
    expect(recorder.counters).toMatchObject({ sent: 100, waiting: 0 });
    // The second worker may have waited for its turn in vain.
    await clock.advance(100);
    expect(clock.sleeping).toBe(0);
  });

  it('queue: what goes beyond it is dropped, counted, and logged once', async () => {
    const { log, lines } = listening();
    const { clock, api, recorder } = setUp({ queueLimit: 10, log });
    for (let number = 0; number < 1_000; number += 1) recorder.record(about(`nab-${number}`));
    await clock.advance(0);
    expect(api.events.size).toBe(10);
    expect(recorder.counters).toMatchObject({ sent: 10, dropped: 990 });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ msg: 'events dropped', reason: 'the queue is full' });
  });

  it('concurrency: two at a time', async () => {
    const { clock, api, recorder } = setUp();
    api.latencyMs = 100;
    for (let number = 0; number < 20; number += 1) recorder.record(about(`nab-${number}`));
    await clock.advance(10_000);
    expect(api.events.size).toBe(20);
    expect(api.mostAtOnce).toBe(2);
  });

  it('deadline: a request that hangs is given up, and its event tried again', async () => {
    const { clock, api, recorder } = setUp();
    let tries = 0;
    api.fate = () => (tries++ === 0 ? 'hangs' : 'answered');
    recorder.record(fact);
    await clock.advance(4_999);
    expect(api.atOnce).toBe(1);
    await clock.advance(10_000);
    expect(api.atOnce).toBe(0);
    expect(recorder.counters).toMatchObject({ sent: 1, failed: 0 });
  });

  it('tries: after four it is given up', async () => {
    const { clock, api, recorder } = setUp();
    api.fate = () => 'ServerError';
    recorder.record(fact);
    await clock.advance(600_000);
    expect(api.requests).toHaveLength(4);
    expect(recorder.counters).toMatchObject({ failed: 1, waiting: 0 });
    expect(clock.sleeping).toBe(0);
  });

  it('rate under an outage: all wait together, ever longer', async () => {
    const { clock, api, recorder } = setUp();
    api.fate = () => 'Unreachable';
    for (let number = 0; number < 500; number += 1) recorder.record(about(`nab-${number}`));
    await clock.advance(120_000);
    expect(api.requests.length).toBeLessThan(60);
    api.fate = () => 'answered';
    await clock.advance(120_000);
    expect(recorder.counters.sent).toBeGreaterThan(480);
  });

  it('Retry-After is honoured', async () => {
    const { clock, api, recorder } = setUp();
    const client: EventClient = {
      patch: api.patch,
      create: (...request) => {
        if (clock.now > 0) return api.create(...request);
        return Promise.reject(
          new KubeError({
            code: 'Throttled',
            verb: 'create',
            resource: 'events',
            message: '429',
            retryAfterMs: 30_000,
          }),
        );
      },
    };
    const throttled = new EventRecorder({ client, log: silent, component: 'c', instance: 'i', clock: clock.process() });
    throttled.record(fact);
    await clock.advance(29_999);
    expect(api.requests).toHaveLength(0);
    await clock.advance(20_000);
    expect(throttled.counters).toMatchObject({ sent: 1 });
    expect(recorder.counters.sent).toBe(0);
  });

  it.each([
    ['queueLimit', 0],
    ['concurrency', 0.5],
    ['perSecond', 0],
    ['burst', Number.NaN],
    ['requestTimeoutMs', -1],
  ])('%s of %d is refused', (name, value) => {
    expect(() => setUp({ [name]: value })).toThrow(RangeError);
  });
});

describe('failures', () => {
  it.each(['Forbidden', 'NamespaceNotFound', 'NamespaceTerminating', 'Invalid', 'TooLarge'] as const)(
    '%s is final for that event, logged once, and holds up nobody',
    async (code) => {
      const { log, lines } = listening();
      const { clock, api, recorder } = setUp({ log });
      api.fate = () => code;
      for (let number = 0; number < 20; number += 1) recorder.record(about(`nab-${number}`));
      await clock.advance(0);
      expect(api.requests).toHaveLength(20);
      expect(recorder.counters).toMatchObject({ failed: 20, waiting: 0 });
      expect(lines).toHaveLength(1);
      expect(lines[0]).toMatchObject({ msg: 'events could not be written', reason: code, events: 1 });
      api.fate = () => 'answered';
      recorder.record(fact);
      await clock.advance(0);
      expect(recorder.counters).toMatchObject({ sent: 1 });
    },
  );

  it('that go on are logged again after ten minutes, with their number', async () => {
    const { log, lines } = listening();
    const { clock, api, recorder } = setUp({ log });
    api.fate = () => 'Forbidden';
    for (let minute = 0; minute < 11; minute += 1) {
      recorder.record(about(`nab-${minute}`));
      await clock.advance(60_000);
    }
    expect(lines.map(({ events }) => events)).toEqual([1, 10]);
  });

  it('of a patch on a namespace that is gone ends with the create that fails too', async () => {
    const { clock, api, recorder } = setUp();
    recorder.record(fact);
    await clock.advance(0);
    api.fate = (verb) => (verb === 'create' ? 'NamespaceNotFound' : 'NotFound');
    recorder.record(fact);
    await clock.advance(60_000);
    expect(api.requests.map(({ verb }) => verb)).toEqual(['create', 'patch', 'create']);
    expect(recorder.counters).toMatchObject({ sent: 1, failed: 1 });
  });
});

describe('the end', () => {
  it('flush waits until all is through, at the usual pace', async () => {
    const { clock, recorder } = setUp({ perSecond: 10, burst: 1 });
    for (let number = 0; number < 10; number += 1) recorder.record(about(`nab-${number}`));
    let flushed: boolean | undefined;
    void recorder.flush(5_000).then((result) => (flushed = result));
    await clock.advance(800);
    expect(flushed).toBeUndefined();
    await clock.advance(200);
    expect(flushed).toBe(true);
    expect(recorder.counters).toMatchObject({ sent: 10 });
    expect(clock.sleeping).toBe(0);
  });

  it('flush gives up at its deadline and drops nothing', async () => {
    const { clock, api, recorder } = setUp();
    api.fate = () => 'hangs';
    recorder.record(fact);
    let flushed: boolean | undefined;
    void recorder.flush(1_000).then((result) => (flushed = result));
    await clock.advance(1_000);
    expect(flushed).toBe(false);
    expect(recorder.counters).toMatchObject({ dropped: 0, waiting: 1 });
  });

  it('flush with nothing to do returns at once', async () => {
    const { clock, recorder } = setUp();
    await expect(recorder.flush(60_000)).resolves.toBe(true);
    expect(clock.sleeping).toBe(0);
  });

  it('close sends what waits without regard to the pace', async () => {
    const { clock, recorder } = setUp({ perSecond: 1, burst: 1 });
    for (let number = 0; number < 200; number += 1) recorder.record(about(`nab-${number}`));
    let closed = false;
    void recorder.close(5_000).then(() => (closed = true));
    await clock.advance(0);
    expect(closed).toBe(true);
    expect(recorder.counters).toMatchObject({ sent: 200, dropped: 0 });
    expect(clock.sleeping).toBe(0);
  });

  it('close drops and counts what cannot be sent in time, and what is told afterwards', async () => {
    const { clock, api, recorder } = setUp();
    api.fate = () => 'hangs';
    for (let number = 0; number < 5; number += 1) recorder.record(about(`nab-${number}`));
    let closed = false;
    void recorder.close(2_000).then(() => (closed = true));
    await clock.advance(1_999);
    expect(closed).toBe(false);
    await clock.advance(1);
    expect(closed).toBe(true);
    recorder.record(fact);
    expect(recorder.counters).toEqual({ sent: 0, aggregated: 0, failed: 0, dropped: 6, waiting: 0 });
    await clock.advance(60_000);
    expect(api.requests).toHaveLength(2);
    expect(clock.sleeping).toBe(0);
  });

  it('close may be called twice', async () => {
    const { recorder } = setUp();
    await Promise.all([recorder.close(), recorder.close(10)]);
    await recorder.close();
  });
});
