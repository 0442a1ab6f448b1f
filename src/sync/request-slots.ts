/** What a request is for, in the order in which it gets a slot. */
export type Lane =
  /** Makes a NAB visible in a namespace that just changed: a tenant may be waiting for it. */
  | 'liveCreate'
  /**
   * Makes a NAB visible. Before statuses, since the non-admin controller's garbage collector deletes Backups whose NAB it
   * does not see.
   */
  | 'create'
  | 'status';

/** Of so many slots that are given away while creates wait, one goes to a status that waits as well. */
const statusShare = 16;

/**
 * Bounds how many requests are in flight, whatever the number of namespaces at work. Creates go before statuses, but never
 * starve them.
 */
export class RequestSlots {
  readonly #limit: { readonly current: number };
  readonly #waiting: Readonly<Record<Lane, (() => void)[]>> = { liveCreate: [], create: [], status: [] };
  #taken = 0;
  /** Slots given away since a status last had one. */
  #sinceStatus = 0;

  /** @param limit how many slots there are; may change at any time */
  constructor(limit: { readonly current: number }) {
    this.#limit = limit;
  }

  /** Runs `work` when a slot is free. Rejects as it rejects. */
  async run<T>(lane: Lane, work: () => Promise<T>): Promise<T> {
    const turn = Promise.withResolvers<undefined>();
    this.#waiting[lane].push(() => {
      turn.resolve(undefined);
    });
    this.#giveAway();
    await turn.promise;
    try {
      return await work();
    } finally {
      this.#taken -= 1;
      this.#giveAway();
    }
  }

  #giveAway(): void {
    while (this.#taken < this.#limit.current) {
      const begin = this.#next();
      if (begin === undefined) return;
      this.#taken += 1;
      begin();
    }
  }

  #next(): (() => void) | undefined {
    const { liveCreate, create, status } = this.#waiting;
    const statusFirst = this.#sinceStatus >= statusShare - 1;
    const first = (statusFirst ? status.shift() : undefined) ?? liveCreate.shift() ?? create.shift();
    if (first !== undefined && !statusFirst) {
      this.#sinceStatus += 1;
      return first;
    }
    this.#sinceStatus = 0;
    return first ?? status.shift();
  }
}
