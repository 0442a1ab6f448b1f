import type { NamespaceReport } from '../sync/reconciler.ts';
import { Answer, type Audience } from './answer.ts';

/** A sync of some namespaces that somebody asked for. */
export interface Sync {
  readonly answer: Answer;
  /** Resolves when every namespace was looked at, once, from its beginning to its end, since the sync was asked for. */
  readonly done: Promise<void>;
  readonly isDone: boolean;
}

/** One that is under way. */
class OpenSync implements Sync {
  readonly answer: Answer;
  readonly #left: Set<string>;
  readonly #through = Promise.withResolvers<undefined>();

  constructor(namespaces: Iterable<string>, audience: Audience) {
    this.answer = new Answer(audience);
    this.#left = new Set(namespaces);
    this.#settle();
  }

  get left(): ReadonlySet<string> {
    return this.#left;
  }

  get isDone(): boolean {
    return this.#left.size === 0;
  }

  get done(): Promise<undefined> {
    return this.#through.promise;
  }

  take({ namespace, items }: NamespaceReport): void {
    if (!this.#left.delete(namespace)) return;
    this.answer.addNamespace(items);
    this.#settle();
  }

  #settle(): void {
    if (this.isDone) this.#through.resolve(undefined);
  }
}

/**
 * Matches syncs that are asked for with the reconciles that happen anyway. A reconcile counts for a sync if it began after
 * the sync was asked for; so one of them may answer any number of syncs, and none answers a question that came later.
 */
export class Syncs {
  /** By namespace: the syncs for which it has still to be looked at. */
  readonly #open = new Map<string, Set<OpenSync>>();

  /** Asks for a sync. It goes on when somebody has the namespaces reconciled. */
  ask(namespaces: Iterable<string>, audience: Audience): Sync {
    const sync = new OpenSync(namespaces, audience);
    for (const namespace of sync.left) {
      const others = this.#open.get(namespace);
      if (others === undefined) this.#open.set(namespace, new Set([sync]));
      else others.add(sync);
    }
    return sync;
  }

  /**
   * To be called when a reconcile begins; what it returns takes the report. A report that is never handed in, or one of a
   * reconcile that was ended before it was through, counts for nothing: the next one does.
   */
  begin(namespace: string): (report: NamespaceReport) => void {
    const syncs = [...(this.#open.get(namespace) ?? [])];
    return (report) => {
      if (report.items.some(({ reason }) => reason === 'Aborted')) return;
      const open = this.#open.get(namespace);
      for (const sync of syncs) {
        sync.take(report);
        open?.delete(sync);
      }
      if (open?.size === 0) this.#open.delete(namespace);
    };
  }
}
