import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { JsonObject } from '../../src/kube/resource.ts';
import { resourcePath } from '../../src/kube/resource.ts';
import { nonAdminBackups } from '../../src/oadp/kinds.ts';
import type { PooledApi } from './pooled-api.ts';

/** The NABs of one namespace, or of all. */
interface Tally {
  readonly visible: ReadonlySet<string>;
  readonly complete: ReadonlySet<string>;
}

interface MutableTally {
  readonly visible: Set<string>;
  readonly complete: Set<string>;
}

interface Waiter {
  readonly holds: () => boolean;
  readonly resolve: (at: number) => void;
}

const watchEvent = z.object({
  type: z.string(),
  object: z.object({
    metadata: z.object({ name: z.string(), namespace: z.string(), resourceVersion: z.string() }),
    status: z
      .object({ phase: z.string().optional(), veleroBackup: z.object({ spec: z.unknown().optional() }).optional() })
      .optional(),
  }),
});

const none: Tally = { visible: new Set(), complete: new Set() };

/**
 * Sees NABs as a user's watch does: visible when they come, complete when their status is there. Times are those at which
 * the event arrived here, on the clock of `performance.now()`. One stream for the whole run; nothing is polled.
 */
export class NabObserver {
  readonly #byNamespace = new Map<string, MutableTally>();
  readonly #all: MutableTally = { visible: new Set(), complete: new Set() };
  readonly #waiters = new Set<Waiter>();
  readonly #stop = new AbortController();
  readonly #api: PooledApi;

  private constructor(api: PooledApi) {
    this.#api = api;
  }

  /** There must be no NAB yet. Follows until `close`, which closes the connection too. */
  static async open(api: PooledApi): Promise<NabObserver> {
    const observer = new NabObserver(api);
    const list = z
      .object({ metadata: z.object({ resourceVersion: z.string() }), items: z.array(z.unknown()).nullish() })
      .parse(await api.call('GET', `${resourcePath(nonAdminBackups)}?limit=1`));
    if ((list.items ?? []).length > 0) throw new Error('there are NonAdminBackups already');
    void observer.#follow(list.metadata.resourceVersion);
    return observer;
  }

  /** Without a namespace: all. */
  of(namespace?: string): Tally {
    return namespace === undefined ? this.#all : (this.#byNamespace.get(namespace) ?? none);
  }

  /** When it held, looked at after each event; rejects after `timeoutMs`. */
  async until(what: string, timeoutMs: number, holds: () => boolean): Promise<number> {
    if (holds()) return performance.now();
    const { promise, resolve } = Promise.withResolvers<number>();
    const waiter = { holds, resolve };
    this.#waiters.add(waiter);
    const giveUp = new AbortController();
    try {
      return await Promise.race([
        promise,
        sleep(timeoutMs, undefined, { signal: giveUp.signal }).then(() => {
          const { visible, complete } = this.#all;
          throw new Error(
            `not within ${timeoutMs / 1000} s: ${what} (now ${visible.size} visible, ${complete.size} complete)`,
          );
        }),
      ]);
    } finally {
      giveUp.abort();
      this.#waiters.delete(waiter);
    }
  }

  async untilVisible(count: number, namespace?: string, timeoutMs = 600_000): Promise<number> {
    return await this.until(`${count} NABs visible`, timeoutMs, () => this.of(namespace).visible.size >= count);
  }

  async untilComplete(count: number, namespace?: string, timeoutMs = 600_000): Promise<number> {
    return await this.until(`${count} NABs complete`, timeoutMs, () => this.of(namespace).complete.size >= count);
  }

  async untilGone(namespace?: string, timeoutMs = 60_000): Promise<void> {
    await this.until('no NABs', timeoutMs, () => this.of(namespace).visible.size === 0);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#api.close();
  }

  async #follow(from: string): Promise<void> {
    const { signal } = this.#stop;
    let resourceVersion = from;
    for (;;) {
      const path = `${resourcePath(nonAdminBackups)}?watch=true&resourceVersion=${resourceVersion}`;
      try {
        for await (const event of this.#api.lines(path, signal)) resourceVersion = this.#take(event) ?? resourceVersion;
      } catch (error) {
        // Waiters time out, and say for what; here it must only be seen.
        if (signal.aborted) return;
        console.error('the observer’s watch broke:', error);
        await sleep(100);
      }
    }
  }

  /** Returns how far the stream has come. */
  #take(event: JsonObject): string | undefined {
    const at = performance.now();
    const { type, object } = watchEvent.parse(event);
    const { namespace, name, resourceVersion } = object.metadata;
    const key = `${namespace}/${name}`;
    let tally = this.#byNamespace.get(namespace);
    if (tally === undefined) {
      tally = { visible: new Set(), complete: new Set() };
      this.#byNamespace.set(namespace, tally);
    }
    const complete = object.status?.phase === 'Created' && object.status.veleroBackup?.spec !== undefined;
    for (const each of [tally, this.#all]) {
      if (type === 'DELETED') each.visible.delete(key);
      else each.visible.add(key);
      if (type !== 'DELETED' && complete) each.complete.add(key);
      else each.complete.delete(key);
    }
    for (const waiter of this.#waiters) if (waiter.holds()) waiter.resolve(at);
    return resourceVersion;
  }
}
