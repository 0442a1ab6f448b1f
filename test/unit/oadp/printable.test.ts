import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { printable, quoted } from '../../../src/oadp/printable.ts';

/** Controls, format and direction marks, line and paragraph separators, halves of characters. */
const acts = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

describe('text from outside', () => {
  test.each([
    ['plain text', 'daily backup', 'daily backup'],
    ['other scripts', '日本語 täglich 🦀', '日本語 täglich 🦀'],
    ['a terminal sequence', '\u001b[31mred', '\\u{1b}[31mred'],
    ['a line break', 'a\r\nb', 'a\\u{d}\\u{a}b'],
    ['a tab', 'a\tb', 'a\\u{9}b'],
    ['a null', 'a\u0000b', 'a\\u{0}b'],
    ['a C1 control', 'a\u009bb', 'a\\u{9b}b'],
    ['a direction override', 'a\u202eb', 'a\\u{202e}b'],
    ['a direction isolate', 'a\u2066b', 'a\\u{2066}b'],
    ['a zero-width space', 'a\u200bb', 'a\\u{200b}b'],
    ['a byte order mark', '\ufeffa', '\\u{feff}a'],
    ['a line separator', 'a\u2028b', 'a\\u{2028}b'],
    ['a tag character', 'a\u{e0041}b', 'a\\u{e0041}b'],
    ['half a character', 'a\ud83eb', 'a\\u{d83e}b'],
    ['a private character', 'a\ue000b', 'a\\u{e000}b'],
  ])('%s', (_, text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  test.each([
    [undefined, ''],
    [null, ''],
    ['', ''],
    [7, '(number)'],
    [true, '(boolean)'],
    [{}, '(object)'],
    [[], '(object)'],
  ])('%j is shown as "%s"', (value, shown) => {
    expect(printable(value)).toBe(shown);
  });

  test.each([
    [127, 'x'.repeat(127)],
    [128, 'x'.repeat(128)],
    [129, `${'x'.repeat(128)}…`],
    [1_000_000, `${'x'.repeat(128)}…`],
  ])('of %i characters is cut to 128', (length, shown) => {
    expect(printable('x'.repeat(length))).toBe(shown);
  });

  test('is cut between characters, never in one', () => {
    expect(printable('🦀🦀🦀', 2)).toBe('🦀🦀…');
    expect(printable('🦀🦀', 2)).toBe('🦀🦀');
  });

  test('is never walked to its end', () => {
    const huge = Buffer.alloc(5_000_000, 'x').toString();
    const began = performance.now();
    for (let times = 0; times < 1000; times += 1) printable(huge);
    expect(performance.now() - began).toBeLessThan(2000);
  });

  test('never shows what a terminal or browser would act on, and is bounded', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 200 }), (text, max) => {
        const shown = printable(text, max);
        expect(shown).not.toMatch(acts);
        expect(shown.length).toBeLessThanOrEqual(10 * max + 1);
      }),
    );
  });
});

describe('quoted text', () => {
  test('stands in double quotes, those in it escaped', () => {
    expect(quoted('say "hi"')).toBe('"say \\"hi\\""');
    expect(quoted(undefined)).toBe('""');
    expect(quoted('abc', 2)).toBe('"ab…"');
  });
});
