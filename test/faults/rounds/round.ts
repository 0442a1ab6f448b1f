import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { leaseResource } from '../../../src/kube/lease-record.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import type { ServerName } from '../../support/control-plane/control-plane.ts';
import { endServer } from '../etcd-copies.ts';
import { Replica } from '../replica.ts';
import { oadpNamespace } from '../stage.ts';
import type { Stage } from '../stage.ts';
import { chanceOf, clientPageLimit } from './scenario.ts';
import type { ReplicaAction, Scenario, ServerAction } from './scenario.ts';
import { readFacts, wrongEvents, wrongNabs, wrongRequests } from './verdict.ts';
import { World } from './world.ts';

/** How long after everything was mended the state may take to be right: a Lease that expires, deadlines, a few back-offs. */
const patienceMs = 90_000;
/** For so long nothing is written once the state is right. */
const quietMs = 1_500;
/** Most requests of a replica in that time: watches that end, and the Lease. */
const quietRequests = 20;
/** Lists after late deadlines, events and a second writer's last looks are over by then. */
const quietWithinMs = 15_000;
/**
 * Most requests of a replica while the API server is away: those that a pass had begun, and then a few a second from seven
 * reflectors, the election and events.
 */
const outageRequests = { atOnce: 60, aSecond: 12 };

export interface RoundReport {
  /** What was not as it has to be, each in one line; empty if the round is won. */
  readonly problems: readonly string[];
  /** From the moment when everything was mended until the state was right; undefined if it never was. */
  readonly convergedMs: number | undefined;
  /** NABs in the end. */
  readonly nabs: number;
  /** Most requests a second of one replica while the API server was away. */
  readonly outageRate: number;
  /** What may explain a problem, by file name. */
  readonly evidence: Readonly<Record<string, string>>;
}

/** Plays a scenario on a stage that is as it was when it was opened, and judges what came of it. */
export async function playRound(stage: Stage, scenario: Scenario): Promise<RoundReport> {
  const round = new Round(stage, scenario);
  try {
    return await round.play();
  } finally {
    await round.close();
  }
}

class Round {
  readonly #stage: Stage;
  readonly #scenario: Scenario;
  readonly #world: World;
  readonly #replicas: Replica[] = [];
  /** Aborted when everything is to be mended: whatever is broken for a while is so no longer. */
  readonly #mend = new AbortController();
  readonly #lanes = new Map<string, Promise<void>>();
  readonly #problems: string[] = [];
  readonly #outages: { readonly from: number; to: number }[] = [];
  #hasCopy = false;
  #nabs = 0;
  /** Processes started: each may tell again what it finds. */
  #starts = 0;

  constructor(stage: Stage, scenario: Scenario) {
    this.#stage = stage;
    this.#scenario = scenario;
    this.#world = new World(stage, scenario);
  }

  async play(): Promise<RoundReport> {
    await this.#createReplicas();
    if (this.#scenario.early) await this.#startReplicas();
    await this.#world.build();
    await this.#startReplicas();
    await this.#playSteps();
    await this.#mendAll();
    const convergedMs = await this.#untilRight();
    if (convergedMs !== undefined) await this.#judgeQuiet();
    const writes = this.#count(({ resource, verb }) => resource === 'nonadminbackups' && isWrite(verb));
    this.#problems.push(...(await wrongEvents(this.#stage.objects, writes, this.#starts)));
    await this.#stopReplicas();
    for (const { proxy } of this.#replicas) this.#problems.push(...wrongRequests(proxy.requests));
    this.#judgeLogs();
    const outageRate = this.#judgeOutages();
    return { problems: this.#problems, convergedMs, nabs: this.#nabs, outageRate, evidence: await this.#evidence() };
  }

  async close(): Promise<void> {
    this.#mend.abort();
    await Promise.allSettled(this.#replicas.map((replica) => replica.close()));
  }

  async #createReplicas(): Promise<void> {
    const { replicas, leaderElect, syncPeriod, pageLimit, chance } = this.#scenario;
    for (let index = 0; index < replicas; index += 1) {
      const replica = await Replica.create(this.#stage, {
        args: [`--sync-period=${syncPeriod}s`, ...(leaderElect ? [] : ['--no-leader-elect'])],
        random: chanceOf(chance + index),
        ...(pageLimit === clientPageLimit ? {} : { pageLimit }),
      });
      this.#replicas.push(replica);
    }
  }

  async #startReplicas(): Promise<void> {
    for (const replica of this.#replicas) await this.#start(replica);
  }

  async #start(replica: Replica): Promise<void> {
    if (!replica.running) this.#starts += 1;
    await replica.start();
  }

  /** Things of one lane happen one after the other; lanes do not wait for each other. */
  #inLane(lane: string, what: string, step: () => Promise<void>): void {
    const before = this.#lanes.get(lane) ?? Promise.resolve();
    const after = before.then(async () => {
      try {
        await step();
      } catch (error) {
        this.#problems.push(`the test itself failed at ${what}: ${String(error)}`);
      }
    });
    this.#lanes.set(lane, after);
  }

  async #playSteps(): Promise<void> {
    const began = performance.now();
    const until = (atMs: number): Promise<void> => sleep(Math.max(0, began + atMs - performance.now()));
    for (const { atMs, step } of this.#scenario.steps) {
      await until(atMs);
      const { on, action } = step;
      if (on === 'world') {
        this.#inLane('world', action.do, () => this.#world.perform(action));
      } else if (on === 'servers') {
        this.#inLane('servers', action.do, () => this.#harmServers(action));
      } else {
        const index = step.replica % this.#replicas.length;
        const replica = this.#replicas[index];
        // Faults come and go side by side; a process can be in one state only.
        const lane = ['kill', 'restart', 'freeze'].includes(action.do)
          ? `process ${index}`
          : `network ${this.#lanes.size}`;
        if (replica !== undefined) this.#inLane(lane, action.do, () => this.#harmReplica(replica, action));
      }
    }
    await until(this.#scenario.ms);
  }

  /** Resolves after so long, or as soon as everything is to be mended. */
  async #for(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#mend.signal }).catch(() => undefined);
  }

  async #harmServers(action: ServerAction): Promise<void> {
    if (this.#mend.signal.aborted) return;
    const { controlPlane, etcd } = this.#stage;
    switch (action.do) {
      case 'kill': {
        const { server } = action;
        const outage = { from: performance.now(), to: Infinity };
        if (server === 'kube-apiserver') this.#outages.push(outage);
        await endServer(controlPlane, server, action.gracefully ? 'SIGTERM' : 'SIGKILL');
        await this.#for(action.ms);
        outage.to = performance.now();
        await controlPlane.startAgain(server);
        return;
      }
      case 'freeze':
        controlPlane.pause(action.server);
        await this.#for(action.ms);
        controlPlane.resume(action.server);
        return;
      case 'copyEtcd':
        await etcd.take('round');
        this.#hasCopy = true;
        return;
      case 'putEtcdBack':
        if (this.#hasCopy) await etcd.putBack('round', action.gracefully ? 'SIGTERM' : 'SIGKILL');
        return;
    }
  }

  async #harmReplica(replica: Replica, action: ReplicaAction): Promise<void> {
    if (this.#mend.signal.aborted) return;
    switch (action.do) {
      case 'kill':
        await replica.kill();
        await this.#for(action.ms);
        await this.#start(replica);
        return;
      case 'restart':
        await this.#stop(replica);
        await this.#for(action.ms);
        await this.#start(replica);
        return;
      case 'freeze':
        replica.freeze();
        await this.#for(action.ms);
        replica.thaw();
        return;
      case 'fault': {
        const injected = replica.proxy.inject(action.rule);
        await this.#for(action.ms);
        injected.remove();
        return;
      }
      case 'stall':
        replica.proxy.stall();
        await this.#for(action.ms);
        replica.proxy.unstall();
        return;
      case 'resetAll':
        replica.proxy.resetAll();
        return;
      case 'rotateToken':
        await replica.rotateToken();
        return;
      case 'expireToken':
        replica.expireToken();
        return;
    }
  }

  /** All servers run, all replicas run, no fault is in force, and the world stands still. */
  async #mendAll(): Promise<void> {
    this.#mend.abort();
    await this.#lanes.get('servers');
    const { controlPlane } = this.#stage;
    for (const server of ['etcd', 'kube-apiserver'] as const) await this.#revive(server);
    await controlPlane.untilReady();
    await this.#lanes.get('world');
    await this.#world.perform({ do: 'stampLocations' });
    for (const replica of this.#replicas) replica.proxy.heal();
    await Promise.all(this.#lanes.values());
    for (const replica of this.#replicas) {
      replica.thaw();
      replica.proxy.heal();
    }
    await this.#startReplicas();
  }

  /** A server that has ended by itself, for instance since the other one was away for long, is started as a kubelet would. */
  async #revive(server: ServerName): Promise<void> {
    try {
      await this.#stage.controlPlane.startAgain(server);
    } catch {
      // It runs.
    }
  }

  /** How long it took until somebody led and every NAB was as it has to be; undefined if that did not come. */
  async #untilRight(): Promise<number | undefined> {
    const began = performance.now();
    for (;;) {
      const facts = await readFacts(this.#stage.objects);
      this.#nabs = facts.nabs.length;
      const wrong = wrongNabs(facts, this.#world);
      const tookMs = performance.now() - began;
      if (wrong.length === 0 && this.#isLed) return tookMs;
      if (tookMs > patienceMs) {
        this.#problems.push(...(wrong.length === 0 ? ['nobody leads'] : wrong.slice(0, 20)));
        return undefined;
      }
      await sleep(200);
    }
  }

  /** A state that is right is soon not touched any more: what was under way ends, and nothing comes after it. */
  async #judgeQuiet(): Promise<void> {
    const deadline = performance.now() + quietWithinMs;
    for (;;) {
      const before = this.#replicas.map(({ proxy }) => proxy.requests.length);
      await sleep(quietMs);
      const since = this.#replicas.map(({ proxy }, index) => proxy.requests.slice(before[index]));
      const writes = since.flat().filter(({ verb, resource }) => resource === 'nonadminbackups' && isWrite(verb));
      const most = Math.max(...since.map(({ length }) => length));
      if (writes.length === 0 && most <= quietRequests) break;
      if (performance.now() < deadline) continue;
      this.#problems.push(
        `${writes.length} writes and ${most} requests in ${quietMs} ms although all was as it has to be`,
      );
      break;
    }
    this.#problems.push(...wrongNabs(await readFacts(this.#stage.objects), this.#world));
  }

  async #stopReplicas(): Promise<void> {
    for (const [index, replica] of this.#replicas.entries()) {
      // One that does not lead leaves the Lease as it found it, for instance with a holder that was killed.
      const led = replica.leading;
      const exit = await replica.stop();
      if (exit?.exitCode !== 0)
        this.#problems.push(`replica ${index} exited with ${String(exit?.exitCode)} on SIGTERM`);
      if (led && (await this.#leaseHolder()) === replica.identity) {
        this.#problems.push(`replica ${index} did not give the Lease back`);
      }
    }
  }

  async #leaseHolder(): Promise<string> {
    const ref = { namespace: oadpNamespace, name: 'nab-sync' };
    const lease = leaseShape.safeParse(await this.#stage.objects.get(leaseResource, ref));
    return lease.data?.spec.holderIdentity ?? '';
  }

  /** Whether a process that runs now is at work: before that, a state that is right proves nothing. */
  get #isLed(): boolean {
    return !this.#scenario.leaderElect || this.#replicas.some(({ leading }) => leading);
  }

  /** A restart in the middle of the round: it has to end within its grace, whatever the API does. */
  async #stop(replica: Replica): Promise<void> {
    const exit = await replica.stop();
    if (exit !== undefined && exit.exitCode !== 0) {
      this.#problems.push(`exited with ${String(exit.exitCode)} on SIGTERM: ${exit.stderr.slice(-500)}`);
    }
  }

  #judgeLogs(): void {
    for (const [index, replica] of this.#replicas.entries()) {
      for (const { exitCode, stderr } of replica.unexpectedExits) {
        this.#problems.push(`replica ${index} ended by itself with ${String(exitCode)}: ${stderr.slice(-500)}`);
      }
      // An error in the log is a fault of nab-sync's own: what the API does wrong is at most a warning.
      for (const { level, msg, ...facts } of replica.logLines) {
        if (level === 'error' || level === 'fatal') {
          this.#problems.push(`replica ${index} logged "${msg}" ${JSON.stringify(facts).slice(0, 500)}`);
        }
      }
    }
  }

  #judgeOutages(): number {
    let highest = 0;
    for (const { from, to } of this.#outages) {
      const seconds = (Math.min(to, performance.now()) - from) / 1_000;
      for (const [index, { proxy }] of this.#replicas.entries()) {
        const count = proxy.requests.filter(({ at }) => at >= from && at < to).length;
        if (seconds >= 1) highest = Math.max(highest, count / seconds);
        if (count > outageRequests.atOnce + outageRequests.aSecond * seconds) {
          this.#problems.push(
            `replica ${index} made ${count} requests in ${seconds.toFixed(1)} s without an API server`,
          );
        }
      }
    }
    return highest;
  }

  #count(matches: (request: Replica['proxy']['requests'][number]) => boolean): number {
    return this.#replicas.reduce((sum, { proxy }) => sum + proxy.requests.filter(matches).length, 0);
  }

  async #evidence(): Promise<Record<string, string>> {
    if (this.#problems.length === 0) return {};
    const facts: unknown = await readFacts(this.#stage.objects).catch((error: unknown) => String(error));
    const evidence: Record<string, string> = { 'facts.json': JSON.stringify(facts, undefined, 1) };
    for (const [index, replica] of this.#replicas.entries()) {
      evidence[`replica-${index}.log`] = replica.log;
      evidence[`requests-${index}.jsonl`] = replica.proxy.requests
        .map((request) => JSON.stringify({ ...request, time: new Date(performance.timeOrigin + request.at) }))
        .join('\n');
    }
    return evidence;
  }
}

function isWrite(verb: string): boolean {
  return verb === 'create' || verb === 'update' || verb === 'patch';
}

const leaseShape: z.ZodType<{ spec: { holderIdentity: string } }, JsonObject | undefined> = z.object({
  spec: z.object({ holderIdentity: z.string().default('') }),
});
