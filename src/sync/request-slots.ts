import PQueue from 'p-queue';

/** Who goes first when requests wait for a slot; higher goes first. */
export const priorities = {
  /** Makes a NAB visible in a namespace that just changed: a tenant may be waiting for it. */
  liveCreate: 2,
  /**
   * Makes a NAB visible. Before all statuses, since the non-admin controller's garbage collector deletes Backups whose
   * NAB it does not see.
   */
  create: 1,
  status: 0,
} as const;

/** The longest that a status gives way to creates. */
const statusPatience = 2000;

/** Bounds how many requests are in flight, whatever the number of namespaces at work. */
export class RequestSlots {
  readonly #queue: PQueue;
  #lastId = 0;

  constructor(concurrency: number) {
    this.#queue = new PQueue({ concurrency });
  }

  /** Runs `work` when a slot is free. Rejects as it rejects. */
  async run<T>(priority: number, work: () => Promise<T>): Promise<T> {
    return this.#queue.add(work, { priority });
  }

  /**
   * As `run`, for a status that has been due since `dueSince`: it gives way to creates until its patience is at an end.
   *
   * @param dueSince milliseconds on the same clock as `now`
   */
  async runStatus<T>(dueSince: number, now: number, work: () => Promise<T>): Promise<T> {
    const patience = dueSince + statusPatience - now;
    if (patience <= 0) return this.run(priorities.create, work);
    this.#lastId += 1;
    const id = String(this.#lastId);
    let waiting = true;
    const impatience = setTimeout(() => {
      if (waiting) this.#queue.setPriority(id, priorities.create);
    }, patience);
    return this.#queue.add(
      () => {
        waiting = false;
        clearTimeout(impatience);
        return work();
      },
      { priority: priorities.status, id },
    );
  }
}

/** Whether a status that is due has waited long enough to go before the creates of its own namespace. */
export function isOverdue(dueSince: number, now: number): boolean {
  return now - dueSince >= statusPatience;
}
