import { z } from 'zod';

/** Parts of documented JSON that several documents have, strict: an additional field is a change of the interface. */

export const count = z.int().nonnegative();

export const outcomeCounts = z.strictObject({
  seen: count,
  created: count,
  repaired: count,
  present: count,
  skipped: count,
  waiting: count,
  conflict: count,
  failed: count,
});
