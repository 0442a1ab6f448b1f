import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isDnsLabel, isDnsSubdomain, isLabelValue } from '../../../src/oadp/names.ts';

/** Any text, with plenty of the characters in which legal and illegal names differ. */
const almostNames = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'z', '0', '9', '-', '.', '_', 'A', 'Z', '/', '\n', ' ', 'ä', '\u{1f980}') }),
  fc.string(),
);

describe('a DNS label', () => {
  test.each(['a', '0', 'a-b', 'a--b', '7up', 'a'.repeat(63)])('may be %s', (text) => {
    expect(isDnsLabel(text)).toBe(true);
  });

  test.each(['', '-', '-a', 'a-', 'A', 'a.b', 'a_b', 'a b', 'a\n', '\na', 'ä', 'ａ', 'a'.repeat(64)])(
    'may not be %j',
    (text) => {
      expect(isDnsLabel(text)).toBe(false);
    },
  );
});

describe('a DNS subdomain', () => {
  test.each(['a', 'a.b', '0.0.0', 'a-b.c-d', `${'a'.repeat(100)}.b`, 'a'.repeat(253)])('may be %s', (text) => {
    expect(isDnsSubdomain(text)).toBe(true);
  });

  test.each(['', '.', 'a.', '.a', 'a..b', 'a.-b', 'a-.b', 'A.b', 'a/b', 'a.b\n', 'a'.repeat(254)])(
    'may not be %j',
    (text) => {
      expect(isDnsSubdomain(text)).toBe(false);
    },
  );

  test('is checked at once, also if it was made to be slow', () => {
    const began = performance.now();
    expect(isDnsSubdomain(`${'a-'.repeat(126)}!`)).toBe(false);
    expect(isDnsSubdomain(`${'a.'.repeat(126)}!`)).toBe(false);
    expect(performance.now() - began).toBeLessThan(100);
  });
});

describe('a label value', () => {
  test.each(['a', 'A', '9', 'a.b_c-D', 'x'.repeat(63)])('may be %s', (text) => {
    expect(isLabelValue(text)).toBe(true);
  });

  test.each(['', '-a', 'a-', '.a', 'a.', '_', 'a b', 'a/b', 'ä', 'a\n', 'x'.repeat(64)])('may not be %j', (text) => {
    expect(isLabelValue(text)).toBe(false);
  });
});

test('every DNS label is a subdomain and a label value; no illegal character is in any of them', () => {
  fc.assert(
    fc.property(almostNames, (text) => {
      if (isDnsLabel(text)) expect([isDnsSubdomain(text), isLabelValue(text)]).toEqual([true, true]);
      if (isDnsSubdomain(text)) expect(text.split('.').every((part) => /^[a-z0-9-]+$/.test(part))).toBe(true);
      if (isLabelValue(text)) expect(text).toMatch(/^[-A-Za-z0-9_.]+$/);
    }),
  );
});
