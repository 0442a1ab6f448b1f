import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Store } from '../../../src/kube/store.ts';

interface Pet {
  readonly name: string;
  readonly tags?: readonly string[];
}

type Change = [key: string, before: Pet | undefined, after: Pet | undefined];

function recorded(store: Store<Pet>): Change[] {
  const changes: Change[] = [];
  store.onChange((...change) => {
    changes.push(change);
  });
  return changes;
}

describe('the store', () => {
  test('tells of what was added, changed and deleted, with the record before and after', () => {
    const store = new Store<Pet>();
    const changes = recorded(store);
    store.set('a', { name: 'Ada' });
    store.set('a', { name: 'Bob' });
    store.delete('a');
    expect(changes).toEqual([
      ['a', undefined, { name: 'Ada' }],
      ['a', { name: 'Ada' }, { name: 'Bob' }],
      ['a', { name: 'Bob' }, undefined],
    ]);
    expect(store.size).toBe(0);
  });

  test('makes no change of a record that is equal to the one it has', () => {
    const store = new Store<Pet>();
    store.set('a', { name: 'Ada', tags: ['x'] });
    const changes = recorded(store);
    store.set('a', { name: 'Ada', tags: ['x'] });
    store.replace(new Map([['a', { name: 'Ada', tags: ['x'] }]]));
    store.delete('b');
    expect(changes).toEqual([]);
  });

  test('replace tells only of the difference', () => {
    const store = new Store<Pet>();
    store.set('gone', { name: 'Gus' });
    store.set('same', { name: 'Sue' });
    store.set('new', { name: 'Old' });
    const changes = recorded(store);
    store.replace(
      new Map([
        ['same', { name: 'Sue' }],
        ['new', { name: 'New' }],
        ['extra', { name: 'Eve' }],
      ]),
    );
    expect(changes).toEqual([
      ['gone', { name: 'Gus' }, undefined],
      ['new', { name: 'Old' }, { name: 'New' }],
      ['extra', undefined, { name: 'Eve' }],
    ]);
  });

  test('no listener ever sees a mixture of the old and the new collection', () => {
    const store = new Store<Pet>();
    store.set('a', { name: 'old' });
    store.set('b', { name: 'old' });
    const seen: string[][] = [];
    store.onChange(() => {
      seen.push([...store.values()].map((pet) => pet.name));
    });
    store.replace(
      new Map([
        ['a', { name: 'new' }],
        ['b', { name: 'new' }],
      ]),
    );
    expect(seen).toEqual([
      ['new', 'new'],
      ['new', 'new'],
    ]);
  });

  test('a listener that throws is counted and reported, and costs the others nothing', () => {
    const reported: string[] = [];
    const store = new Store<Pet>({
      onListenerError: (error, key) => reported.push(`${key}: ${error instanceof Error ? error.message : ''}`),
    });
    store.onChange(() => {
      throw new Error('broken');
    });
    const changes = recorded(store);
    store.set('a', { name: 'Ada' });
    store.replace(new Map([['b', { name: 'Bob' }]]));
    expect(changes.map(([key]) => key)).toEqual(['a', 'a', 'b']);
    expect(store.listenerErrors).toBe(3);
    expect(reported).toEqual(['a: broken', 'a: broken', 'b: broken']);
  });

  test('a reporter that throws as well costs nothing either', () => {
    const store = new Store<Pet>({
      onListenerError: () => {
        throw new Error('and this too');
      },
    });
    store.onChange(() => {
      throw new Error('broken');
    });
    const changes = recorded(store);
    store.set('a', { name: 'Ada' });
    expect(changes).toHaveLength(1);
  });

  test('a listener that has left hears nothing more, also when it leaves while being told', () => {
    const store = new Store<Pet>();
    const heard: string[] = [];
    const leave = store.onChange((key) => {
      heard.push(key);
      leave();
    });
    store.set('a', { name: 'Ada' });
    store.set('b', { name: 'Bob' });
    expect(heard).toEqual(['a']);
  });

  test('one function that subscribes twice is called twice and can leave once', () => {
    const store = new Store<Pet>();
    let calls = 0;
    const listener = (): void => {
      calls += 1;
    };
    store.onChange(listener);
    const leave = store.onChange(listener);
    store.set('a', { name: 'Ada' });
    leave();
    store.set('a', { name: 'Bob' });
    expect(calls).toBe(3);
  });

  test('keys that are names of Object.prototype are keys like others', () => {
    const store = new Store<Pet>();
    expect(store.has('__proto__')).toBe(false);
    store.set('__proto__', { name: 'Ada' });
    expect(store.get('__proto__')).toEqual({ name: 'Ada' });
    expect(store.get('constructor')).toBeUndefined();
  });

  test('whatever happens to it, the changes that it told of add up to what it holds', () => {
    const pet = fc.record({ name: fc.constantFrom('x', 'y', 'z') });
    const key = fc.constantFrom('a', 'b', 'c', 'd');
    const step = fc.oneof(
      fc.record({ kind: fc.constant('set' as const), key, pet }),
      fc.record({ kind: fc.constant('delete' as const), key }),
      fc.record({ kind: fc.constant('replace' as const), all: fc.array(fc.tuple(key, pet)) }),
    );
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const store = new Store<Pet>();
        const mirror = new Map<string, Pet>();
        store.onChange((changed, before, after) => {
          expect(mirror.get(changed)).toEqual(before);
          expect(after).not.toEqual(before);
          if (after === undefined) mirror.delete(changed);
          else mirror.set(changed, after);
        });
        for (const one of steps) {
          if (one.kind === 'set') store.set(one.key, one.pet);
          else if (one.kind === 'delete') store.delete(one.key);
          else store.replace(new Map(one.all));
          expect(new Map(store.entries())).toEqual(mirror);
        }
      }),
    );
  });
});
