import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LabelSelectorError, parseLabelSelector } from '../../../src/kube/label-selector.ts';

const labels = { team: 'payments', 'example.com/tier': 'gold', empty: '', size: '10' };

describe('a label selector', () => {
  test.each([
    '',
    '   ',
    'team',
    'team=payments',
    'team==payments',
    'team = payments',
    'team!=billing',
    'nothing!=billing',
    'team in (payments, billing)',
    'team in(payments)',
    'team notin (billing)',
    'nothing notin (billing)',
    '!nothing',
    '! nothing',
    'example.com/tier=gold',
    'example.com/tier',
    'empty=',
    'empty in ()',
    'empty in (,a)',
    'size > 9',
    'size < 11',
    'size>-1',
    'team,example.com/tier in (gold),!nothing',
    ' team = payments , size ',
  ])('%j selects the namespace', (selector) => {
    expect(parseLabelSelector(selector).matches(labels)).toBe(true);
  });

  test.each([
    'nothing',
    'team=billing',
    'team!=payments',
    'team in (billing)',
    'team notin (payments)',
    '!team',
    'nothing in (a)',
    'nothing=',
    'team=',
    'size > 10',
    'size < 10',
    'team > 1',
    'nothing > 1',
    'team=payments,nothing',
  ])('%j does not select the namespace', (selector) => {
    expect(parseLabelSelector(selector).matches(labels)).toBe(false);
  });

  test('may use the words of the syntax as values', () => {
    expect(parseLabelSelector('a=in').matches({ a: 'in' })).toBe(true);
    expect(parseLabelSelector('a in (in, notin)').matches({ a: 'notin' })).toBe(true);
  });

  test('never takes what every JavaScript object has for a label', () => {
    expect(parseLabelSelector('constructor').matches({})).toBe(false);
    expect(parseLabelSelector('!constructor').matches({})).toBe(true);
    expect(parseLabelSelector('constructor=x').matches({ constructor: 'x' })).toBe(true);
  });

  test('keeps its text', () => {
    expect(parseLabelSelector('team in (a)').text).toBe('team in (a)');
  });

  test.each([
    ['team=payments,', 'expected a label key, found the end at character 15'],
    [',team', 'expected a label key, found "," at character 1'],
    ['team,,size', 'expected a label key, found "," at character 6'],
    ['team payments', `expected ',', '=', '==', '!=', '<', '>', 'in' or 'notin', found "payments" at character 6`],
    ['team=a b', `expected ',', found "b" at character 8`],
    ['team in payments', `expected '(', found "payments" at character 9`],
    ['team in (a', `expected ')', found the end at character 11`],
    ['team in (a b)', `expected ')', found "b" at character 12`],
    ['team in', `expected '(', found the end at character 8`],
    ['=a', 'expected a label key, found "=" at character 1'],
    ['!', 'expected a label key, found the end at character 2'],
    ['!!a', 'expected a label key, found "!" at character 2'],
    ['!a=b', `expected ',', found "=" at character 3`],
    ['in=a', 'expected a label key, found "in" at character 1'],
    ['-team=a', 'expected a label key, found "-team" at character 1'],
    ['a/b/c=d', 'expected a label key, found "a/b/c" at character 1'],
    ['Example.com/x', 'expected a label key, found "Example.com/x" at character 1'],
    ['team=-a', 'expected a label value, found "-a" at character 6'],
    ['team=ä', 'expected a label value, found "ä" at character 6'],
    ['size>many', 'expected a whole number, found "many" at character 6'],
    ['size>', 'expected a whole number, found the end at character 6'],
    ['team===a', `expected ',', found "=" at character 7`],
    [`${'k'.repeat(64)}=a`, 'expected a label key'],
    [`k=${'v'.repeat(64)}`, 'expected a label value'],
  ])('%j is refused: %s', (selector, message) => {
    expect(() => parseLabelSelector(selector)).toThrow(LabelSelectorError);
    expect(() => parseLabelSelector(selector)).toThrow(message);
  });

  test('is read or refused with a position inside the text, whatever the text', () => {
    const part = fc.constantFrom(
      'team',
      'in',
      'notin',
      '(',
      ')',
      ',',
      '=',
      '==',
      '!=',
      '!',
      '<',
      '>',
      ' ',
      '5',
      'a/b',
      '\u0000',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(part).map((parts) => parts.join('')),
        ),
        (text) => {
          try {
            expect(typeof parseLabelSelector(text).matches(labels)).toBe('boolean');
          } catch (error) {
            if (!(error instanceof LabelSelectorError)) throw error;
            expect(error.position).toBeGreaterThanOrEqual(1);
            expect(error.position).toBeLessThanOrEqual(text.length + 1);
          }
        },
      ),
    );
  });
});
