import { describe, expect, test } from 'vitest';
import { objectAt, printable, stringAt } from '../../../src/kube/json.ts';
import { resourcePath } from '../../../src/kube/resource.ts';
import { wentBack } from '../../../src/kube/resource-version.ts';
import { backups, namespaces } from './kinds.ts';

describe('texts from outside', () => {
  test('become one line without control characters, escapes and direction marks', () => {
    expect(printable('a\nb\r\n\tc\u001b[31md\u0000e\u202ef\u2028g', 100)).toBe('a b c [31md e f g');
  });

  test('are cut by characters, never in the middle of one', () => {
    expect(printable('😀'.repeat(10), 4)).toBe('😀😀😀…');
    expect(printable('abcd', 4)).toBe('abcd');
  });

  test('may hold half a character without harm', () => {
    expect(printable('a\ud800b', 10)).toBe('a b');
  });
});

describe('reads of objects from outside', () => {
  test('find nothing where something else stands', () => {
    expect(objectAt({ metadata: null }, 'metadata')).toEqual({});
    expect(objectAt({ metadata: ['x'] }, 'metadata')).toEqual({});
    expect(stringAt({ name: 5 }, 'name')).toBeUndefined();
    expect(stringAt({ name: '' }, 'name')).toBeUndefined();
  });

  test('find nothing in the prototype', () => {
    expect(stringAt({}, 'toString')).toBeUndefined();
    expect(objectAt({}, '__proto__')).toEqual({});
  });
});

describe('the path of a resource', () => {
  test('names the group, the namespace, the object and the subresource', () => {
    expect(resourcePath(backups)).toBe('/apis/velero.io/v1/backups');
    expect(resourcePath(backups, { namespace: 'a', name: 'b', subresource: 'status' })).toBe(
      '/apis/velero.io/v1/namespaces/a/backups/b/status',
    );
    expect(resourcePath(namespaces, { name: 'a' })).toBe('/api/v1/namespaces/a');
  });

  test('cannot be led elsewhere by a name', () => {
    expect(resourcePath(backups, { namespace: '../x', name: 'a/b?c#d' })).toBe(
      '/apis/velero.io/v1/namespaces/..%2Fx/backups/a%2Fb%3Fc%23d',
    );
  });
});

describe('resource versions', () => {
  test('are compared as numbers of any length', () => {
    expect(wentBack('9', '10')).toBe(false);
    expect(wentBack('10', '9')).toBe(true);
    expect(wentBack('10', '10')).toBe(false);
    expect(wentBack('9007199254740993', '9007199254740992')).toBe(true);
  });

  test('that are no numbers are not judged', () => {
    expect(wentBack('', '5')).toBe(false);
    expect(wentBack('abc', '5')).toBe(false);
    expect(wentBack('5', '0x1')).toBe(false);
  });
});
