import type { ItemResult } from './namespace-pass.ts';
import type { FailureReason, Reason } from './reasons.ts';

/**
 * What a tenant is told where the words of the API server are not his to read: a Forbidden names our rights, a connection that
 * breaks names hosts. `undefined`: those words are about his own object, and help him. Of the decisions, which have words of
 * our own, BeingDeleted holds what Velero reports of the deletion.
 */
const instead: Readonly<Partial<Record<Reason, string | undefined>>> = {
  BeingDeleted: 'The Backup is being deleted, or is already gone.',
  QuotaDenied: undefined,
  AdmissionDenied: undefined,
  Invalid: undefined,
  TooLarge: undefined,
  Forbidden: 'nab-sync lacks a right for it: ask the admin to run nab-sync check.',
  Unauthorized: 'The API server does not accept the credentials of nab-sync: ask the admin to run nab-sync check.',
  KindNotInstalled: 'A kind that is needed is not installed: ask the admin to run nab-sync check.',
  Throttled: 'The API server asked for fewer requests; it is tried again by itself.',
  Timeout: 'The API server, or a webhook that it asks, did not answer in time; it is tried again by itself.',
  Unreachable: 'The API server could not be reached; it is tried again by itself.',
  ServerError: 'The API server had an error; it is tried again by itself.',
  Aborted: 'nab-sync was stopping; it is tried again by itself.',
  InternalError: 'A fault of nab-sync, of which its log says more to the admin; it is tried again by itself.',
} satisfies Record<FailureReason | 'BeingDeleted', string | undefined>;

/** A policy may name who it refused. */
const account = /system:serviceaccounts?:[\w.:-]+/g;

/** What a tenant is told of a result in his namespace. The admin is told its own message. */
export function messageForTenant({ reason, message }: Pick<ItemResult, 'reason' | 'message'>): string {
  return (instead[reason] ?? message).replace(account, 'nab-sync');
}
