import { KubeError } from '../kube/errors.ts';
import { printable } from '../oadp/printable.ts';
import type { FailureReason } from './reasons.ts';

/** What a failed write means for the item, and for what follows in its namespace. */
export interface WriteFailure {
  readonly reason: FailureReason;
  readonly message: string;
  /** Will fail again for this version of the backup: told once, and tried again only when something changed. */
  readonly permanent: boolean;
  /**
   * What the rest of the namespace's pass can expect. `next`: it concerns this item alone. `doubt`: the next may fail
   * alike, and after a few in a row the pass ends. `stop`: the next would fail alike.
   */
  readonly rest: 'next' | 'doubt' | 'stop';
  /** How long the server asked us to stay away, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** Only with `InternalError`: what was thrown, for the log. */
  readonly fault?: unknown;
}

/** The longest message of an error that is passed on: names of 253 characters may stand before what matters in it. */
const longestMessage = 700;

/** Classifies what a request ran into. */
export function toWriteFailure(error: unknown): WriteFailure {
  const message = printable(error instanceof Error ? error.message : String(error), longestMessage);
  const failure = (reason: FailureReason, rest: WriteFailure['rest'], permanent = false): WriteFailure => ({
    reason,
    message,
    permanent,
    rest,
    retryAfterMs: error instanceof KubeError ? error.retryAfterMs : undefined,
  });
  if (!(error instanceof KubeError)) return { ...failure('InternalError', 'next'), fault: error };
  switch (error.code) {
    case 'Invalid':
      return error.deniedBy === 'admission' ? failure('AdmissionDenied', 'doubt') : failure('Invalid', 'next', true);
    case 'TooLarge':
      return failure('TooLarge', 'next', true);
    // A webhook that gives no code of its own answers 400. Nothing admits a read.
    case 'BadRequest':
      return error.verb === 'get' ? failure('ServerError', 'next') : failure('AdmissionDenied', 'doubt');
    case 'Forbidden':
      if (error.deniedBy !== 'admission') return failure('Forbidden', 'stop');
      // Quota and policy differ in the text alone, so nothing but the name and the number of tries hangs on it.
      return error.message.includes('exceeded quota')
        ? failure('QuotaDenied', 'stop')
        : failure('AdmissionDenied', 'doubt');
    case 'Unauthorized':
      return failure('Unauthorized', 'stop');
    case 'KindNotInstalled':
      return failure('KindNotInstalled', 'stop');
    case 'Throttled':
      return failure('Throttled', 'stop');
    case 'Timeout':
      return failure('Timeout', 'doubt');
    case 'Unreachable':
      return failure('Unreachable', 'doubt');
    case 'ServerError':
    case 'Malformed':
    case 'Gone':
      return failure('ServerError', 'doubt');
    // A create meets Conflict when the quota's own bookkeeping collides; the others are settled before they get here,
    // unless the object comes and goes faster than it can be read.
    case 'Conflict':
    case 'AlreadyExists':
    case 'NotFound':
    case 'NamespaceNotFound':
    case 'NamespaceTerminating':
      return failure('ServerError', 'next');
    case 'Aborted':
      return failure('Aborted', 'stop');
  }
}
