import fc from 'fast-check';
import isEqual from 'lodash/isEqual.js';
import { describe, expect, test } from 'vitest';
import { hostile, lifelike } from './support/arbitrary-objects.ts';
import { happenings, LiveCluster, type Decisions, type Happening, type Kind } from './support/live-cluster.ts';

/** Everything that anybody can learn from the state, in an order of its own. */
function knowledgeOf(live: LiveCluster): unknown {
  return {
    claimed: [...live.state.claimedNamespaces()].sort(),
    refused: [...live.state.refused()].sort(([a], [b]) => (a < b ? -1 : 1)),
    decisions: [...live.allDecisions()].sort(([a], [b]) => (a < b ? -1 : 1)),
    byNamespace: [...live.decisions()]
      .map(([namespace, decisions]) => [namespace, [...decisions.keys()].sort()] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  };
}

/** A cluster that sees the objects of another for the first time, kind by kind in the given order. */
function rebuilt(live: LiveCluster, order: readonly Kind[]): LiveCluster {
  const fresh = new LiveCluster();
  for (const kind of order) fresh.relist(kind, [...live.objects[kind].values()]);
  return fresh;
}

function changedNamespaces(before: Map<string, Decisions>, after: Map<string, Decisions>): string[] {
  const all = new Set([...before.keys(), ...after.keys()]);
  return [...all].filter((namespace) => !isEqual(before.get(namespace), after.get(namespace)));
}

const kinds: readonly Kind[] = [
  'backup',
  'storageLocation',
  'locationOwner',
  'deleteRequest',
  'namespace',
  'nonAdminBackup',
];

const anyOrder = fc.shuffledSubarray([...kinds], { minLength: kinds.length });

describe.each([
  ['in troubled times', lifelike],
  ['among broken and malicious objects', hostile],
])('%s', (_, arbitraries) => {
  const events = happenings(arbitraries, 40);

  test('what is known does not depend on the way that led there', () => {
    fc.assert(
      fc.property(events, anyOrder, (happened, order) => {
        const live = new LiveCluster();
        for (const event of happened) live.happen(event);
        expect(knowledgeOf(live)).toEqual(knowledgeOf(rebuilt(live, order)));
        for (const decisions of live.decisions().values()) expect(decisions.size).toBeGreaterThan(0);
      }),
      { numRuns: 150 },
    );
  });

  test('what is known does not depend on the order in which things are first seen', () => {
    const last = (happened: readonly Happening[]): Happening[] => [
      ...new Map(
        happened.map((event) => [`${event.kind} ${JSON.stringify(event.object['metadata'])}`, event]),
      ).values(),
    ];
    const twoOrders = events
      .map((happened) => last(happened.filter(({ gone }) => !gone)))
      .chain((happened) =>
        fc.tuple(fc.constant(happened), fc.shuffledSubarray(happened, { minLength: happened.length })),
      );
    fc.assert(
      fc.property(twoOrders, ([one, other]) => {
        // One object a key, or the order would say which form of it is the last.
        const [first, second] = [one, other].map((happened) => {
          const live = new LiveCluster();
          for (const event of happened) live.happen(event);
          return live;
        });
        if (first === undefined || second === undefined) throw new Error('two were made');
        fc.pre(isEqual(first.objects, second.objects));
        expect(knowledgeOf(first)).toEqual(knowledgeOf(second));
      }),
    );
  });

  test('whenever something happens, each namespace whose decisions change is said to be affected', () => {
    fc.assert(
      fc.property(events, (happened) => {
        const live = new LiveCluster();
        let before = live.decisions();
        for (const event of happened) {
          live.takeAffected();
          live.happen(event);
          const after = live.decisions();
          const affected = live.takeAffected();
          for (const namespace of changedNamespaces(before, after)) expect(affected).toContain(namespace);
          before = after;
        }
      }),
      { numRuns: 150 },
    );
  });

  test('also when a whole list comes anew', () => {
    const two = fc.tuple(events, events, fc.constantFrom(...kinds));
    fc.assert(
      fc.property(two, ([happened, anew, kind]) => {
        const live = new LiveCluster();
        for (const event of happened) live.happen(event);
        live.takeAffected();
        const before = live.decisions();
        live.relist(
          kind,
          anew.filter((event) => event.kind === kind).map(({ object }) => object),
        );
        const affected = live.takeAffected();
        for (const namespace of changedNamespaces(before, live.decisions())) expect(affected).toContain(namespace);
        expect(knowledgeOf(live)).toEqual(knowledgeOf(rebuilt(live, kinds)));
      }),
      { numRuns: 150 },
    );
  });

  test('when all is gone nothing is left', () => {
    fc.assert(
      fc.property(events, anyOrder, (happened, order) => {
        const live = new LiveCluster();
        for (const event of happened) live.happen(event);
        for (const kind of order) live.relist(kind, []);
        expect(knowledgeOf(live)).toEqual({ claimed: [], refused: [], decisions: [], byNamespace: [] });
      }),
    );
  });
});
