import { writeFileSync } from 'node:fs';
import { quoted } from '../oadp/printable.ts';
import type { FlagValues } from '../settings/flags.ts';
import type { Host } from '../settings/host.ts';
import { defaultTerminationLog } from '../settings/settings.ts';
import type { Failure, PassCounts } from '../sync/report.ts';
import { tell, type Streams } from './streams.ts';
import { version } from './version.ts';

/** Why the process ended, for `kubectl describe pod` and whoever reads the container's status. Holds nothing secret. */
export interface TerminationRecord {
  /** RFC 3339. */
  readonly time: string;
  readonly version: string;
  /** Empty when the command line was not understood. */
  readonly command: string;
  readonly exitCode: number;
  /** As in FailureDescription; `Interrupted` where a signal ended it; the outcome of a pass or a request that failed. */
  readonly code: string;
  readonly message: string;
  /** What became of the backups, where a pass came that far. */
  readonly counts?: PassCounts;
  /** Backups that could not be brought back, the first of them only where there are many. */
  readonly failures?: readonly Failure[];
}

/** Kubernetes keeps no more than that. */
const maxBytes = 4_096;

function encode(record: TerminationRecord, message: string, failures: readonly Failure[]): string {
  const all = record.failures ?? [];
  return JSON.stringify({
    ...record,
    message,
    ...(all.length > 0 && { failures }),
    ...(failures.length < all.length && { omittedFailures: all.length - failures.length }),
  });
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) <= maxBytes;
}

/**
 * JSON of at most 4,096 bytes: Kubernetes would cut a longer text anywhere, and half an object is none. Gives up failures
 * first, from the last; then the end of the message.
 */
export function terminationText(record: TerminationRecord): string {
  const failures = (record.failures ?? []).slice(0, 50);
  for (let kept = failures.length; kept >= 0; kept -= 1) {
    const text = encode(record, record.message, failures.slice(0, kept));
    if (fits(text)) return text;
  }
  let message = record.message.slice(0, maxBytes);
  for (;;) {
    const text = encode(record, `${message}…`, []);
    // An empty message always fits: the other fields are short.
    if (fits(text) || message === '') return text;
    // Not in the middle of a surrogate pair, which JSON would have to escape.
    message = message.slice(0, Math.floor(message.length * 0.9)).replace(/[\ud800-\udbff]$/, '');
  }
}

/** Where flag or variable say that the last words go; undefined where neither does. */
export function namedTerminationLog(flags: FlagValues, host: Host): string | undefined {
  const flag = flags['termination-log'];
  if (typeof flag === 'string' && flag !== '') return flag;
  const variable = host.environment['TERMINATION_LOG']?.trim() ?? '';
  return variable === '' ? undefined : variable;
}

/** Where the last words go while the settings are not known, since they may be what is wrong: the same places, by hand. */
export function terminationLogPath(flags: FlagValues, host: Host): string | undefined {
  const named = namedTerminationLog(flags, host);
  if (named !== undefined) return named;
  return host.exists(defaultTerminationLog) ? defaultTerminationLog : undefined;
}

/**
 * Writes in place, since Kubernetes mounts the file itself. A path that cannot be written is told and no more: the process
 * ends for another reason, which must not be lost for this one.
 */
export async function tellTerminationLog(
  path: string | undefined,
  facts: Omit<TerminationRecord, 'time' | 'version'>,
  streams: Streams,
): Promise<void> {
  if (path === undefined) return;
  try {
    writeFileSync(path, terminationText({ time: new Date().toISOString(), version, ...facts }));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    await tell(
      streams,
      `cannot write the termination log ${quoted(path, 255)} (--termination-log): ${quoted(why, 300)}`,
    );
  }
}
