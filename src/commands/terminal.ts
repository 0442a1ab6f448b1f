import { styleText } from 'node:util';
import type { Host } from '../settings/host.ts';

/** The terminal on which a command's data is read; a pipe has none, and gets the same text whatever the surroundings. */
export interface Terminal {
  /** Width in cells. */
  readonly columns: number;
  readonly color: boolean;
}

/** Whether to use colours on a terminal: not where the reader forbids them (no-color.org) or the terminal has none. */
export function wantsColor(environment: Host['environment']): boolean {
  return (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
}

/** What a stream of this process is written to; undefined for anything but a terminal. */
export function terminalOf(
  { isTTY, columns }: { readonly isTTY?: boolean; readonly columns?: number },
  environment: Host['environment'],
): Terminal | undefined {
  if (isTTY !== true) return undefined;
  return { columns: columns ?? 80, color: wantsColor(environment) };
}

/** The words that a reader looks for first. */
const styles: Readonly<Record<string, 'green' | 'yellow' | 'red' | 'dim'>> = {
  create: 'green',
  repair: 'green',
  wait: 'yellow',
  conflict: 'red',
  OK: 'green',
  WARN: 'yellow',
  FAIL: 'red',
  Succeeded: 'green',
  Partial: 'yellow',
  Failed: 'red',
  decided: 'yellow',
  'not reached': 'dim',
};

/** A word in the colour that goes with it, if one does. */
export function paint(word: string, terminal: Terminal | undefined): string {
  const style = Object.hasOwn(styles, word) ? styles[word] : undefined;
  if (terminal?.color !== true || style === undefined) return word;
  return styleText(style, word, { validateStream: false });
}
