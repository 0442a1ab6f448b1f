import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KubeErrorCode } from '../../../src/kube/errors.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { toNonAdminBackupRecord } from '../../../src/oadp/non-admin-backup.ts';
import { nameAt, objectAt, textAt } from '../../../src/oadp/read.ts';
import { decide, worldAt } from '../../../src/sync/decide.ts';
import { NamespacePass, type ItemResult } from '../../../src/sync/namespace-pass.ts';
import { RetainedBackups } from '../../../src/sync/retained-backups.ts';
import { noon, oadpNamespace } from '../../support/gen/api-objects.ts';
import { lifelike } from './support/arbitrary-objects.ts';
import { happenings, LiveCluster, policy } from './support/live-cluster.ts';
import { failing, scriptedClient, type Call, type ScriptedClient } from './support/scripted-client.ts';
import { slotsOf } from './support/pass.ts';

/**
 * A pass against a server that fails in any way at any request, in any world: whatever happens, it ends with a result for
 * each backup, and every request that it made is one that it may make.
 */

const codes: readonly KubeErrorCode[] = [
  'Timeout',
  'Unreachable',
  'Forbidden',
  'NotFound',
  'NamespaceNotFound',
  'NamespaceTerminating',
  'KindNotInstalled',
  'AlreadyExists',
  'Conflict',
  'TooLarge',
  'Invalid',
  'BadRequest',
  'Throttled',
  'ServerError',
  'Malformed',
];

const faults = fc.array(
  fc.oneof(
    { arbitrary: fc.constant(undefined), weight: 6 },
    fc.constantFrom<KubeErrorCode | 'fault'>(...codes, 'fault'),
  ),
  { minLength: 1, maxLength: 30 },
);

interface Ran {
  readonly client: ScriptedClient;
  readonly results: ItemResult[];
  readonly items: readonly string[];
  /** By name, what the server holds in the end and did not before. */
  readonly created: ReadonlyMap<string, JsonObject>;
  readonly callsAtStop: number | undefined;
}

async function run(
  live: LiveCluster,
  namespace: string,
  schedule: readonly (KubeErrorCode | 'fault' | undefined)[],
  stopAt: number,
  probe: boolean,
): Promise<Ran> {
  const stop = new AbortController();
  const created = new Map<string, JsonObject>();
  let callsAtStop: number | undefined;
  const client = scriptedClient([...live.objects.backup.values()], (call: Call) => {
    if (client.calls.length === stopAt) {
      stop.abort();
      callsAtStop = client.calls.length;
    }
    const fault = schedule[client.calls.length % schedule.length];
    if (fault === 'fault') throw new TypeError('a fault of ours');
    if (fault !== undefined) return failing(call, fault);
    if (call.resource !== 'nonadminbackups.oadp.openshift.io') return undefined;
    const there = live.objects.nonAdminBackup.get(`${namespace}/${call.name}`) ?? created.get(call.name);
    if (call.verb === 'get') return there;
    if (call.verb === 'update') return there === undefined ? failing(call, 'NotFound') : undefined;
    if (there !== undefined) return failing(call, 'AlreadyExists');
    created.set(call.name, { ...call.body, metadata: { uid: 'u', ...objectAt(call.body, 'metadata') } });
    return undefined;
  });
  const world = worldAt(policy, live.state, noon);
  const items = [...live.state.backupsOf(namespace)].map((backup) => ({ backup, decision: decide(backup, world) }));
  const store = new Map<string, unknown>();
  const pass = new NamespacePass(
    {
      client,
      state: live.state,
      policy,
      nonAdminBackups: {
        set: (key, record) => {
          store.set(key, record);
        },
        delete: (key) => store.delete(key),
      },
      slots: slotsOf(4),
      retained: new RetainedBackups(5000),
      now: () => noon,
    },
    { isLive: () => false, probe, failedIn: new Map(), stop: stop.signal },
  );
  const results = await pass.run(items);
  return { client, results, items: items.map(({ backup }) => backup.name), created, callsAtStop };
}

test('whatever the server does, each backup has one result and each request was rightful', async () => {
  await fc.assert(
    fc.asyncProperty(
      happenings(lifelike, 40),
      faults,
      fc.oneof(fc.constant(-1), fc.nat({ max: 15 })),
      fc.boolean(),
      async (events, schedule, stopAt, probe) => {
        const live = new LiveCluster();
        for (const event of events) live.happen(event);
        for (const namespace of live.state.claimedNamespaces()) {
          const { client, results, items, created, callsAtStop } = await run(live, namespace, schedule, stopAt, probe);
          expect(results.map(({ backup }) => backup.name)).toEqual(items);
          const read = new Set<string>();
          for (const { verb, resource, name, ref, body } of client.calls) {
            if (resource === 'backups.velero.io') {
              // Backups are only ever read, and only those of this namespace.
              expect(verb).toBe('get');
              expect(ref.namespace).toBe(oadpNamespace);
              expect(items).toContain(name);
              read.add(name);
              continue;
            }
            expect([resource, ref.namespace]).toEqual(['nonadminbackups.oadp.openshift.io', namespace]);
            if (verb === 'create') {
              const nacuuid = nameAt(body, 'metadata', 'labels', 'openshift.io/oadp-nab-synced-from-nacuuid') ?? '';
              expect(read).toContain(nacuuid);
              const backup = live.state.backup(nacuuid);
              expect([backup?.claim.namespace, backup?.claim.name]).toEqual([namespace, name]);
              expect(body).not.toHaveProperty('status');
            }
            if (verb === 'update') {
              expect(ref.subresource).toBe('status');
              expect(body).not.toHaveProperty('spec');
              expect(textAt(body, 'metadata', 'uid')).toBeDefined();
            }
          }
          if (callsAtStop !== undefined) {
            // Those under way when the stop came were let finish, and no more were begun.
            expect(client.calls.length).toBe(callsAtStop);
          }
          for (const { backup, outcome, failure } of results) {
            const isThere = toNonAdminBackupRecord(created.get(backup.claim.name ?? '') ?? {}).nacuuid === backup.name;
            if (outcome === 'created') expect(isThere).toBe(true);
            if (isThere) expect(['created', 'failed', 'repaired', 'present', 'waiting']).toContain(outcome);
            expect(failure !== undefined).toBe(outcome === 'failed');
          }
          expect(client.mostAtOnce()).toBeLessThanOrEqual(4);
        }
      },
    ),
    { numRuns: 200 },
  );
});
