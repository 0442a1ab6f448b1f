import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { KubeClient } from '../../src/kube/client.ts';
import { loadConnection } from '../../src/kube/connection.ts';
import { LeaderElector } from '../../src/kube/leader-elector.ts';
import { objectAt, stringAt } from '../../src/kube/json.ts';
import type { JsonObject } from '../../src/kube/resource.ts';
import { ControlPlane } from '../support/control-plane/control-plane.ts';

/** A fifth of the times of production, so that a take-over takes 3 s and not 15. */
const times = { leaseDurationMs: 3_000, renewDeadlineMs: 1_600, retryPeriodMs: 400, requestTimeoutMs: 1_000 };
/** What a busy machine may add to a take-over. */
const slackMs = 10_000;
const leasePath = '/apis/coordination.k8s.io/v1/namespaces/openshift-adp/leases';
const line = z.object({ what: z.string(), at: z.number() });

/** An elector in a process of its own, and what it told. */
class Candidate {
  readonly told: z.infer<typeof line>[] = [];
  readonly #process: ChildProcess;
  readonly #gone: Promise<unknown>;

  constructor(kubeconfig: string, identity: string) {
    const script = fileURLToPath(new URL('../support/elector-process.ts', import.meta.url));
    this.#process = spawn(process.execPath, [script, kubeconfig, identity, JSON.stringify(times)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#gone = once(this.#process, 'exit');
    const { stdout } = this.#process;
    if (stdout === null) throw new Error('no standard output');
    createInterface(stdout).on('line', (text) => this.told.push(line.parse(JSON.parse(text))));
  }

  send(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  async end(): Promise<void> {
    this.send('SIGKILL');
    await this.#gone;
  }

  get acts(): number[] {
    return this.told.filter(({ what }) => what === 'acts').map(({ at }) => at);
  }

  async untilActing(): Promise<void> {
    await this.until('acts');
  }

  async until(what: string): Promise<void> {
    const told = (): void => {
      expect(this.told.map((one) => one.what)).toContain(what);
    };
    await vi.waitFor(told, { timeout: 15_000, interval: 20 });
  }
}

let controlPlane: ControlPlane;
let directory: string;
let kubeconfig: string;
let client: KubeClient;
let candidates: Candidate[] = [];

beforeAll(async () => {
  controlPlane = await ControlPlane.start({ crds: false });
  directory = await mkdtemp(path.join(tmpdir(), 'nab-sync-test-'));
  kubeconfig = path.join(directory, 'kubeconfig');
  await writeFile(kubeconfig, controlPlane.kubeconfig, { mode: 0o600 });
  client = new KubeClient(loadConnection({ kubeconfig }));
}, 900_000);

afterAll(async () => {
  await client.close();
  await controlPlane.stop();
  await rm(directory, { recursive: true, force: true });
});

beforeEach(async () => {
  await controlPlane.admin.request('POST', '/api/v1/namespaces', { body: { metadata: { name: 'openshift-adp' } } });
  await controlPlane.admin.request('DELETE', `${leasePath}/nab-sync`);
});

afterEach(async () => {
  await Promise.all(candidates.map((candidate) => candidate.end()));
  candidates = [];
});

function start(identity: string): Candidate {
  const candidate = new Candidate(kubeconfig, identity);
  candidates.push(candidate);
  return candidate;
}

/** One that leads, and one that waits and has seen it lead. */
async function leaderAndSecond(): Promise<[Candidate, Candidate]> {
  const leader = start('a');
  await leader.untilActing();
  const second = start('b');
  await second.until('sees a leader');
  expect(second.acts).toEqual([]);
  return [leader, second];
}

async function leaseSpec(): Promise<JsonObject> {
  return objectAt(await controlPlane.admin.call('GET', `${leasePath}/nab-sync`), 'spec');
}

function elector(options: { client?: KubeClient; namespace?: string } = {}): LeaderElector {
  return new LeaderElector({
    client,
    namespace: 'openshift-adp',
    name: 'nab-sync',
    identity: 'here',
    log: pino({ level: 'silent' }),
    ...times,
    ...options,
  });
}

describe('the Lease on a real API server', { timeout: 30_000 }, () => {
  it('is written in a form that the API server takes, and given back (field case C17)', async () => {
    const states: JsonObject[] = [];
    const end = await elector().run({
      signal: AbortSignal.timeout(20_000),
      lead: async () => {
        states.push(await leaseSpec());
        await sleep(times.retryPeriodMs + 200);
        states.push(await leaseSpec());
      },
    });
    expect(end).toEqual({ ended: 'released' });
    const microTime: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    expect(states[0]).toEqual({
      holderIdentity: 'here',
      leaseDurationSeconds: 3,
      leaseTransitions: 0,
      acquireTime: microTime,
      renewTime: microTime,
    });
    expect(states[1]?.['acquireTime']).toBe(states[0]?.['acquireTime']);
    expect(states[1]?.['renewTime']).not.toBe(states[0]?.['renewTime']);
    expect(await leaseSpec()).toMatchObject({ leaseDurationSeconds: 1 });
    expect(stringAt(await leaseSpec(), 'holderIdentity')).toBeUndefined();
  });

  it('would be refused with the three digits of a Date: why the form matters', async () => {
    const body = { metadata: { name: 'other' }, spec: { renewTime: new Date().toISOString() } };
    const { status } = await controlPlane.admin.request('POST', leasePath, { body });
    expect(status).toBe(400);
  });

  it('shows a namespace that does not exist in the state, and leads once it does', async () => {
    const candidate = elector({ namespace: 'later' });
    const stop = new AbortController();
    const run = candidate.run({
      signal: stop.signal,
      lead: async () => {
        await Promise.resolve();
      },
    });
    await vi.waitFor(() => {
      expect(candidate.state.problem).toBe('NamespaceNotFound');
    });
    await controlPlane.admin.call('POST', '/api/v1/namespaces', { body: { metadata: { name: 'later' } } });
    await expect(run).resolves.toEqual({ ended: 'released' });
    expect(candidate.state.problem).toBeUndefined();
  });

  it('shows missing rights in the state, and leads once they are granted', async () => {
    const { admin } = controlPlane;
    await admin.call('POST', '/api/v1/namespaces/openshift-adp/serviceaccounts', {
      body: { metadata: { name: 'nab' } },
    });
    const token = await admin.call('POST', '/api/v1/namespaces/openshift-adp/serviceaccounts/nab/token', { body: {} });
    const file = path.join(directory, 'kubeconfig-nab');
    await writeFile(file, admin.kubeconfigFor({ token: stringAt(objectAt(token, 'status'), 'token') ?? '' }), {
      mode: 0o600,
    });
    const unprivileged = new KubeClient(loadConnection({ kubeconfig: file }));
    try {
      const candidate = elector({ client: unprivileged });
      const run = candidate.run({ signal: AbortSignal.timeout(20_000), lead: () => Promise.resolve() });
      await vi.waitFor(() => {
        expect(candidate.state.problem).toBe('Forbidden');
      });
      const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/openshift-adp';
      await admin.call('POST', `${rbac}/roles`, {
        body: {
          metadata: { name: 'nab' },
          rules: [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] }],
        },
      });
      await admin.call('POST', `${rbac}/rolebindings`, {
        body: {
          metadata: { name: 'nab' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'nab' },
          subjects: [{ kind: 'ServiceAccount', name: 'nab', namespace: 'openshift-adp' }],
        },
      });
      await expect(run).resolves.toEqual({ ended: 'released' });
    } finally {
      await unprivileged.close();
    }
  });
});

describe('two processes', { timeout: 60_000 }, () => {
  it('one leads; killed, the other takes over within lease duration + retry period (field case A10)', async () => {
    const [leader, second] = await leaderAndSecond();
    const killedAt = Date.now();
    leader.send('SIGKILL');
    await second.untilActing();
    const takeOverMs = (second.acts[0] ?? Infinity) - killedAt;
    expect(takeOverMs).toBeLessThan(times.leaseDurationMs + times.retryPeriodMs + slackMs);
    expect(await leaseSpec()).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
  });

  it('one leads; stopped in good order, the other takes over within a retry period', async () => {
    const [leader, second] = await leaderAndSecond();
    const stoppedAt = Date.now();
    leader.send('SIGTERM');
    await second.untilActing();
    expect((second.acts[0] ?? Infinity) - stoppedAt).toBeLessThan(times.retryPeriodMs + slackMs);
    expect(second.acts[0]).toBeGreaterThan(leader.acts.at(-1) ?? Infinity);
    expect(leader.told.at(-1)?.what).toBe('released');
  });

  it('one leads; frozen and thawed after the other took over, it does not act again (field case D10)', async () => {
    const [leader, second] = await leaderAndSecond();
    leader.send('SIGSTOP');
    await second.untilActing();
    leader.send('SIGCONT');
    await leader.until('lost');
    await sleep(500);
    expect(leader.acts.at(-1)).toBeLessThan(second.acts[0] ?? 0);
    expect(second.told.at(-1)?.what).toBe('acts');
  });

  it('neither leads while the API server is frozen, and one does soon after', async () => {
    const [leader, second] = await leaderAndSecond();
    controlPlane.pause('kube-apiserver');
    const pausedAt = Date.now();
    await leader.until('lost');
    // Before anyone else could have taken the Lease for expired.
    expect(leader.acts.at(-1)).toBeLessThan(pausedAt + times.leaseDurationMs);
    controlPlane.resume('kube-apiserver');
    await second.untilActing();
    expect(second.acts[0]).toBeGreaterThan(leader.acts.at(-1) ?? Infinity);
  });
});
