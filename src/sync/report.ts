import type { Action, Decision, Reason } from './reasons.ts';

/** One row of `plan`: a labelled backup and what a pass would do about it. Fields hold printable text only. */
export interface PlannedDecision {
  /** Name of the Velero Backup. */
  readonly backup: string;
  /** The namespace and name that the backup claims; empty where it claims none. */
  readonly namespace: string;
  readonly name: string;
  readonly nacuuid: string;
  readonly action: Action;
  readonly reason: Reason;
  readonly message: string;
}

/** What became of one backup in a pass. */
export type Outcome = 'created' | 'repaired' | 'present' | 'skipped' | 'waiting' | 'conflict' | 'failed';

export interface Failure {
  readonly namespace: string;
  readonly name: string;
  readonly reason: Reason;
  readonly message: string;
}

export interface PassCounts {
  readonly seen: number;
  readonly created: number;
  readonly repaired: number;
  readonly present: number;
  readonly skipped: number;
  readonly waiting: number;
  readonly conflict: number;
  readonly failed: number;
}

/** JSON of `once`. `Skipped`: another holder of the Lease is at it. */
export interface PassReport {
  readonly outcome: 'Succeeded' | 'Partial' | 'Failed' | 'Skipped';
  /** RFC 3339, as are all times in JSON output. */
  readonly startTime: string;
  readonly completionTime: string;
  readonly counts: PassCounts;
  /** How often each reason was given; reasons that were not given are left out. */
  readonly reasons: Readonly<Partial<Record<Reason, number>>>;
  readonly failures: readonly Failure[];
  /** Only with `Skipped`: who holds the Lease. */
  readonly holder?: string;
}

/** One line of `explain`: a rule, and whether it let the backup pass. */
export interface TrailStep {
  /** The rule's place in the order, from 1. */
  readonly rule: number;
  /** What the rule makes sure of, as a sentence. */
  readonly asks: string;
  /** `notReached`: an earlier rule had decided. */
  readonly outcome: 'passed' | 'decided' | 'notReached';
  /** What the rule looked at, for people; printable. */
  readonly values: Readonly<Record<string, string>>;
}

/** JSON of `explain`, for one backup. */
export interface Explanation {
  readonly backup: string;
  readonly namespace: string;
  readonly name: string;
  readonly nacuuid: string;
  readonly decision: Decision;
  readonly trail: readonly TrailStep[];
}
