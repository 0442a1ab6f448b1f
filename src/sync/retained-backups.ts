import type { JsonObject } from '../kube/resource.ts';

/**
 * Backups that are kept between the create of a NAB and its status, within a bound of memory for all namespaces
 * together. A Backup can be a megabyte, and there may be thousands: one that is not kept is simply read again.
 */
export class RetainedBackups {
  readonly #maxBytes: number;
  #bytes = 0;

  /** @param maxBytes bound on the total size as JSON, in UTF-16 units */
  constructor(maxBytes = 16 * 1024 * 1024) {
    this.#maxBytes = maxBytes;
  }

  /** Keeps the object until it is taken; undefined where it does not fit. */
  keep(object: JsonObject): { take: () => JsonObject } | undefined {
    const size = JSON.stringify(object).length;
    if (this.#bytes + size > this.#maxBytes) return undefined;
    this.#bytes += size;
    let kept = true;
    return {
      take: () => {
        if (kept) this.#bytes -= size;
        kept = false;
        return object;
      },
    };
  }
}
