import { expect, test } from 'vitest';
import { formatAge } from '../../../src/commands/age.ts';

test.each([
  [0, '0s'],
  [-5_000, '0s'],
  [119_999, '119s'],
  [120_000, '2m'],
  [330_000, '5m30s'],
  [600_000, '10m'],
  [3 * 3_600_000, '3h'],
  [3.5 * 3_600_000, '3h30m'],
  [9.9 * 3_600_000, '9h'],
  [50 * 3_600_000, '2d2h'],
  [800 * 86_400_000, '800d'],
])('%d ms ago is %s, as kubectl says it', (milliseconds, text) => {
  expect(formatAge(milliseconds)).toBe(text);
});
