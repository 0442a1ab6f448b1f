/** Tables in the look of kubectl: upper-case headers, three spaces between columns, no lines. */

const invisible = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const wide =
  /^[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]$/u;

/** How many cells of a terminal a text takes. Names are ASCII, but messages may quote what a tenant wrote. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text) width += invisible.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return width;
}

/** Rows under headers, each column as wide as its widest cell, the last one as it is. Ends with a newline. */
export function table(headers: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headers, ...rows];
  const widths = headers.map((_, column) => Math.max(...lines.map((line) => displayWidth(line[column] ?? ''))));
  return lines
    .map((line) =>
      line
        .map((cell, column) =>
          column === line.length - 1 ? cell : cell + ' '.repeat((widths[column] ?? 0) - displayWidth(cell) + 3),
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
