import { setTimeout as sleep } from 'node:timers/promises';
import { createNamespace } from '../support/namespaces.ts';
import * as kinds from '../../src/oadp/kinds.ts';
import { persist } from './persist.ts';
import type { Ledger } from './rounds/verdict.ts';
import { readFacts, wrongNabs } from './rounds/verdict.ts';
import { oadpNamespace } from './stage.ts';
import type { Stage } from './stage.ts';

/** A disaster to recover from: tenants whose namespaces are there again, and completed backups of theirs. */
export class Restore {
  readonly #stage: Stage;
  /** By id, the `namespace/name` of the NAB that is due. */
  readonly #due = new Map<string, string>();
  readonly #ledger: Ledger = {
    premade: new Map(),
    canHaveBeenDue: (label, namespace, name) => this.#due.get(label) === `${namespace}/${name}`,
  };

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** How many NABs are due. */
  get size(): number {
    return this.#due.size;
  }

  /** Makes the admin's location, tenants `team-0` to `team-<tenants - 1>`, and so many backups of each. */
  async prepare({ tenants, backups }: { tenants: number; backups: number }): Promise<void> {
    const { objects, gen } = this.#stage;
    await objects.create(gen.storageLocation());
    for (let tenant = 0; tenant < tenants; tenant += 1) await createNamespace(objects, `team-${tenant}`);
    const all = Array.from({ length: tenants * backups }, (_, index) => `team-${index % tenants}`);
    // Few at a time: the API server has nab-sync to serve, too.
    for (let done = 0; done < all.length; done += 50) {
      await Promise.all(all.slice(done, done + 50).map((namespace) => this.addBackup(namespace)));
    }
  }

  /** Adds a completed backup, or one in the given phase, and returns the name of the NAB that is due for it then. */
  async addBackup(namespace: string, phase = 'Completed'): Promise<string> {
    const name = `nab-${this.#due.size}`;
    const id = `${namespace}-${name}`;
    this.#due.set(id, `${namespace}/${name}`);
    await persist(() =>
      this.#stage.objects.create(this.#stage.gen.backup({ namespace, name, nacuuid: id, status: { phase } })),
    );
    return name;
  }

  /** Gives a backup one phase after the other, as fast as the API server takes them. */
  async setPhases(namespace: string, name: string, phases: readonly string[]): Promise<void> {
    const ref = { namespace: oadpNamespace, name: `${namespace}-${name}` };
    for (const phase of phases) await this.#stage.objects.setStatus(kinds.backups, ref, { phase });
  }

  async deleteNab(namespace: string, name: string): Promise<void> {
    await this.#stage.objects.delete(kinds.nonAdminBackups, { namespace, name });
  }

  /** How many NABs there are now. */
  async restored(): Promise<number> {
    return (await this.#stage.objects.list(kinds.nonAdminBackups)).length;
  }

  /** Resolves when at least so many NABs are there. */
  async untilRestored(count: number): Promise<void> {
    while ((await this.restored()) < count) await sleep(5);
  }

  /** What is not as it has to be, each in one line. */
  async wrong(): Promise<string[]> {
    return wrongNabs(await readFacts(this.#stage.objects), this.#ledger);
  }

  /** Resolves to the milliseconds that it took until every NAB was there, complete, and none else; throws when it took too long. */
  async untilRight(timeoutMs: number): Promise<number> {
    const began = performance.now();
    for (;;) {
      const wrong = await this.wrong();
      const tookMs = performance.now() - began;
      if (wrong.length === 0) return tookMs;
      if (tookMs > timeoutMs) {
        throw new Error(
          `not right after ${Math.round(tookMs)} ms: ${wrong.length} are wrong: ${wrong.slice(0, 5).join('; ')}`,
        );
      }
      await sleep(50);
    }
  }
}
