import isEqual from 'lodash/isEqual.js';

/** Called once for each key whose record really changed; `undefined` stands for absent. */
export type ChangeListener<R> = (key: string, before: R | undefined, after: R | undefined) => void;

export interface StoreOptions {
  /** Told of a listener that threw. The other listeners have been or will be called all the same. */
  readonly onListenerError?: (error: unknown, key: string) => void;
}

/**
 * The last known records of one kind, by key. Records are compared by value: one that arrives again unchanged makes no
 * change, so a relist of an idle cluster wakes up nobody.
 */
export class Store<R> {
  readonly #records = new Map<string, R>();
  readonly #listeners = new Set<ChangeListener<R>>();
  readonly #onListenerError: StoreOptions['onListenerError'];
  #listenerErrors = 0;

  constructor(options: StoreOptions = {}) {
    this.#onListenerError = options.onListenerError;
  }

  get size(): number {
    return this.#records.size;
  }

  /** How many times a listener threw, for a metric. */
  get listenerErrors(): number {
    return this.#listenerErrors;
  }

  get(key: string): R | undefined {
    return this.#records.get(key);
  }

  has(key: string): boolean {
    return this.#records.has(key);
  }

  keys(): MapIterator<string> {
    return this.#records.keys();
  }

  values(): MapIterator<R> {
    return this.#records.values();
  }

  entries(): MapIterator<[string, R]> {
    return this.#records.entries();
  }

  set(key: string, record: R): void {
    const before = this.#records.get(key);
    if (before !== undefined && isEqual(before, record)) return;
    this.#records.set(key, record);
    this.#notify(key, before, record);
  }

  delete(key: string): void {
    const before = this.#records.get(key);
    if (!this.#records.delete(key)) return;
    this.#notify(key, before, undefined);
  }

  /**
   * Makes the store hold exactly `all`. Only for a complete list: what is missing in it is taken as deleted.
   * All records are in place before the first listener hears of any, so none ever sees a mixture of old and new.
   */
  replace(all: ReadonlyMap<string, R>): void {
    const changes: [key: string, before: R | undefined, after: R | undefined][] = [];
    for (const [key, before] of this.#records) {
      if (!all.has(key)) changes.push([key, before, undefined]);
    }
    for (const [key, after] of all) {
      const before = this.#records.get(key);
      if (before === undefined || !isEqual(before, after)) changes.push([key, before, after]);
    }
    for (const [key, , after] of changes) {
      if (after === undefined) this.#records.delete(key);
      else this.#records.set(key, after);
    }
    for (const [key, before, after] of changes) this.#notify(key, before, after);
  }

  /** Returns the function that ends the subscription. */
  onChange(listener: ChangeListener<R>): () => void {
    // Wrapped, so that one function subscribed twice is called twice and each subscription ends by itself.
    const own: ChangeListener<R> = (key, before, after) => {
      listener(key, before, after);
    };
    this.#listeners.add(own);
    return () => {
      this.#listeners.delete(own);
    };
  }

  #notify(key: string, before: R | undefined, after: R | undefined): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(key, before, after);
      } catch (error) {
        this.#listenerErrors += 1;
        this.#report(error, key);
      }
    }
  }

  #report(error: unknown, key: string): void {
    try {
      this.#onListenerError?.(error, key);
    } catch {
      // The count still tells; the listeners that wait for their turn matter more than a report.
    }
  }
}
