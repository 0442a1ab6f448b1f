import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DurationError, formatDuration, parseDuration } from '../../../src/settings/duration.ts';

describe('a duration', () => {
  test.each([
    ['0', 0],
    ['0s', 0],
    ['90s', 90_000],
    ['2m', 120_000],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['300ms', 300],
    ['1h1m1.001s', 3_661_001],
    ['.5s', 500],
    ['1.s', 1_000],
    ['+5s', 5_000],
    ['100us', 0.1],
    ['100µs', 0.1],
    ['100μs', 0.1],
    ['7ns', 0.000007],
    ['0.1s0.2s', 300],
    ['1m1m', 120_000],
  ])('%s is %d milliseconds', (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds);
  });

  test.each([
    '',
    ' ',
    '5',
    '1.5',
    's',
    '.s',
    '2 m',
    ' 2m',
    '2m ',
    '2d',
    '2M',
    '1h-3m',
    '++1s',
    '2m\n',
    '1e3s',
    '0x1s',
    'Infinity',
    'NaNs',
    'two minutes',
  ])('%j is refused, saying what a duration looks like', (text) => {
    expect(() => parseDuration(text)).toThrow(DurationError);
    expect(() => parseDuration(text)).toThrow('expected a duration such as 90s, 2m or 1h30m');
  });

  test.each(['-1s', '-0.5h', '-2m30s'])('%s is refused as negative', (text) => {
    expect(() => parseDuration(text)).toThrow('expected a duration that is not negative');
  });

  test('beyond what Go can hold is refused', () => {
    expect(() => parseDuration(`${'9'.repeat(400)}h`)).toThrow('292 years');
    expect(() => parseDuration('2562048h')).toThrow('292 years');
    expect(parseDuration('2562047h')).toBe(2_562_047 * 3_600_000);
  });

  test.each([
    [0, '0s'],
    [120_000, '2m0s'],
    [90_000, '1m30s'],
    [5_400_000, '1h30m0s'],
    [86_400_000, '24h0m0s'],
    [3_661_001, '1h1m1.001s'],
    [1_500, '1.5s'],
    [1_000, '1s'],
    [300, '300ms'],
    [100, '100ms'],
    [1.5, '1.5ms'],
    [0.1, '100µs'],
    [0.000007, '7ns'],
    [-1_500, '-1.5s'],
  ])('of %d milliseconds is written %s, as Go does', (milliseconds, text) => {
    expect(formatDuration(milliseconds)).toBe(text);
  });

  test('that was written is read back the same', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 ** 12 }), (milliseconds) => {
        expect(parseDuration(formatDuration(milliseconds))).toBe(milliseconds);
      }),
    );
  });

  test('is read or refused, whatever the text, without any other error', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          expect(parseDuration(text)).toBeGreaterThanOrEqual(0);
        } catch (error) {
          expect(error).toBeInstanceOf(DurationError);
        }
      }),
    );
  });
});
