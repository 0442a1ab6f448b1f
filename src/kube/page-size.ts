const KIB = 1024;
const MIB = 1024 * KIB;

export interface PageSizeOptions {
  /** Items asked for before anything is known. */
  readonly initial?: number;
  readonly max?: number;
  /** Bytes that one page should have, but for a long list: what is parsed at once is what memory rises by. */
  readonly targetBytes?: number;
}

/**
 * Once a list is longer than this, its pages grow with what came since: for each page etcd counts all that is left, so that the
 * cost of small pages grows with the square of the list, while a larger page adds little to the memory that such a list takes
 * anyway. docs/performance.md has figures.
 */
const longListBytes = 64 * MIB;
const shareOfRest = 16;
const maxTargetBytes = 2 * MIB;

/**
 * How many items to ask for at a time. Objects are anything from 1 KiB to more than 1 MiB, and whoever owns them decides
 * which; a fixed 500 would be half a gigabyte at worst. So the size follows the bytes that items turned out to have, and
 * what one list has learned serves the next.
 */
export class PageSize {
  readonly #max: number;
  readonly #targetBytes: number;
  #limit: number;
  /** Of the list under way. */
  #bytesRead = 0;

  constructor(options: PageSizeOptions = {}) {
    this.#max = options.max ?? 500;
    this.#targetBytes = options.targetBytes ?? 256 * KIB;
    this.#limit = Math.min(options.initial ?? 100, this.#max);
  }

  get limit(): number {
    return this.#limit;
  }

  /** A list begins. */
  begin(): void {
    this.#bytesRead = 0;
  }

  /** Takes in a page that came. Growth is at most fourfold a page, since the next items may be larger. */
  saw(items: number, bytes: number): void {
    if (items === 0) return;
    this.#bytesRead += bytes;
    const grown = (this.#bytesRead - longListBytes) / shareOfRest;
    const target = Math.max(this.#targetBytes, Math.min(maxTargetBytes, grown));
    const fitting = Math.floor(target / (bytes / items));
    this.#limit = Math.max(1, Math.min(fitting, this.#limit * 4, this.#max));
  }

  /** Takes in a page that was too large. False when it cannot be made smaller. */
  shrink(): boolean {
    if (this.#limit === 1) return false;
    this.#limit = Math.max(1, Math.floor(this.#limit / 2));
    return true;
  }
}
