/**
 * Keeps nab-sync from fighting with somebody who removes its NABs or undoes their status as fast as they are written: a
 * GitOps tool that prunes, or a second non-admin controller that looks for the Backup elsewhere.
 */

/** How often the NAB of one backup was written in a row. */
export interface Recurrence {
  /** uid of the Namespace: in a namespace that was created anew everything begins anew. */
  readonly namespaceUid: string | undefined;
  readonly count: number;
  /** Milliseconds since the epoch. */
  readonly last: number;
}

/** That many writes in a row are nothing special: a tenant who deletes his NAB, and a status to complete. */
const unremarkable = 3;
const baseMs = 2000;
const capMs = 300_000;
/** After that long without a write the next one is the first. */
const quietMs = 2 * capMs;

/** The recurrence after one more write. */
export function writtenAgain(
  before: Recurrence | undefined,
  namespaceUid: string | undefined,
  now: number,
): Recurrence {
  const goesOn = before?.namespaceUid === namespaceUid && before !== undefined && now - before.last < quietMs;
  return { namespaceUid, count: goesOn ? before.count + 1 : 1, last: now };
}

/** When the NAB may be written next, in milliseconds since the epoch; undefined where nothing speaks against now. */
export function writableAt(
  recurrence: Recurrence | undefined,
  namespaceUid: string | undefined,
  now: number,
): number | undefined {
  if (recurrence === undefined || recurrence.count < unremarkable) return undefined;
  if (recurrence.namespaceUid !== namespaceUid || now - recurrence.last >= quietMs) return undefined;
  const at = recurrence.last + Math.min(capMs, baseMs * 2 ** Math.min(recurrence.count - unremarkable, 20));
  return at > now ? at : undefined;
}
