/** What `check` finds about one thing. */
export interface CheckResult {
  /** Which thing: `rights`, `kinds`, ... Several results may be about the same. */
  readonly check: CheckName;
  readonly status: 'OK' | 'WARN' | 'FAIL';
  /** What was found, in one sentence; printable. */
  readonly message: string;
  /** What to do about it; absent where all is well. */
  readonly next?: string;
}

/** In the order in which they are looked at and shown. */
export const checkNames = [
  'rights',
  'kinds',
  'oadp-namespace',
  'dpa',
  'nac-synchronizer',
  'periods',
  'storage-locations',
  'location-owners',
  'namespace-selector',
  'clock',
  'lease',
  'last-sync',
] as const;
type CheckName = (typeof checkNames)[number];

/** Makes results about one thing. */
export function about(check: CheckName) {
  return {
    ok: (message: string): CheckResult => ({ check, status: 'OK', message }),
    warn: (message: string, next: string): CheckResult => ({ check, status: 'WARN', message, next }),
    fail: (message: string, next: string): CheckResult => ({ check, status: 'FAIL', message, next }),
  };
}
