import type { JsonObject } from '../kube/resource.ts';
import { printable } from './printable.ts';
import { listAt, nameAt, textAt } from './read.ts';

/** How many of a request's errors are kept, for the message only. */
const errorsKept = 3;

/** What is kept of a Velero DeleteBackupRequest. */
export interface DeleteRequestRecord {
  readonly backupName: string;
  /** Velero is through with it: the backup is gone, or `errors` say why it is not. */
  readonly processed: boolean;
  /** Printable, cut, and at most three. */
  readonly errors: readonly string[];
}

/** Undefined for a request that names no backup. */
export function toDeleteRequestRecord(request: JsonObject): DeleteRequestRecord | undefined {
  const backupName = nameAt(request, 'spec', 'backupName');
  if (backupName === undefined) return undefined;
  return {
    backupName,
    processed: textAt(request, 'status', 'phase') === 'Processed',
    errors: listAt(request, 'status', 'errors')
      .slice(0, errorsKept)
      .map((error) => printable(error)),
  };
}
