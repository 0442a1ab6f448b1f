import type { Failure, PassCounts } from '../sync/report.ts';
import type { ExitCode } from './exit-codes.ts';

/** How a command ended that ran to its end. */
export interface CommandResult {
  readonly exitCode: ExitCode;
  /** For the termination log, when it did not do all of its work. */
  readonly failed?: {
    readonly code: string;
    readonly message: string;
    readonly counts?: PassCounts;
    readonly failures?: readonly Failure[];
  };
}
