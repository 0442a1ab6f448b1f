import partition from 'lodash/partition.js';

/** What a request is for, in the order in which it gets a slot. */
export type Lane =
  /** Makes a NAB visible in a namespace that just changed: a tenant may be waiting for it. */
  | 'liveCreate'
  /** Completes one there. */
  | 'liveStatus'
  /**
   * Makes a NAB visible. Before other statuses, since the non-admin controller's garbage collector deletes Backups whose NAB it
   * does not see.
   */
  | 'create'
  | 'status';

export interface SlotOptions {
  /** For `hurry`. */
  readonly namespace?: string | undefined;
  /** Since when the work waits, on the clock of the slots, if it has waited elsewhere before. */
  readonly waitingSince?: number | undefined;
}

/** The lane of the same work in a namespace that just changed. */
export const liveLane = { create: 'liveCreate', status: 'liveStatus' } as const satisfies Partial<Record<Lane, Lane>>;

/** Work that waits for its slot. */
interface Waiting {
  readonly begin: () => void;
  readonly namespace: string | undefined;
  readonly since: number;
}

/** How long a status gives way to creates: it takes the time of two, each of which saves a Backup from the collector. */
export const statusPatienceMs = 2000;

/** Of so many slots that are given away while creates wait, one goes to a status that has waited for longer than that. */
const statusShare = 64;

/** How many slots there are; both may change at any time. */
export interface SlotLimit {
  /** As the server bears it. */
  readonly current: number;
  /** Whatever the server bears, from `current`. */
  readonly ceiling: number;
}

/**
 * Work that takes longer is most likely held up by one tenant's webhook and weighs on nobody: its slot is lent to others, up to
 * the ceiling. Where all work takes that long, the limit bounds how many begin within this time.
 */
const heldUpAfterMs = 1000;

/**
 * Bounds how many requests are in flight, whatever the number of namespaces at work. Creates go before statuses, but never
 * starve them.
 */
export class RequestSlots {
  readonly #limit: SlotLimit;
  readonly #now: () => number;
  readonly #waiting: Record<Lane, Waiting[]> = { liveCreate: [], liveStatus: [], create: [], status: [] };
  #taken = 0;
  /** Those of the taken whose work is held up. */
  readonly #heldUp = new Set<NodeJS.Timeout>();
  /** Slots given away since a status last had one. */
  #sinceStatus = 0;

  /**
   * @param now milliseconds, on the clock of whoever says since when work waits
   */
  constructor(limit: SlotLimit, now: () => number) {
    this.#limit = limit;
    this.#now = now;
  }

  /** Runs `work` when a slot is free. Rejects as it rejects. */
  async run<T>(lane: Lane, work: () => Promise<T>, options: SlotOptions = {}): Promise<T> {
    const { namespace, waitingSince = this.#now() } = options;
    const turn = Promise.withResolvers<undefined>();
    const begin = (): void => {
      turn.resolve(undefined);
    };
    this.#waiting[lane].push({ begin, namespace, since: waitingSince });
    this.#giveAway();
    await turn.promise;
    const patience = setTimeout(() => {
      this.#heldUp.add(patience);
      this.#giveAway();
    }, heldUpAfterMs);
    try {
      return await work();
    } finally {
      clearTimeout(patience);
      this.#heldUp.delete(patience);
      this.#taken -= 1;
      this.#giveAway();
    }
  }

  /** What waits already for a namespace goes ahead as for one that just changed. */
  hurry(namespace: string): void {
    for (const lane of ['create', 'status'] as const) {
      const [its, others] = partition(this.#waiting[lane], (waiting) => waiting.namespace === namespace);
      this.#waiting[lane] = others;
      this.#waiting[liveLane[lane]].push(...its);
    }
  }

  #giveAway(): void {
    while (this.#taken < this.#limit.ceiling && this.#taken - this.#heldUp.size < this.#limit.current) {
      const next = this.#next();
      if (next === undefined) return;
      this.#taken += 1;
      next.begin();
    }
  }

  #next(): Waiting | undefined {
    const { liveCreate, liveStatus, create, status } = this.#waiting;
    if (this.#sinceStatus >= statusShare - 1) {
      const due = [liveStatus, status].find(([head]) => head !== undefined && this.#hasWaited(head));
      if (due !== undefined) return this.#status(due);
    }
    if (liveCreate.length > 0) return this.#create(liveCreate);
    if (liveStatus.length > 0) return this.#status(liveStatus);
    return create.length > 0 ? this.#create(create) : this.#status(status);
  }

  #hasWaited({ since }: Waiting): boolean {
    return this.#now() - since >= statusPatienceMs;
  }

  #create(lane: Waiting[]): Waiting | undefined {
    this.#sinceStatus += 1;
    return lane.shift();
  }

  #status(lane: Waiting[]): Waiting | undefined {
    this.#sinceStatus = 0;
    return lane.shift();
  }
}
