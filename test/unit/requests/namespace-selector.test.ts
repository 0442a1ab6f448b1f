import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseLabelSelector } from '../../../src/kube/label-selector.ts';
import { labelSelectorObject, labelSelectorText } from '../../../src/requests/namespace-selector.ts';

describe('a LabelSelector as the text that a list takes', () => {
  test.each([
    [{}, ''],
    [{ matchLabels: { tier: 'gold', 'a.b/c': '' } }, 'tier=gold,a.b/c='],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['x', 'y'] }] }, 'a in (x,y)'],
    [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['x'] }] }, 'a notin (x)'],
    [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }, 'a'],
    [{ matchExpressions: [{ key: 'a', operator: 'DoesNotExist', values: [] }] }, '!a'],
    [{ matchLabels: { a: 'x' }, matchExpressions: [{ key: 'b', operator: 'Exists' }] }, 'a=x,b'],
  ])('%j', (selector, text) => {
    expect(labelSelectorText(selector)).toBe(text);
  });

  test.each([
    ['a value that would be a second requirement', { matchLabels: { a: 'x,b=y' } }],
    ['a key that would be one', { matchLabels: { 'a,b': 'x' } }],
    ['a value out of its set', { matchExpressions: [{ key: 'a', operator: 'In', values: ['x),b in (y'] }] }],
    ['In without values', { matchExpressions: [{ key: 'a', operator: 'In' }] }],
    ['Exists with values', { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['x'] }] }],
    ['an operator that there is not', { matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1'] }] }],
    ['a value that is no text', { matchLabels: { a: 1 } }],
    ['an expression that is null', { matchExpressions: [null] }],
    ['a list', []],
    ['a text', 'a=b'],
  ])('is none with %s', (_, selector) => {
    expect(labelSelectorText(selector)).toBeUndefined();
  });

  test('and back again selects the same', () => {
    const word = fc.constantFrom('a', 'b', 'x.y/z');
    const values = fc.array(fc.constantFrom('', 'v', 'w-1'), { minLength: 1, maxLength: 3 });
    const part = fc.oneof(
      fc.tuple(word, values).map(([key, set]) => `${key} in (${set.join(',')})`),
      fc.tuple(word, values).map(([key, set]) => `${key} notin (${set.join(',')})`),
      fc.tuple(word, fc.constantFrom('v', '')).map(([key, value]) => `${key}=${value}`),
      fc.tuple(word, fc.constantFrom('v', 'w-1')).map(([key, value]) => `${key}!=${value}`),
      word,
      word.map((key) => `!${key}`),
    );
    const labels = fc.dictionary(word, fc.constantFrom('', 'v', 'w-1'));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), labels, (parts, given) => {
        const selector = parseLabelSelector(parts.join(','));
        const text = labelSelectorText(labelSelectorObject(selector));
        expect(parseLabelSelector(text ?? 'not a selector').matches(given)).toBe(selector.matches(given));
      }),
    );
  });
});

test('a selector with < or > has no LabelSelector', () => {
  expect(labelSelectorObject(parseLabelSelector('a,b>1'))).toBeUndefined();
});
