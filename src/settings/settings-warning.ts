/** What can be wrong with settings that are each right by themselves, or with what the DPA says. */
export const settingsWarnings = [
  /** Passes come more often than Velero looks into the bucket. */
  'SyncPeriodTooShort',
  /** The NAC's garbage collector comes before the next pass. */
  'SyncPeriodTooLong',
  /** The DPA says 0, which was meant for the NAC's own synchronizer. */
  'IntervalOff',
  'SeveralDpas',
  /** A field of the DPA makes no sense; the default is used. */
  'DpaFieldUnusable',
] as const;

export interface SettingsWarning {
  readonly code: (typeof settingsWarnings)[number];
  /** What is wrong, in one sentence. */
  readonly message: string;
  /** Which value to change. */
  readonly next: string;
}
