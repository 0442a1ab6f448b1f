import { setFlagsFromString } from 'node:v8';

/**
 * What V8 is told to spare: memory at rest, where nearly all of the time goes by, and time while NABs are written. Measured with
 * 10,000 backups, sparing memory saves 14 MiB, and in a restore it costs a quarter more CPU; docs/performance.md has the
 * figures. V8 looks at the flag at each collection, so it may change at any time.
 */
export class Heap {
  #atRest = false;

  rest(): void {
    if (this.#atRest) return;
    this.#atRest = true;
    setFlagsFromString('--optimize-for-size');
  }

  work(): void {
    if (!this.#atRest) return;
    this.#atRest = false;
    setFlagsFromString('--no-optimize-for-size');
  }
}
