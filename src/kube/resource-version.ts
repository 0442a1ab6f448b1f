/**
 * Whether `next` is older than `last`. Resource versions are decimal numbers of any length and comparable as such
 * (Kubernetes 1.35 made that part of the API); anything else is not judged.
 */
export function wentBack(last: string, next: string): boolean {
  if (!DECIMAL.test(last) || !DECIMAL.test(next)) return false;
  return BigInt(next) < BigInt(last);
}

/** Whether `seen` is at least as new as `wanted`; false where that cannot be told. */
export function hasReached(seen: string, wanted: string): boolean {
  return DECIMAL.test(seen) && DECIMAL.test(wanted) && !wentBack(wanted, seen);
}

const DECIMAL = /^[0-9]{1,40}$/;
