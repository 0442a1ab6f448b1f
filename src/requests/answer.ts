import sortBy from 'lodash/sortBy.js';
import type { JsonObject } from '../kube/resource.ts';
import { printable } from '../oadp/printable.ts';
import type { ItemResult } from '../sync/namespace-pass.ts';
import { OutcomeCounts } from '../sync/outcome-counts.ts';
import { isRefusalReason, type Decision, type Reason } from '../sync/reasons.ts';
import { messageForTenant } from '../sync/tenant-message.ts';
import type { FinalPhase } from './sync-request.ts';

/** Most entries of each list in a status. */
const listed = 20;

/** Longest message in a list. */
const longestMessage = 700;

/** So many candidates are gathered before those beyond the bound are let go. */
const gathered = 20 * listed;

interface Named {
  readonly namespace: string;
  readonly name: string;
}

/** The first entries by namespace and name of any number, in bounded memory. */
class FirstEntries<E extends Named> {
  #entries: E[] = [];
  #total = 0;

  add(entry: E): void {
    this.#total += 1;
    this.#entries.push(entry);
    if (this.#entries.length >= gathered) this.#entries = this.first();
  }

  first(): E[] {
    return sortBy(this.#entries, ['namespace', 'name']).slice(0, listed);
  }

  get omitted(): number {
    return Math.max(0, this.#total - listed);
  }
}

interface Written extends Named {
  readonly veleroBackup: string;
  readonly outcome: 'Created' | 'Repaired';
}

interface NotWritten extends Named {
  readonly reason: Reason;
  readonly message: string;
}

/** Who reads an answer: a tenant is told nothing that is not of his own namespace. */
export type Audience = 'tenant' | 'admin';

/** What a sync has to say to those who asked for it; takes the same room however much there is. */
export class Answer {
  readonly #audience: Audience;
  readonly #counts = new OutcomeCounts();
  readonly #written = new FirstEntries<Written>();
  readonly #skipped = new FirstEntries<NotWritten>();
  readonly #failed = new FirstEntries<NotWritten>();
  #namespaces = 0;

  constructor(audience: Audience) {
    this.#audience = audience;
  }

  /**
   * What became of the backups of one namespace. A backup that turned out to be no genuine claim when it was read once more
   * is none of that namespace's, and left out.
   */
  addNamespace(items: readonly ItemResult[]): void {
    this.#namespaces += 1;
    for (const item of items) if (!isRefusalReason(item.reason)) this.#add(item);
  }

  /** A backup that was refused for good (rules 1 to 8). Only for an answer in the namespace of OADP. */
  addRefused(claim: { readonly namespace: unknown; readonly name: unknown }, { reason, message }: Decision): void {
    this.#counts.add('skipped');
    this.#skipped.add(notWritten(claim, reason, message));
  }

  get phase(): FinalPhase {
    return this.#counts.outcome;
  }

  /** One sentence about what failed; undefined where nothing did. */
  get failure(): string | undefined {
    const { failed } = this.#counts.all;
    const [first] = this.#failed.first();
    if (first === undefined) return undefined;
    const which = failed === 1 ? '1 NonAdminBackup' : `${failed} NonAdminBackups`;
    return `${which} could not be written, among them ${first.namespace}/${first.name}: ${first.reason}: ${first.message}`;
  }

  /** What happened, in one sentence. */
  get summary(): string {
    const { seen, created, repaired, present, skipped, waiting, conflict, failed } = this.#counts.all;
    const rest = [
      [skipped, 'skipped'],
      [waiting, 'waiting'],
      [conflict, 'in conflict'],
    ] as const;
    const others = rest.flatMap(([count, word]) => (count === 0 ? [] : [`, ${count} ${word}`])).join('');
    const backups = seen === 1 ? '1 backup' : `${seen} backups`;
    return `${backups}: ${created} re-created, ${repaired} repaired, ${present} present${others}, ${failed} failed.`;
  }

  /** Its part of a status. */
  status(): JsonObject {
    return {
      namespaces: this.#namespaces,
      counts: { ...this.#counts.all },
      written: this.#written.first(),
      skipped: this.#skipped.first(),
      failed: this.#failed.first(),
      omitted: {
        written: this.#written.omitted,
        skipped: this.#skipped.omitted,
        failed: this.#failed.omitted,
      },
    };
  }

  #add(item: ItemResult): void {
    const { backup, outcome, reason } = item;
    const message = this.#audience === 'tenant' ? messageForTenant(item) : item.message;
    this.#counts.add(outcome);
    switch (outcome) {
      case 'created':
      case 'repaired':
        this.#written.add({
          ...named(backup.claim),
          veleroBackup: printable(backup.name, 253),
          outcome: outcome === 'created' ? 'Created' : 'Repaired',
        });
        return;
      case 'skipped':
      case 'waiting':
      case 'conflict':
        this.#skipped.add(notWritten(backup.claim, reason, message));
        return;
      case 'failed':
        this.#failed.add(notWritten(backup.claim, reason, message));
        return;
      case 'present':
    }
  }
}

function named(claim: { readonly namespace: unknown; readonly name: unknown }): Named {
  return { namespace: printable(claim.namespace), name: printable(claim.name, 253) };
}

function notWritten(
  claim: { readonly namespace: unknown; readonly name: unknown },
  reason: Reason,
  message: string,
): NotWritten {
  return { ...named(claim), reason, message: printable(message, longestMessage) };
}
