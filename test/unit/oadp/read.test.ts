import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { listAt, nameAt, objectAt, rfc3339Seconds, textAt, timeAt, valueAt } from '../../../src/oadp/read.ts';

describe('reading what may not be there', () => {
  test.each([undefined, null, 7, 'text', [], {}, { a: null }, { a: 'text' }, { a: [] }, { a: { b: null } }])(
    'in %j there is nothing at a.b',
    (object) => {
      expect(textAt(object, 'a', 'b')).toBeUndefined();
      expect(nameAt(object, 'a', 'b')).toBeUndefined();
      expect(timeAt(object, 'a', 'b')).toBeUndefined();
      expect(objectAt(object, 'a', 'b')).toBeUndefined();
      expect(listAt(object, 'a', 'b')).toEqual([]);
    },
  );

  test('a key with dots and slashes is one key', () => {
    expect(textAt({ 'openshift.io/oadp': 'True' }, 'openshift.io/oadp')).toBe('True');
  });

  test('an empty text is a text, but no name', () => {
    expect(textAt({ a: '' }, 'a')).toBe('');
    expect(nameAt({ a: '' }, 'a')).toBeUndefined();
    expect(nameAt({ a: 'x' }, 'a')).toBe('x');
  });

  test('a list is no object and an object no list', () => {
    expect(objectAt({ a: [] }, 'a')).toBeUndefined();
    expect(objectAt({ a: { b: 1 } }, 'a')).toEqual({ b: 1 });
    expect(listAt({ a: { length: 1 } }, 'a')).toEqual([]);
    expect(listAt({ a: [1] }, 'a')).toEqual([1]);
  });

  test('of a whole object everything can be read', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.array(fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor'))),
        (json, path) => {
          for (const read of [valueAt, textAt, nameAt, timeAt, objectAt, listAt]) {
            expect(() => read(json, ...path)).not.toThrow();
          }
        },
      ),
    );
  });
});

describe('a time', () => {
  test.each([
    ['2026-01-15T12:00:00Z', Date.UTC(2026, 0, 15, 12)],
    ['2026-01-15T12:00:00.123456Z', Date.UTC(2026, 0, 15, 12, 0, 0, 123)],
    ['2026-01-15T12:00:00.9Z', Date.UTC(2026, 0, 15, 12, 0, 0, 900)],
    ['2026-01-15T12:00:00+02:00', Date.UTC(2026, 0, 15, 10)],
    ['2026-01-15T12:00:00-02:30', Date.UTC(2026, 0, 15, 14, 30)],
    ['0001-01-01T00:00:00Z', Date.parse('0001-01-01T00:00:00Z')],
  ])('%s is read', (text, milliseconds) => {
    expect(timeAt({ time: text }, 'time')).toBe(milliseconds);
  });

  test.each([
    '',
    'now',
    '2026',
    '2026-01-15',
    '2026-01-15 12:00:00Z',
    '2026-01-15T12:00:00',
    '2026-01-15T12:00Z',
    '2026-13-15T12:00:00Z',
    '2026-01-15T25:00:00Z',
    '2026-01-15T12:00:00+0200',
    ' 2026-01-15T12:00:00Z',
    '2026-01-15T12:00:00Z\n',
    '+12026-01-15T12:00:00Z',
    '15 Jan 2026 (about)',
  ])('%j is none', (text) => {
    expect(timeAt({ time: text }, 'time')).toBeUndefined();
  });

  test.each([Date.UTC(2026, 0, 15), new Date(0), true])('%j is none', (time) => {
    expect(timeAt({ time }, 'time')).toBeUndefined();
  });

  test('is written in UTC and whole seconds', () => {
    expect(rfc3339Seconds(Date.UTC(2026, 0, 15, 12, 0, 0, 999))).toBe('2026-01-15T12:00:00Z');
  });

  test.each([
    ['0000-01-01T00:00:00+01:00', '-000001-12-31T23:00:00Z'],
    ['9999-12-31T23:30:00-01:00', '+010000-01-01T00:30:00Z'],
  ])('%s, which only a forger writes, is written whole', (text, written) => {
    expect(rfc3339Seconds(timeAt({ time: text }, 'time') ?? 0)).toBe(written);
  });

  test('that was read can be written, whatever it was', () => {
    const parts = [
      fc.constantFrom(0, 1, 1970, 2026, 9999),
      fc.integer({ min: 0, max: 13 }),
      fc.integer({ min: 0, max: 32 }),
    ];
    fc.assert(
      fc.property(fc.tuple(...parts), fc.constantFrom('Z', '+23:59', '-23:59'), ([year, month, day], zone) => {
        const [yyyy, mm, dd] = [[year, 4] as const, [month, 2] as const, [day, 2] as const].map(([number, digits]) =>
          String(number).padStart(digits, '0'),
        );
        const time = timeAt({ time: `${yyyy}-${mm}-${dd}T23:30:00${zone}` }, 'time');
        if (time !== undefined) expect(rfc3339Seconds(time)).toMatch(/^[+-]?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      }),
    );
  });
});
