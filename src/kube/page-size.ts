const KIB = 1024;

export interface PageSizeOptions {
  /** Items asked for before anything is known. */
  readonly initial?: number;
  readonly max?: number;
  /** Bytes that one page should have. What is parsed at once is what memory rises by: docs/performance.md has figures. */
  readonly targetBytes?: number;
}

/**
 * How many items to ask for at a time. Objects are anything from 1 KiB to more than 1 MiB, and whoever owns them decides
 * which; a fixed 500 would be half a gigabyte at worst. So the size follows the bytes that items turned out to have, and
 * what one list has learned serves the next.
 */
export class PageSize {
  readonly #max: number;
  readonly #targetBytes: number;
  #limit: number;

  constructor(options: PageSizeOptions = {}) {
    this.#max = options.max ?? 500;
    this.#targetBytes = options.targetBytes ?? 256 * KIB;
    this.#limit = Math.min(options.initial ?? 100, this.#max);
  }

  get limit(): number {
    return this.#limit;
  }

  /** Takes in a page that came. Growth is at most fourfold a page, since the next items may be larger. */
  saw(items: number, bytes: number): void {
    if (items === 0) return;
    const fitting = Math.floor(this.#targetBytes / (bytes / items));
    this.#limit = Math.max(1, Math.min(fitting, this.#limit * 4, this.#max));
  }

  /** Takes in a page that was too large. False when it cannot be made smaller. */
  shrink(): boolean {
    if (this.#limit === 1) return false;
    this.#limit = Math.max(1, Math.floor(this.#limit / 2));
    return true;
  }
}
