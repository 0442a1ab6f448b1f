import type { ItemResult } from './namespace-pass.ts';
import type { FailureReason, Reason } from './reasons.ts';

/**
 * Results whose messages hold words that are not the tenant's to read, and what is said instead. A Forbidden names our
 * ServiceAccount and rights, a connection that breaks names hosts, and what Velero reports of a deletion names buckets. What
 * a quota, a policy or a schema says of a tenant's object is his own, and helps him.
 */
const instead: ReadonlyMap<Reason, string> = new Map<FailureReason | 'BeingDeleted', string>([
  ['BeingDeleted', 'The Backup is being deleted, or is already gone.'],
  ['Forbidden', 'nab-sync lacks a right for it: ask the admin to run nab-sync check.'],
  ['Unauthorized', 'The API server does not accept the credentials of nab-sync: ask the admin to run nab-sync check.'],
  ['KindNotInstalled', 'A kind that is needed is not installed: ask the admin to run nab-sync check.'],
  ['Throttled', 'The API server asked for fewer requests; it is tried again by itself.'],
  ['Timeout', 'The API server, or a webhook that it asks, did not answer in time; it is tried again by itself.'],
  ['Unreachable', 'The API server could not be reached; it is tried again by itself.'],
  ['ServerError', 'The API server had an error; it is tried again by itself.'],
  ['InternalError', 'A fault of nab-sync, of which its log says more to the admin; it is tried again by itself.'],
]);

/** What a tenant is told of a result in his namespace. The admin is told its own message. */
export function messageForTenant({ reason, message }: Pick<ItemResult, 'reason' | 'message'>): string {
  return instead.get(reason) ?? message;
}
