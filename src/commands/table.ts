import { paint, type Terminal } from './terminal.ts';

/** Tables in the look of kubectl: upper-case headers, three spaces between columns, no lines. */

const gap = 3;

const invisible = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const wide =
  /^[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]$/u;

/** How many cells of a terminal a text takes. Names are ASCII, but messages may quote what a tenant wrote. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text) width += invisible.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return width;
}

/** What fits into `columns` cells, the end of it given up for an ellipsis. */
function cut(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let kept = '';
  let width = 0;
  for (const character of text) {
    width += displayWidth(character);
    if (width >= columns) break;
    kept += character;
  }
  return `${kept}…`;
}

/** Below that, a cut column says nothing; the terminal may wrap it. */
const narrowest = 20;

export interface TableLook {
  /** Colours the words that matter, and cuts the last column so that a row stays on its line. */
  readonly terminal?: Terminal | undefined;
  /** Nothing is cut. */
  readonly wide?: boolean;
}

/** Rows under headers, each column as wide as its widest cell, the last one as it is. Ends with a newline. */
export function table(
  headers: readonly string[],
  rows: readonly (readonly string[])[],
  { terminal, wide = false }: TableLook = {},
): string {
  const lines = [headers, ...rows];
  const widths = headers.map((_, column) => Math.max(...lines.map((line) => displayWidth(line[column] ?? ''))));
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + gap, 0);
  const room = terminal === undefined || wide ? Infinity : Math.max(terminal.columns - before, narrowest);
  return lines
    .map((line) =>
      line
        .map((cell, column) =>
          column === headers.length - 1
            ? paint(cut(cell, room), terminal)
            : paint(cell, terminal) + ' '.repeat((widths[column] ?? 0) - displayWidth(cell) + gap),
        )
        .join('')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}

/** `Name:   value` lines, as in kubectl describe. */
export function pairs(entries: readonly (readonly [string, string])[]): string {
  const width = Math.max(...entries.map(([name]) => name.length)) + 1;
  return entries.map(([name, value]) => `${`${name}:`.padEnd(width)}   ${value}`.trimEnd() + '\n').join('');
}
