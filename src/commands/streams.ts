import type { Writable } from 'node:stream';
import type { Terminal } from './terminal.ts';

/** Where a command speaks. Data goes to `out`, everything for people to `error`. */
export interface Streams {
  readonly out: Writable;
  readonly error: Writable;
  /** What `out` is read on; left out for a pipe or a file. */
  readonly terminal?: Terminal | undefined;
  /** The same for `error`. */
  readonly errorTerminal?: Terminal | undefined;
}

/** The reader went away; after the first such error Node may say that the stream is gone. */
const readerGone: ReadonlySet<unknown> = new Set(['EPIPE', 'ERR_STREAM_DESTROYED']);

/**
 * Resolves when the text is handed over, so that the process may end. A reader that went away (`plan | head`) has seen what
 * it wanted: no error. Other errors (a full disk behind `>`) reject.
 */
export function write(stream: Writable, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => {
      if (error === null || error === undefined || ('code' in error && readerGone.has(error.code))) resolve();
      else reject(error);
    });
  });
}

/** A line for people, under the program's name. Never rejects: when stderr fails, there is nobody left to tell. */
export async function tell({ error }: Streams, line: string): Promise<void> {
  await write(error, `nab-sync: ${line}\n`).catch(() => undefined);
}
