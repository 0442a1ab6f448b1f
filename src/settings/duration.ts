/**
 * Durations as Go writes them (time.ParseDuration and Duration.String), since the DPA, Velero and every other setting of
 * OADP use them. Kept in milliseconds; nanoseconds survive as fractions of one.
 */

/** The text is no duration; the message says what was expected, not where the text came from. */
export class DurationError extends Error {
  override readonly name = 'DurationError';
}

const unitNanoseconds: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  // Both code points that Unicode has for the micro sign, as in Go.
  ['µs', 1_000n],
  ['μs', 1_000n],
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
]);

// Escapes, since a regular expression comes into the bundle as it stands here, and with one character beyond ASCII in it V8
// keeps the whole bundle in two bytes a character.
const sequence = /^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|[\u00b5\u03bc]s|ms|s|m|h))+$/;
const element = /(\d*)\.?(\d*)(ns|us|[\u00b5\u03bc]s|ms|s|m|h)/g;

/** Go counts nanoseconds in 64 bits. */
const maxNanoseconds = 2n ** 63n - 1n;

/**
 * `90s`, `1h30m`, `1.5h`, `300ms`, `0` in milliseconds. Throws DurationError for anything else, a negative duration included:
 * no setting of nab-sync has a use for one.
 */
export function parseDuration(text: string): number {
  if (text.startsWith('-')) throw new DurationError('expected a duration that is not negative');
  const unsigned = text.startsWith('+') ? text.slice(1) : text;
  if (unsigned === '0') return 0;
  if (!sequence.test(unsigned)) {
    throw new DurationError('expected a duration such as 90s, 2m or 1h30m (units: ms, s, m, h)');
  }
  // Whole nanoseconds, since sums of binary fractions go astray in the last digits.
  let total = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of unsigned.matchAll(element)) {
    const scale = unitNanoseconds.get(unit) ?? 0n;
    total += BigInt(whole) * scale + (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
  }
  if (total > maxNanoseconds) throw new DurationError('expected a duration that fits into 292 years');
  return Number(total / 1_000_000n) + Number(total % 1_000_000n) / 1e6;
}

/** A number without exponent or trailing zeros, at most `digits` after the point. */
function decimal(value: number, digits: number): string {
  const text = value.toFixed(digits);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** Milliseconds as Go prints a duration: `2m0s`, `1h30m0s`, `300ms`, `1.5s`, `0s`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds === 0) return '0s';
  if (milliseconds < 0) return `-${formatDuration(-milliseconds)}`;
  if (milliseconds < 1e-3) return `${decimal(milliseconds * 1e6, 0)}ns`;
  if (milliseconds < 1) return `${decimal(milliseconds * 1e3, 3)}µs`;
  if (milliseconds < 1_000) return `${decimal(milliseconds, 6)}ms`;
  const hours = Math.floor(milliseconds / 3_600_000);
  const minutes = Math.floor((milliseconds % 3_600_000) / 60_000);
  const seconds = decimal((milliseconds % 60_000) / 1_000, 9);
  if (hours > 0) return `${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}
