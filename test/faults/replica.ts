import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { inject } from 'vitest';
import { z } from 'zod';
import { startNabSync } from '../support/nab-sync.ts';
import type { NabSyncExit, NabSyncProcess } from '../support/nab-sync.ts';
// Declares what the run's setup provides.
import type {} from './global-setup.ts';
import type { FaultProxy } from './fault-proxy.ts';
import { persist } from './persist.ts';
import { oadpNamespace } from './stage.ts';
import type { Stage } from './stage.ts';

export interface ReplicaOptions {
  readonly args?: readonly string[];
  readonly random?: () => number;
  readonly pageLimit?: number;
}

/** A line of nab-sync's log. */
export type LogLine = z.infer<typeof logLine>;

const identified = z.object({ identity: z.string() });

const logLine = z.looseObject({ level: z.union([z.string(), z.number()]), msg: z.string().catch('') });

/**
 * One nab-sync with a way of its own to the API server, so that faults can be done to it alone. It is started as often as
 * it is needed; what all its processes said stays.
 */
export class Replica {
  readonly proxy: FaultProxy;
  readonly #stage: Stage;
  readonly #args: readonly string[];
  readonly #kubeconfig: string;
  readonly #tokenFile: string;
  #token: string;
  #process: NabSyncProcess | undefined;
  /** The latest process, whether it is to run or to end. */
  #latest: NabSyncProcess | undefined;
  #frozen = false;
  /** Of processes that have ended. */
  readonly #logs: string[] = [];
  /** Ends that nobody had asked for. */
  readonly unexpectedExits: NabSyncExit[] = [];

  private constructor(parts: {
    stage: Stage;
    proxy: FaultProxy;
    args: readonly string[];
    kubeconfig: string;
    tokenFile: string;
    token: string;
  }) {
    this.#stage = parts.stage;
    this.proxy = parts.proxy;
    this.#args = parts.args;
    this.#kubeconfig = parts.kubeconfig;
    this.#tokenFile = parts.tokenFile;
    this.#token = parts.token;
  }

  /** Makes the replica; its process is not started yet. */
  static async create(stage: Stage, options: ReplicaOptions = {}): Promise<Replica> {
    const { args = [], ...proxyOptions } = options;
    const proxy = await stage.proxy(proxyOptions);
    const token = await stage.token();
    const tokenFile = await stage.file('token', token);
    const kubeconfig = await stage.kubeconfig(proxy, tokenFile);
    return new Replica({ stage, proxy, args, kubeconfig, tokenFile, token });
  }

  get running(): boolean {
    return this.#process !== undefined;
  }

  get frozen(): boolean {
    return this.#frozen;
  }

  /** stderr of all its processes so far. */
  get log(): string {
    return [...this.#logs, this.#process?.stderr ?? ''].join('');
  }

  /** `log`, read. A line that is no JSON, such as the last one of a killed process, is left out. */
  get logLines(): LogLine[] {
    return this.log.split('\n').flatMap((text) => {
      try {
        const { success, data } = logLine.safeParse(JSON.parse(text));
        return success ? [data] : [];
      } catch {
        return [];
      }
    });
  }

  /** By what name its latest process asks for the Lease; undefined before it has said so. */
  get identity(): string | undefined {
    const started = this.logLines.findLast(({ msg }) => msg === 'nab-sync starts');
    return identified.safeParse(started).data?.identity;
  }

  /** Whether its latest process holds the Lease, as far as it has said. */
  get leading(): boolean {
    const words = ['nab-sync starts', 'became leader', 'leadership lost', 'leadership ended'];
    const last = this.logLines.findLast(({ msg }) => words.includes(msg));
    return this.running && last?.msg === 'became leader';
  }

  async start(): Promise<void> {
    if (this.#process !== undefined) return;
    const started = await startNabSync(['run', ...this.#args], {
      kubeconfig: this.#kubeconfig,
      oadpNamespace,
      program: inject('faultsBundle'),
      env: { LOG_FORMAT: 'json', LOG_LEVEL: 'debug' },
    });
    this.#process = started;
    this.#latest = started;
    this.#frozen = false;
    void started.exited.then((exit) => {
      this.#logs.push(exit.stderr);
      if (this.#process !== started) return;
      this.#process = undefined;
      this.unexpectedExits.push(exit);
    });
  }

  /** SIGKILL: as if its machine had failed. */
  async kill(): Promise<void> {
    const killed = this.#forget();
    killed?.signal('SIGKILL');
    await killed?.exited;
  }

  /** SIGTERM, and wait for the end. Undefined if it does not run. */
  async stop(): Promise<NabSyncExit | undefined> {
    this.thaw();
    const process = this.#forget();
    if (process === undefined) return undefined;
    // Node itself dies of a SIGTERM that comes before the program has begun.
    await Promise.race([process.exited, begun(process)]);
    return await process.stop();
  }

  /** Also to a process that is about to end. */
  signal(signal: NodeJS.Signals): void {
    this.#latest?.signal(signal);
  }

  /** SIGSTOP: it does nothing, and its connections stay open. */
  freeze(): void {
    this.#process?.signal('SIGSTOP');
    this.#frozen = this.#process !== undefined;
  }

  thaw(): void {
    this.#process?.signal('SIGCONT');
    this.#frozen = false;
  }

  /** Gives it a new token, in the file from which it reads it, and has the old one refused from now on. */
  async rotateToken(): Promise<void> {
    const old = this.#token;
    this.#token = await persist(() => this.#stage.token());
    await writeFile(this.#tokenFile, this.#token);
    if (old !== this.#token) this.proxy.refuse(old);
  }

  /** Has its present token refused, as when the kubelet is late with the next one, until the proxy is healed. */
  expireToken(): void {
    this.proxy.refuse(this.#token);
  }

  /** Ends process and proxy. */
  async close(): Promise<void> {
    await this.kill();
    await this.proxy.close();
  }

  /** Whatever the process does from here on is asked for. */
  #forget(): NabSyncProcess | undefined {
    const process = this.#process;
    this.#process = undefined;
    this.#frozen = false;
    return process;
  }
}

async function begun(process: NabSyncProcess): Promise<void> {
  while (!process.stderr.includes('nab-sync starts')) await sleep(20);
}
