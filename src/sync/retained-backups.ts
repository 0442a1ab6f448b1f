import { isJsonObject } from '../kube/json.ts';
import type { JsonObject } from '../kube/resource.ts';

/** One that is kept. */
export interface RetainedBackup {
  /** Releases it and returns what it was; undefined once it is released. */
  take(): JsonObject | undefined;
  /** Gives its room to others. */
  release(): void;
}

/**
 * Backups that are kept between the create of a NAB and its status, within a bound of memory for all namespaces
 * together. A Backup can be a megabyte, and there may be thousands: one that is not kept is simply read again.
 */
export class RetainedBackups {
  readonly #maxSize: number;
  #size = 0;

  /** @param maxSize bound on the total size as JSON, in UTF-16 units */
  constructor(maxSize = 16 * 1024 * 1024) {
    this.#maxSize = maxSize;
  }

  /** Keeps the object until it is released; undefined where it does not fit. */
  keep(object: JsonObject): RetainedBackup | undefined {
    // As text it takes half of the memory that it takes as an object, and its size is known.
    const text = JSON.stringify(object);
    const { length } = text;
    if (this.#size + length > this.#maxSize) return undefined;
    this.#size += length;
    let kept: string | undefined = text;
    const release = (): void => {
      if (kept !== undefined) this.#size -= length;
      kept = undefined;
    };
    return {
      take: () => {
        if (kept === undefined) return undefined;
        const parsed: unknown = JSON.parse(kept);
        release();
        return isJsonObject(parsed) ? parsed : undefined;
      },
      release,
    };
  }
}
