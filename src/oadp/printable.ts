/** Characters that a terminal, a log or a browser would act on instead of showing: controls, format and bidi marks, separators. */
const unprintable = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * Text that came from outside, made fit to be shown in a message, a table, a log or an event: cut to `max` characters
 * and with every character escaped that is not plainly visible (`\u{1b}`). What is no string is shown as its JSON type.
 *
 * Everything in a Backup is a tenant's to write, so none of it is printed in any other way.
 */
export function printable(text: unknown, max = 128): string {
  if (typeof text !== 'string') return text === undefined || text === null ? '' : `(${typeof text})`;
  // Twice the bound in UTF-16 units always holds `max` characters, so a 64 KiB annotation is never walked to its end.
  const head = Array.from(text.slice(0, 2 * max))
    .slice(0, max)
    .join('');
  const escaped = head.replace(unprintable, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`);
  return head.length < text.length ? `${escaped}…` : escaped;
}

/** `printable` in double quotes, for use inside a sentence. */
export function quoted(text: unknown, max?: number): string {
  return `"${printable(text, max).replaceAll('"', '\\"')}"`;
}
