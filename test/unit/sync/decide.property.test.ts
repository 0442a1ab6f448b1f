import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { nonAdminBackupFor, syncedStatus } from '../../../src/oadp/non-admin-backup.ts';
import { decide, originOf, trailOf, worldAt } from '../../../src/sync/decide.ts';
import { explain, plan } from '../../../src/sync/plan.ts';
import { actionOf, refusalReasons } from '../../../src/sync/reasons.ts';
import { noon, oadpNamespace, second } from '../../support/gen/api-objects.ts';
import { hostile, lifelike, nacuuids } from './support/arbitrary-objects.ts';
import { happenings, LiveCluster, policy, type Happening } from './support/live-cluster.ts';

/**
 * What must hold in any world whatever. The checks read the raw objects by plain means of their own, never the records
 * that the rules look at, so that one error cannot hide in both.
 */

const anyTime = fc.constantFrom(-3600 * second, 0, 90 * second, 3600 * second).map((offset) => noon + offset);

function cluster(events: readonly Happening[]): LiveCluster {
  const made = new LiveCluster();
  for (const event of events) made.happen(event);
  return made;
}

/** A value by path, where every step is an object's own key. */
function raw(object: unknown, ...path: string[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null ? Object.getOwnPropertyDescriptor(value, key)?.value : undefined,
    object,
  );
}

const isProtected = /^(kube-.*|openshift-.*|openshift)$/;
const nabslMarks = ['openshift.io/oadp-nabsl-origin-name', 'openshift.io/oadp-nabsl-origin-namespace'];

/** Everything that must be true of a Backup for which something is written to a namespace. */
function expectRightful(backup: JsonObject, { objects }: LiveCluster): void {
  const namespace = raw(backup, 'metadata', 'annotations', 'openshift.io/oadp-nab-origin-namespace');
  const name = raw(backup, 'metadata', 'annotations', 'openshift.io/oadp-nab-origin-name');
  if (typeof namespace !== 'string' || typeof name !== 'string') throw new Error('no origin');

  // It holds that namespace alone, which is nobody's but a tenant's.
  expect(raw(backup, 'spec', 'includedNamespaces')).toEqual([namespace]);
  expect(namespace).not.toBe(oadpNamespace);
  expect(namespace).not.toMatch(isProtected);
  expect(raw(backup, 'metadata', 'labels', 'openshift.io/oadp-nab-origin-nacuuid')).toBe(
    raw(backup, 'metadata', 'name'),
  );

  // It lies in a location of the admin's, or in one of that very tenant.
  const location = objects.storageLocation.get(String(raw(backup, 'spec', 'storageLocation')));
  expect(location).toBeDefined();
  const marks = nabslMarks.map((mark) => raw(location, 'metadata', 'annotations', mark));
  const ownerNacuuid = raw(location, 'metadata', 'labels', 'openshift.io/oadp-nabsl-origin-nacuuid');
  if (marks.every((mark) => mark === undefined) && ownerNacuuid === undefined) {
    const isDefault = raw(location, 'spec', 'default') === true;
    expect(isDefault || raw(location, 'metadata', 'name') === 'extra').toBe(true);
  } else {
    expect(marks[1]).toBe(namespace);
    const owner = objects.locationOwner.get(`${namespace}/${String(marks[0])}`);
    expect(owner).toBeDefined();
    expect(raw(owner, 'metadata', 'deletionTimestamp')).not.toEqual(expect.any(String));
    const present = raw(owner, 'status', 'veleroBackupStorageLocation', 'nacuuid');
    if (typeof present === 'string' && present !== '') expect(present).toBe(ownerNacuuid);
  }

  // It is finished, and nobody is getting rid of it.
  expect(raw(backup, 'metadata', 'deletionTimestamp')).not.toEqual(expect.any(String));
  expect(['Completed', 'PartiallyFailed', 'Failed']).toContain(raw(backup, 'status', 'phase'));
  expect(raw(backup, 'status', 'completionTimestamp')).toEqual(expect.any(String));
  for (const request of objects.deleteRequest.values()) {
    if (raw(request, 'spec', 'backupName') !== raw(backup, 'metadata', 'name')) continue;
    expect(raw(request, 'status', 'phase')).toBe('Processed');
  }

  // Its namespace can take it.
  const home = objects.namespace.get(namespace);
  expect(home).toBeDefined();
  expect(raw(home, 'metadata', 'deletionTimestamp')).not.toEqual(expect.any(String));
  expect(raw(home, 'status', 'phase')).not.toBe('Terminating');
  expect(raw(home, 'metadata', 'labels', 'selected')).not.toBe('no');
}

describe.each([
  ['in troubled times', lifelike],
  ['among broken and malicious objects', hostile],
])('%s', (_, arbitraries) => {
  const world = happenings(arbitraries, 40);

  test('every Backup gets a decision, a trail and a row in the plan, and nothing throws', () => {
    fc.assert(
      fc.property(world, anyTime, (events, now) => {
        const live = cluster(events);
        const at = worldAt(policy, live.state, now);
        for (const backup of live.state.allBackups()) {
          const { action, reason, message } = decide(backup, at);
          expect(action).toBe(actionOf[reason]);
          expect(message).toMatch(/^[A-Z].*\.$/s);
          expect(trailOf(backup, at).filter(({ outcome }) => outcome === 'decided')).toHaveLength(1);
          explain(live.state, policy, now, { backup: backup.name });
        }
        expect(plan(live.state, policy, now)).toHaveLength(live.objects.backup.size);
        expect(live.listenerErrors).toBe(0);
      }),
    );
  });

  test('nothing is ever written where it does not belong', () => {
    fc.assert(
      fc.property(world, anyTime, (events, now) => {
        const live = cluster(events);
        for (const [name, { action }] of live.allDecisions(now)) {
          const backup = live.objects.backup.get(name);
          if ((action === 'create' || action === 'repair') && backup !== undefined) expectRightful(backup, live);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('at most one NAB is created under a name, none where there is one, and only our own are repaired', () => {
    fc.assert(
      fc.property(world, anyTime, (events, now) => {
        const live = cluster(events);
        const written = new Set<string>();
        for (const [name, { action }] of live.allDecisions(now)) {
          if (action !== 'create' && action !== 'repair') continue;
          const backup = live.state.backup(name);
          if (backup === undefined) throw new Error('a decision without a Backup');
          const origin = originOf(backup);
          const key = `${origin.namespace}/${origin.name}`;
          expect(written).not.toContain(key);
          written.add(key);
          const nab = live.objects.nonAdminBackup.get(key);
          if (action === 'create') {
            expect(nab).toBeUndefined();
          } else {
            const syncLabel = raw(nab, 'metadata', 'labels', 'openshift.io/oadp-nab-synced-from-nacuuid');
            const inStatus = raw(nab, 'status', 'veleroBackup', 'nacuuid');
            const identity = typeof inStatus === 'string' && inStatus !== '' ? inStatus : syncLabel;
            expect([typeof syncLabel, identity]).toEqual(['string', origin.nacuuid]);
            expect(raw(nab, 'metadata', 'deletionTimestamp')).not.toEqual(expect.any(String));
            expect(raw(nab, 'spec', 'deleteBackup')).not.toBe(true);
          }
        }
      }),
    );
  });

  test('a refused Backup is refused when it is indexed and is no namespace’s work; all others are', () => {
    fc.assert(
      fc.property(world, (events) => {
        const live = cluster(events);
        const refusals = new Set<string>(refusalReasons);
        const filed = new Set([...live.decisions().values()].flatMap((decisions) => [...decisions.keys()]));
        for (const [name, decision] of live.allDecisions()) {
          const refused = refusals.has(decision.reason);
          expect(live.state.refused().get(name)).toEqual(refused ? decision : undefined);
          expect(filed.has(name)).toBe(!refused);
        }
        expect(live.state.refused().size + filed.size).toBe(live.objects.backup.size);
      }),
    );
  });

  test('texts are one printable line of bounded length', () => {
    fc.assert(
      fc.property(world, (events) => {
        const live = cluster(events);
        const world = worldAt(policy, live.state, noon);
        const rows = plan(live.state, policy, noon);
        const trails = [...live.state.allBackups()].flatMap((backup) => trailOf(backup, world));
        const texts = [
          ...rows.flatMap(({ backup, namespace, name, nacuuid, message }) => [
            backup,
            namespace,
            name,
            nacuuid,
            message,
          ]),
          ...trails.flatMap(({ asks, values }) => [asks, ...Object.values(values)]),
        ];
        for (const text of texts) {
          expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
          // Three escaped texts of 128 characters are the most that a sentence holds.
          expect(text.length).toBeLessThan(5000);
        }
      }),
    );
  });

  test('a NAB and its status can be made of whatever lies in a Backup', () => {
    fc.assert(
      fc.property(arbitraries.backup, arbitraries.nonAdminBackup, (backup, nab) => {
        const origin = { nacuuid: 'id', namespace: 'team-a', name: 'daily' };
        const created = nonAdminBackupFor(backup, origin, 'bucket');
        expect(created).toMatchObject({ metadata: { name: 'daily', namespace: 'team-a' } });
        const present = raw(nab, 'status');
        const status = syncedStatus(
          backup,
          origin,
          oadpNamespace,
          typeof present === 'object' && present !== null ? { ...present } : undefined,
          noon,
        );
        expect(status).toMatchObject({ phase: 'Created', veleroBackup: { nacuuid: 'id', namespace: oadpNamespace } });
        expect(Object.getPrototypeOf(status)).toBe(Object.prototype);
      }),
    );
  });
});

test('the identity of a Backup never shows in what is said about another namespace’s', () => {
  fc.assert(
    fc.property(happenings(lifelike, 40), (events) => {
      const live = cluster(events);
      const world = worldAt(policy, live.state, noon);
      for (const [namespace, decisions] of live.decisions()) {
        const own = new Set(decisions.keys());
        for (const [name, { message }] of decisions) {
          const backup = live.state.backup(name);
          if (backup === undefined) throw new Error('a decision without a Backup');
          const texts = [message, ...trailOf(backup, world).flatMap(({ values }) => Object.values(values))];
          for (const secret of nacuuids.filter((nacuuid) => !own.has(nacuuid))) {
            expect(texts.join('\n'), `${namespace}: ${name}`).not.toContain(secret);
          }
        }
      }
    }),
    { numRuns: 300 },
  );
});
