import { setFlagsFromString } from 'node:v8';

/** After so long without a write the work is taken to be over. */
const quietMs = 2000;

/**
 * What V8 is to spare: memory at rest, where nearly all of the time goes by, and time while NABs are written and until the
 * first lists are in. docs/performance.md has what either costs. V8 looks at the flag whenever it decides about a collection, so
 * it may change at any time; Node leaves V8's flags open for this.
 */
export class Heap {
  readonly #isListing: () => boolean;
  readonly #setFlag: (flag: string) => void;
  readonly #quiet: NodeJS.Timeout;
  #atRest = false;

  /** @param isListing whether a first list is still being read */
  constructor(isListing: () => boolean, setFlag = setFlagsFromString) {
    this.#isListing = isListing;
    this.#setFlag = setFlag;
    this.#quiet = setTimeout(() => {
      this.#rest();
    }, quietMs);
    // Nobody has to wait for it.
    this.#quiet.unref();
  }

  /** Something is being written. */
  work(): void {
    this.#quiet.refresh();
    if (!this.#atRest) return;
    this.#atRest = false;
    this.#setFlag('--no-optimize-for-size');
  }

  #rest(): void {
    if (this.#isListing()) {
      this.#quiet.refresh();
      return;
    }
    this.#atRest = true;
    this.#setFlag('--optimize-for-size');
  }
}
