import { describe, expect, test, vi } from 'vitest';
import countBy from 'lodash/countBy.js';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeErrorCode } from '../../../src/kube/errors.ts';
import { isJsonObject } from '../../../src/kube/json.ts';
import { RetainedBackups } from '../../../src/sync/retained-backups.ts';
import { RequestSlots, type Lane, type SlotOptions } from '../../../src/sync/request-slots.ts';
import {
  at,
  backupNotFound,
  bareNonAdminBackup,
  hour,
  minute,
  nonAdminBackup,
  nonAdminStorageLocation,
  ownedStorageLocation,
  noon,
  second,
  veleroBackup,
} from '../../support/gen/api-objects.ts';
import { backupsNamed, passWorld, slotsOf } from './support/pass.ts';
import { failing, type Call } from './support/scripted-client.ts';

/** Most requests of one namespace. */
const atOnce = 12;

const policyDenial = { deniedBy: 'admission' } as const;
const quotaDenial = { message: 'exceeded quota: few', deniedBy: 'admission' } as const;

/** Names that sort as they are numbered. */
function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `b${String(index).padStart(4, '0')}`);
}

function isStatus({ verb, ref }: Call): boolean {
  return verb === 'update' && ref.subresource === 'status';
}

describe('a missing NAB', () => {
  test('is created from the Backup as it is now, and gets its status: three requests', async () => {
    const { run, client } = passWorld();
    const results = await run();
    expect(client.said()).toEqual(['get team-a-daily-1', 'create daily', 'update daily/status']);
    expect(results.get('team-a-daily-1')).toMatchObject({
      outcome: 'created',
      reason: 'Missing',
      nabUid: 'uid-of-daily',
    });
  });

  test('is created in its namespace with the sync label, all in one request', async () => {
    const { run, client } = passWorld();
    await run();
    expect(client.calls[1]).toMatchObject({
      resource: 'nonadminbackups.oadp.openshift.io',
      ref: { namespace: 'team-a' },
      body: { metadata: { labels: { 'openshift.io/oadp-nab-synced-from-nacuuid': 'team-a-daily-1' } } },
    });
  });

  test('gets a status that is written for this very object, and nothing but the status', async () => {
    const { run, client } = passWorld();
    await run();
    expect(client.calls[2]).toMatchObject({ ref: { namespace: 'team-a', name: 'daily', subresource: 'status' } });
    const { metadata, status, ...rest } = client.calls[2]?.body ?? {};
    expect(metadata).toEqual({ namespace: 'team-a', name: 'daily', uid: 'uid-of-daily', resourceVersion: '2' });
    expect(status).toMatchObject({ phase: 'Created', veleroBackup: { nacuuid: 'team-a-daily-1' } });
    expect(rest).toEqual({ apiVersion: 'oadp.openshift.io/v1alpha1', kind: 'NonAdminBackup' });
  });

  test('is known at once to whoever decides next', async () => {
    const { run, scene } = passWorld();
    await run();
    expect(scene.state.nonAdminBackup('team-a', 'daily')).toMatchObject({ nacuuid: 'team-a-daily-1', synced: true });
    expect(scene.decision().reason).toBe('Present');
  });

  test('is told to the store with the version of each answer, so that an older one can be told from a newer', async () => {
    const told: (readonly [key: string, statusEmpty: boolean, resourceVersion: string | undefined])[] = [];
    const { run } = passWorld({}, undefined, {
      nonAdminBackups: {
        set: (key, { statusEmpty }, resourceVersion) => told.push([key, statusEmpty, resourceVersion]),
        delete: () => undefined,
      },
    });
    await run();
    expect(told).toEqual([
      ['team-a/daily', true, '2'],
      ['team-a/daily', false, '3'],
    ]);
  });

  test('names the tenant’s NABSL where the backup lies in the tenant’s location', async () => {
    const { run, client } = passWorld({
      backups: [veleroBackup({ spec: { storageLocation: 'team-a-bucket-1' } })],
      storageLocations: [ownedStorageLocation()],
      locationOwners: [nonAdminStorageLocation()],
    });
    await run();
    expect(client.calls[1]?.body).toMatchObject({ spec: { backupSpec: { storageLocation: 'bucket' } } });
  });

  test('names no location where it is the admin’s', async () => {
    const { run, client } = passWorld();
    await run();
    expect(client.calls[1]?.body).not.toHaveProperty('spec.backupSpec.storageLocation');
  });
});

describe('nothing is asked of the server', () => {
  test.each([
    ['for a NAB that is there', { nonAdminBackups: [nonAdminBackup()] }, 'present', 'Present'],
    [
      'for a backup that has expired',
      { backups: [veleroBackup({ status: { expiration: at(-1) } })] },
      'skipped',
      'Expired',
    ],
    ['for a namespace that is not there', { namespaces: [] }, 'skipped', 'NamespaceMissing'],
    ['for a name that is taken', { nonAdminBackups: [nonAdminBackup({ nacuuid: 'x' })] }, 'conflict', 'NameTaken'],
    [
      'while Velero reads the bucket',
      { backups: [veleroBackup({ metadata: { creationTimestamp: at(-second) } })] },
      'waiting',
      'LocationSyncing',
    ],
  ])('%s', async (_, objects, outcome, reason) => {
    const { run, client } = passWorld(objects);
    expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome, reason });
    expect(client.calls).toEqual([]);
  });

  test('but a name that is taken says by which NAB, and a wait until when', async () => {
    const taken = await passWorld({ nonAdminBackups: [nonAdminBackup({ nacuuid: 'x' })] }).run();
    expect(taken.get('team-a-daily-1')?.nabUid).toBe('uid-of-daily');
    const fresh = veleroBackup({ metadata: { creationTimestamp: at(-second) } });
    const { run, clock } = passWorld({ backups: [fresh] });
    expect((await run()).get('team-a-daily-1')?.until).toBe(clock.now + 119 * second);
  });
});

describe('the Backup is read once more just before the create, and nothing is created', () => {
  test.each([
    ['if it is gone', 'BeingDeleted', (call: Call) => failing(call, 'NotFound')],
    ['if it is being deleted', 'BeingDeleted', () => veleroBackup({ metadata: { deletionTimestamp: at(0) } })],
    ['if Velero deletes it', 'BeingDeleted', () => veleroBackup({ status: { phase: 'Deleting' } })],
    ['if it claims another name', 'IdentityMismatch', () => veleroBackup({ name: 'weekly' })],
    ['if it claims another namespace', 'IdentityMismatch', () => veleroBackup({ namespace: 'team-b' })],
    [
      'if it has another NACUUID',
      'IdentityMismatch',
      () => veleroBackup({ labels: { 'openshift.io/oadp-nab-origin-nacuuid': 'x' } }),
    ],
    ['if it has lost its annotations', 'IdentityMismatch', () => veleroBackup({ metadata: { annotations: null } })],
    [
      'if it holds more than its namespace',
      'ForeignContent',
      () => veleroBackup({ spec: { includedNamespaces: ['*'] } }),
    ],
    ['if it lies elsewhere', 'UnknownStorageLocation', () => veleroBackup({ spec: { storageLocation: 'other' } })],
    ['if it expired', 'Expired', () => veleroBackup({ status: { expiration: at(-second) } })],
    ['if it is an empty object', 'IdentityMismatch', () => ({})],
  ])('%s', async (_, reason, answer) => {
    const { run, client } = passWorld({}, answer);
    expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome: 'skipped', reason });
    expect(client.said()).toEqual(['get team-a-daily-1']);
  });

  test('what changed only in what does not matter is created as it is now', async () => {
    const changed = veleroBackup({ metadata: { resourceVersion: '200' }, spec: { ttl: '1h0m0s' } });
    const { run, client } = passWorld({}, ({ verb }) => (verb === 'get' ? changed : undefined));
    expect((await run()).get('team-a-daily-1')?.outcome).toBe('created');
    expect(client.calls[1]?.body).toMatchObject({ spec: { backupSpec: { ttl: '1h0m0s' } } });
  });

  test('what Velero has read again just now waits for the bucket, and is looked at soon', async () => {
    const reread = veleroBackup({ metadata: { creationTimestamp: at(-second) } });
    const { run, client, clock } = passWorld({}, () => reread);
    expect((await run()).get('team-a-daily-1')).toMatchObject({
      outcome: 'waiting',
      reason: 'LocationSyncing',
      until: clock.now + second,
    });
    expect(client.count('create')).toBe(0);
  });

  test('a namespace that went away in the meantime is seen as well', async () => {
    const world = passWorld({}, ({ verb }) => {
      if (verb === 'get') world.scene.put.namespace({ metadata: { name: 'team-a', deletionTimestamp: at(0) } });
      return undefined;
    });
    expect((await world.run()).get('team-a-daily-1')).toMatchObject({
      outcome: 'skipped',
      reason: 'NamespaceTerminating',
    });
    expect(world.client.count('create')).toBe(0);
  });
});

describe('a NAB that is there already when it is created (409)', () => {
  const finding = (nab: Record<string, unknown> | 'gone') => (call: Call) => {
    if (call.verb === 'create') return failing(call, 'AlreadyExists');
    if (call.verb !== 'get' || call.resource !== 'nonadminbackups.oadp.openshift.io') return undefined;
    return nab === 'gone' ? failing(call, 'NotFound') : nab;
  };

  test.each([
    ['is Present if it is this backup’s', nonAdminBackup(), 'present', 'Present'],
    ['is a conflict if it is another’s', nonAdminBackup({ nacuuid: 'x' }), 'conflict', 'NameTaken'],
    ['is a conflict if it has no backup yet', nonAdminBackup({ nacuuid: undefined }), 'conflict', 'NameTaken'],
    [
      'is Present if it is just being deleted',
      nonAdminBackup({ metadata: { deletionTimestamp: at(0) } }),
      'present',
      'Present',
    ],
  ])('%s', async (_, nab, outcome, reason) => {
    const { run, client } = passWorld({}, finding(nab));
    expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome, reason });
    expect(client.said()).toEqual(['get team-a-daily-1', 'create daily', 'get daily']);
  });

  test('is completed if it is this backup’s and has no status', async () => {
    const { run, client } = passWorld({}, finding(bareNonAdminBackup()));
    expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome: 'repaired', reason: 'StatusMissing' });
    expect(client.said().at(-1)).toBe('update daily/status');
  });

  test.each([
    ['this backup’s', nonAdminBackup(), 'present'],
    ['another’s', nonAdminBackup({ nacuuid: 'x' }), 'conflict'],
    ['this backup’s, without a status', bareNonAdminBackup(), 'repaired'],
  ])('is decided upon as it was read, %s, though the caches do not take it in', async (_, nab, outcome) => {
    // A list that was wrongly empty: the cache takes itself for newer than any answer about what was there before.
    const deaf = { set: () => undefined, delete: () => undefined };
    const { run } = passWorld({}, finding(nab), { nonAdminBackups: deaf });
    expect((await run()).get('team-a-daily-1')?.outcome).toBe(outcome);
  });

  test('that is gone when it is read is due to come back soon, and not called deleted', async () => {
    const { run, clock } = passWorld({}, finding('gone'));
    expect((await run()).get('team-a-daily-1')).toMatchObject({
      outcome: 'waiting',
      reason: 'Missing',
      until: clock.now + second,
    });
  });

  test('is remembered, so that the next decision rests on it', async () => {
    const { run, scene } = passWorld({}, finding(nonAdminBackup({ nacuuid: 'x' })));
    await run();
    expect(scene.decision().reason).toBe('NameTaken');
  });
});

describe('the first status', () => {
  test('is not written if the Backup went meanwhile; the NAB counts as created all the same', async () => {
    const world = passWorld({}, (call) => {
      // As the watch tells it, while the create is under way.
      if (call.verb === 'create') world.scene.put.backup(veleroBackup({ metadata: { uid: 'another' } }));
      return undefined;
    });
    expect((await world.run()).get('team-a-daily-1')?.outcome).toBe('created');
    expect(world.client.count('update')).toBe(0);
  });

  test('is not written if the Backup claims something else meanwhile', async () => {
    const world = passWorld({}, (call) => {
      if (call.verb === 'create') world.scene.put.backup(veleroBackup({ name: 'weekly' }));
      return undefined;
    });
    await world.run();
    expect(world.client.count('update')).toBe(0);
  });

  test('reads the Backup again where there was no room to keep it', async () => {
    const { run, client } = passWorld({}, undefined, { retained: new RetainedBackups(10) });
    await run();
    expect(client.said()).toEqual(['get team-a-daily-1', 'create daily', 'get team-a-daily-1', 'update daily/status']);
  });

  test.each([
    ['gone', (call: Call) => failing(call, 'NotFound')],
    ['another object of the same name', () => veleroBackup({ metadata: { uid: 'another' } })],
    ['one with another claim', () => veleroBackup({ name: 'weekly' })],
  ])('is not written if the Backup is %s when it is read again', async (_, second) => {
    let reads = 0;
    const answer = (call: Call) => {
      if (call.verb !== 'get') return undefined;
      reads += 1;
      return reads === 2 ? second(call) : undefined;
    };
    const { run, client, scene } = passWorld({}, answer, { retained: new RetainedBackups(10) });
    expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome: 'created', reason: 'Missing' });
    expect(client.count('update')).toBe(0);
    // The NAB is there all the same, and known to be.
    expect(scene.decision().reason).toBe('StatusMissing');
  });

  test('that loses the race against the NAC is no error', async () => {
    const { run } = passWorld({}, (call) => (isStatus(call) ? failing(call, 'Conflict') : undefined));
    expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome: 'created', reason: 'Missing' });
  });

  describe('that somebody’s write came before', () => {
    const labelled = bareNonAdminBackup({ labels: { team: 'x' }, metadata: { resourceVersion: '51' } });
    /** The first status meets a conflict, and a look at the NAB shows this. */
    const after = (nab: Record<string, unknown> | 'gone', again?: KubeErrorCode) => {
      let statuses = 0;
      return passWorld({}, (call) => {
        if (call.verb === 'get' && call.name === 'daily') return nab === 'gone' ? failing(call, 'NotFound') : nab;
        if (!isStatus(call)) return undefined;
        statuses += 1;
        if (statuses === 1) return failing(call, 'Conflict');
        return again === undefined ? undefined : failing(call, again);
      });
    };

    test('is written over a label, for the NAB as it is now', async () => {
      const { run, client } = after(labelled);
      expect((await run()).get('team-a-daily-1')?.outcome).toBe('created');
      expect(client.count('update')).toBe(2);
      expect(client.calls.at(-1)?.body).toMatchObject({ metadata: { uid: 'uid-of-daily', resourceVersion: '51' } });
    });

    test.each([
      ['the NAC wrote it', nonAdminBackup({ syncedFrom: 'team-a-daily-1' })],
      ['the NAB is being deleted', bareNonAdminBackup({ metadata: { deletionTimestamp: at(0) } })],
      ['its owner wants the backup gone', bareNonAdminBackup({ spec: { deleteBackup: true } })],
      ['the NAB is another’s', bareNonAdminBackup({ syncedFrom: 'another' })],
      [
        'the NAB is not ours any more',
        bareNonAdminBackup({ labels: { 'openshift.io/oadp-nab-synced-from-nacuuid': undefined } }),
      ],
      ['the NAB is gone', 'gone' as const],
    ])('is not written if %s', async (_, nab) => {
      const { run, client } = after(nab);
      expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome: 'created', reason: 'Missing' });
      expect(client.count('update')).toBe(1);
    });

    test('is not tried a third time', async () => {
      const { run, client } = after(labelled, 'Conflict');
      expect((await run()).get('team-a-daily-1')?.outcome).toBe('created');
      expect(client.count('update')).toBe(2);
    });

    test('of a NAB that went is forgotten', async () => {
      const { run, scene } = after('gone');
      await run();
      expect(scene.decision().reason).toBe('Missing');
    });
  });

  test('of a NAB that went meanwhile is no error either, and the NAB is forgotten', async () => {
    const { run, scene } = passWorld({}, (call) => (isStatus(call) ? failing(call, 'NotFound') : undefined));
    expect((await run()).get('team-a-daily-1')?.outcome).toBe('created');
    expect(scene.decision().reason).toBe('Missing');
  });

  test.each<KubeErrorCode>(['Timeout', 'Unreachable', 'ServerError', 'Forbidden', 'Invalid', 'TooLarge'])(
    'that fails by %s is a failure, since somebody must complete it',
    async (code) => {
      const { run } = passWorld({}, (call) =>
        isStatus(call) ? failing(call, code, { causes: [{ field: 'status' }] }) : undefined,
      );
      expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome: 'failed', reason: code });
    },
  );

  test('that RBAC does not allow stops the other statuses, but no create', async () => {
    const names = numbered(40);
    const { run, client } = passWorld({ backups: backupsNamed(names) }, (call) =>
      isStatus(call) ? failing(call, 'Forbidden') : undefined,
    );
    const results = await run();
    expect(client.count('create')).toBe(40);
    expect(client.count('update')).toBeLessThanOrEqual(atOnce);
    expect([...results.values()].filter(({ outcome }) => outcome === 'created').length).toBeGreaterThanOrEqual(
      40 - atOnce,
    );
  });
});

describe('creates and statuses share the namespace’s requests', () => {
  test('all creates go before the first status', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(numbered(50)) });
    await run();
    const said = client.said();
    expect(said.findLastIndex((line) => line.startsWith('create'))).toBeLessThan(
      said.findIndex((line) => line.startsWith('update')),
    );
    expect(client.count('update')).toBe(50);
  });

  test('a status is not begun while a create of the namespace is under way', async () => {
    const answered: string[] = [];
    const { run } = passWorld({ backups: backupsNamed(numbered(20)) }, async (call) => {
      // The oldest one is created last.
      if (call.verb === 'create' && call.name === 'b0000') await delay(50);
      if (call.verb !== 'get') answered.push(call.verb);
      return undefined;
    });
    await run();
    expect(countBy(answered.slice(0, 20))).toEqual({ create: 20 });
    expect(countBy(answered.slice(20))).toEqual({ update: 20 });
  });

  test('but for two seconds only: a create that hangs does not keep the others from their statuses', async () => {
    const hanging = Promise.withResolvers<undefined>();
    const { run, client } = passWorld({ backups: backupsNamed(numbered(20)) }, (call) =>
      call.verb === 'create' && call.name === 'b0000' ? hanging.promise : undefined,
    );
    const running = run();
    await delay(1000);
    expect(client.count('update')).toBe(0);
    await vi.waitFor(() => {
      expect(client.count('update')).toBe(19);
    }, 10_000);
    hanging.resolve(undefined);
    await running;
    expect(client.count('update')).toBe(20);
    expect(client.mostAtOnce()).toBe(atOnce);
  });

  test('nor from the stop', async () => {
    const hanging = Promise.withResolvers<undefined>();
    const stop = new AbortController();
    const { run, client } = passWorld({ backups: backupsNamed(numbered(20)) }, (call) =>
      call.verb === 'create' && call.name === 'b0000' ? hanging.promise : undefined,
    );
    const running = run({ stop: stop.signal });
    await vi.waitFor(() => {
      expect(client.count('create')).toBe(20);
    });
    stop.abort();
    hanging.resolve(undefined);
    const began = performance.now();
    await running;
    expect(performance.now() - began).toBeLessThan(1000);
    expect(client.count('update')).toBe(0);
  });

  test('but after two seconds one status at a time goes beside the creates', async () => {
    const began = new Map<string, number>();
    const waited: number[] = [];
    const world = passWorld({ backups: backupsNamed(numbered(60)) }, (call) => {
      // A slow server: each create takes 100 ms, so 60 of them take six seconds.
      if (call.verb === 'create') {
        world.clock.now += 100;
        began.set(call.name, world.clock.now);
      }
      if (isStatus(call)) waited.push(world.clock.now - (began.get(call.name) ?? 0));
      return undefined;
    });
    await world.run();
    expect(waited).toHaveLength(60);
    expect(waited[0]).toBeGreaterThanOrEqual(2000);
    // One round of creates that were under way when the two seconds were over.
    expect(waited[0]).toBeLessThanOrEqual(2000 + atOnce * 100);
    const said = world.client.said();
    const statusesAmongCreates = said
      .slice(
        0,
        said.findLastIndex((line) => line.startsWith('create')),
      )
      .filter((line) => line.startsWith('update')).length;
    expect(statusesAmongCreates).toBeGreaterThan(2);
    // The NABs that are not visible yet matter more.
    expect(statusesAmongCreates).toBeLessThan(30);
  });

  test('where all creates are under way that there are, statuses are not written one at a time', async () => {
    const began: number[] = [];
    const world = passWorld({ backups: backupsNamed(numbered(60)) }, (call) => {
      // So slow that statuses are overdue when the last create is begun.
      if (call.verb === 'create') world.clock.now += 1000;
      if (isStatus(call)) began.push(world.client.count('create'));
      return undefined;
    });
    await world.run();
    expect(began.filter((creates) => creates === 60).length).toBeGreaterThan(20);
    expect(world.client.mostAtOnce()).toBe(atOnce);
  });

  test('one namespace whose creates all hang leaves slots to another', async () => {
    const slots = slotsOf(16);
    const hanging = Promise.withResolvers<undefined>();
    const stuck = passWorld(
      { backups: backupsNamed(numbered(40)) },
      (call) => (call.verb === 'create' ? hanging.promise : undefined),
      { slots },
    );
    const running = stuck.run();
    const neighbour = passWorld({ backups: backupsNamed(numbered(40)) }, undefined, { slots });
    const results = await neighbour.run();
    expect(countBy([...results.values()], 'outcome')).toEqual({ created: 40 });
    expect(neighbour.client.mostAtOnce()).toBe(16 - atOnce);
    hanging.resolve(undefined);
    await running;
  });

  test('and no more than a thousand statuses wait, however fast the creates are', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(numbered(1200)) });
    await run();
    const said = client.said();
    const firstStatus = said.findIndex((line) => line.startsWith('update'));
    const before = said.slice(0, firstStatus).filter((line) => line.startsWith('create')).length;
    expect(before).toBeGreaterThanOrEqual(1000);
    expect(before).toBeLessThanOrEqual(1000 + atOnce);
    expect(client.count('update')).toBe(1200);
  });

  test('at most twelve requests of one namespace are under way', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(numbered(50)) });
    await run();
    expect(client.mostAtOnce()).toBe(atOnce);
  });

  test('with more statuses waiting than the bound, they wait for slots among the creates', async () => {
    const lanes: Lane[] = [];
    class Noting extends RequestSlots {
      override run<T>(lane: Lane, work: () => Promise<T>, options?: SlotOptions): Promise<T> {
        lanes.push(lane);
        return super.run(lane, work, options);
      }
    }
    const { run } = passWorld({ backups: backupsNamed(numbered(1_100)) }, undefined, {
      slots: new Noting({ current: 8, ceiling: 8 }, () => noon),
    });
    await run();
    const created = lanes.lastIndexOf('create') + 1;
    expect(lanes.length).toBe(2_200);
    // All creates, and as many statuses as there were creates beyond the bound; some more are under way.
    expect(lanes.filter((lane) => lane === 'create').length).toBeGreaterThanOrEqual(1_190);
    expect(lanes.slice(created).every((lane) => lane === 'status')).toBe(true);
  });

  test('and never more than there are slots', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(numbered(50)) }, undefined, {
      slots: slotsOf(3),
    });
    await run();
    expect(client.mostAtOnce()).toBe(3);
    expect(client.count('update')).toBe(50);
  });

  test.each([
    ['oldest', ['a', 'b', 'c']],
    ['newest', ['c', 'b', 'a']],
    ['any', ['b', 'c', 'a']],
  ])('the newest backup comes back first, though they are listed %s first', async (_, listed) => {
    const backups = backupsNamed(['a', 'b', 'c']);
    const sorted = listed.map((name) => backups[['a', 'b', 'c'].indexOf(name)] ?? {});
    const { run, client } = passWorld({ backups: sorted }, undefined, {
      slots: slotsOf(1),
    });
    await run();
    expect(client.said().filter((line) => line.startsWith('create'))).toEqual(['create c', 'create b', 'create a']);
  });

  test('in a namespace that is known to take NABs, twelve at once from the start', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(numbered(20)) });
    await run();
    expect(
      client
        .said()
        .slice(0, atOnce)
        .every((line) => line.startsWith('get')),
    ).toBe(true);
  });

  test('results are in the order of the backups, whatever was done first', async () => {
    const { run } = passWorld({ backups: backupsNamed(['a', 'b', 'c']) });
    expect([...(await run()).keys()]).toEqual(['a', 'b', 'c']);
  });

  test('what was kept for statuses is let go at the end', async () => {
    const retained = new RetainedBackups(100_000);
    const stop = new AbortController();
    const { run } = passWorld(
      { backups: backupsNamed(numbered(20)) },
      (call) => {
        if (call.verb === 'create') stop.abort();
        return undefined;
      },
      { retained },
    );
    await run({ stop: stop.signal });
    expect(retained.keep({ text: 'x'.repeat(99_000) })).toBeDefined();
  });
});

describe('of a failed create', () => {
  const failingFor =
    (bad: readonly string[], code: KubeErrorCode, facts = {}) =>
    (call: Call) =>
      call.verb === 'create' && bad.includes(call.name) ? failing(call, code, facts) : undefined;

  const inOrder = { slots: slotsOf(1) };

  test.each<[KubeErrorCode, string]>([
    ['Invalid', 'Invalid'],
    ['TooLarge', 'TooLarge'],
    ['BadRequest', 'AdmissionDenied'],
    ['Timeout', 'Timeout'],
    ['Unreachable', 'Unreachable'],
    ['ServerError', 'ServerError'],
    ['Malformed', 'ServerError'],
    ['Gone', 'ServerError'],
    ['Conflict', 'ServerError'],
    ['NotFound', 'ServerError'],
  ])('by %s the neighbours know nothing', async (code, reason) => {
    const { run } = passWorld({ backups: backupsNamed(['a', 'bad', 'c']) }, failingFor(['bad'], code), inOrder);
    const results = await run();
    expect(results.get('bad')).toMatchObject({ outcome: 'failed', reason, message: `the server says ${code}` });
    expect([results.get('a')?.outcome, results.get('c')?.outcome]).toEqual(['created', 'created']);
  });

  test('by an error that is no KubeError the neighbours know nothing either', async () => {
    const { run } = passWorld({ backups: backupsNamed(['a', 'bad', 'c']) }, ({ verb, name }) => {
      if (verb === 'create' && name === 'bad') throw new TypeError('a fault of ours');
      return undefined;
    });
    const results = await run();
    expect(results.get('bad')).toMatchObject({
      outcome: 'failed',
      reason: 'InternalError',
      message: 'a fault of ours',
    });
    expect(results.get('a')?.outcome).toBe('created');
  });

  test('by a 422 that names a field it is known that it will fail again', async () => {
    const causes = [{ field: 'spec.backupSpec.ttl', message: 'no duration' }];
    const { run } = passWorld({ backups: backupsNamed(['a', 'bad']) }, failingFor(['bad'], 'Invalid', { causes }));
    expect((await run()).get('bad')).toMatchObject({ reason: 'Invalid', failure: { permanent: true } });
  });

  test.each<[KubeErrorCode, string]>([
    ['Unauthorized', 'Unauthorized'],
    ['KindNotInstalled', 'KindNotInstalled'],
    ['Throttled', 'Throttled'],
    ['Aborted', 'Aborted'],
  ])('by %s the others would fail alike, so they are not tried', async (code, reason) => {
    const { run, client } = passWorld(
      { backups: backupsNamed(['a', 'b', 'bad']) },
      failingFor(['bad'], code, { retryAfterMs: 7000 }),
      inOrder,
    );
    const results = await run();
    expect(client.count('create')).toBe(1);
    expect(results.get('a')).toMatchObject({
      outcome: 'failed',
      reason,
      untried: true,
      failure: { retryAfterMs: 7000 },
    });
    expect(results.get('a')?.message).toBe(`Not tried, since the one before failed: the server says ${code}`);
    expect(results.get('bad')?.untried).toBeUndefined();
  });

  test('by a quota the pass over the namespace ends with that request', async () => {
    const { run, client } = passWorld(
      { backups: backupsNamed(numbered(200)) },
      (call) => (call.verb === 'create' ? failing(call, 'Forbidden', quotaDenial) : undefined),
      inOrder,
    );
    const results = await run();
    expect(client.count('create')).toBe(1);
    expect(new Set([...results.values()].map(({ reason }) => reason))).toEqual(new Set(['QuotaDenied']));
  });

  test('by a quota no more than the twelve that are under way are denied', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(numbered(200)) }, (call) =>
      call.verb === 'create' ? failing(call, 'Forbidden', quotaDenial) : undefined,
    );
    await run();
    expect(client.count('create')).toBeLessThanOrEqual(atOnce);
  });

  test('by a 403 of RBAC an admin must act: Forbidden, and the pass ends', async () => {
    const { run, client } = passWorld(
      { backups: backupsNamed(numbered(20)) },
      (call) => (call.verb === 'create' ? failing(call, 'Forbidden', { deniedBy: 'authorization' }) : undefined),
      inOrder,
    );
    const results = await run();
    expect(client.count('create')).toBe(1);
    expect(results.get('b0000')).toMatchObject({ reason: 'Forbidden', untried: true });
  });

  test('by a 403 of a read it is Forbidden', async () => {
    const { run } = passWorld({}, (call) => failing(call, 'Forbidden', { deniedBy: 'authorization' }));
    expect((await run()).get('team-a-daily-1')?.reason).toBe('Forbidden');
  });

  test('that is its own alone, any number in a row keeps nobody from his turn', async () => {
    const names = numbered(12);
    const { run, client } = passWorld(
      { backups: backupsNamed(names) },
      failingFor(names.slice(1), 'TooLarge'),
      inOrder,
    );
    expect((await run()).get('b0000')?.outcome).toBe('created');
    expect(client.count('create')).toBe(12);
  });

  test('five denials in a row are enough: what follows would most likely be denied alike', async () => {
    const { run, client } = passWorld(
      { backups: backupsNamed(numbered(50)) },
      (call) => (call.verb === 'create' ? failing(call, 'Invalid', policyDenial) : undefined),
      inOrder,
    );
    const results = await run();
    expect(client.count('create')).toBe(5);
    expect([...results.values()].every(({ reason }) => reason === 'AdmissionDenied')).toBe(true);
    expect([...results.values()].filter(({ untried }) => untried === true)).toHaveLength(45);
  });

  test('four denials and a success begin the count anew', async () => {
    const names = numbered(30);
    const good = names.filter((_, index) => index % 5 === 0);
    const { run, client } = passWorld(
      { backups: backupsNamed(names) },
      failingFor(
        names.filter((name) => !good.includes(name)),
        'Invalid',
        policyDenial,
      ),
      inOrder,
    );
    const results = await run();
    expect(client.count('create')).toBe(30);
    expect(good.every((name) => results.get(name)?.outcome === 'created')).toBe(true);
  });

  test.each([
    ['NamespaceNotFound', 'NamespaceMissing'],
    ['NamespaceTerminating', 'NamespaceTerminating'],
  ] as const)('by %s the namespace is gone for all that follow, which is no failure', async (code, reason) => {
    const { run, client } = passWorld(
      { backups: backupsNamed(numbered(20)) },
      (call) => (call.verb === 'create' ? failing(call, code) : undefined),
      inOrder,
    );
    const results = await run();
    expect(client.count('create')).toBe(1);
    expect(results.size).toBe(20);
    for (const result of results.values()) expect(result).toMatchObject({ outcome: 'skipped', reason });
  });
});

test('a NAB that was created before its namespace went counts as created', async () => {
  const { run, client } = passWorld(
    { backups: backupsNamed(['a', 'b']) },
    (call) => (call.verb === 'create' && call.name === 'a' ? failing(call, 'NamespaceTerminating') : undefined),
    { slots: slotsOf(1) },
  );
  const results = await run();
  expect([results.get('b')?.outcome, results.get('a')?.reason]).toEqual(['created', 'NamespaceTerminating']);
  expect(client.count('update')).toBe(0);
});

describe('after a denial', () => {
  test('one create goes ahead alone; once it succeeds the others follow', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(numbered(20)) });
    await run({ probe: true });
    expect(client.said().slice(0, 4)).toEqual(['get b0019', 'create b0019', 'get b0018', 'get b0017']);
    expect(client.count('create')).toBe(20);
  });

  test('a quota that is still used up costs one create', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(numbered(200)) }, (call) =>
      call.verb === 'create' ? failing(call, 'Forbidden', quotaDenial) : undefined,
    );
    await run({ probe: true });
    expect(client.said()).toEqual(['get b0199', 'create b0199']);
  });

  test('a webhook that hangs costs one create, for no answer is no reason to ask again', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(numbered(20)) }, (call) =>
      call.verb === 'create' ? failing(call, 'Timeout') : undefined,
    );
    const results = await run({ probe: true });
    expect(client.count('create')).toBe(1);
    expect([...results.values()].every(({ reason }) => reason === 'Timeout')).toBe(true);
  });

  test('a webhook that hangs on statuses costs one status; the NABs are there and are completed later', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(numbered(20)) }, (call) =>
      isStatus(call) ? failing(call, 'Timeout') : undefined,
    );
    const results = await run({ probe: true });
    expect(client.count('update')).toBe(1);
    expect(client.count('create')).toBe(20);
    expect(countBy([...results.values()], 'outcome')).toEqual({ created: 19, failed: 1 });
  });

  test('a status that is written lets the others follow at once', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(numbered(20)) });
    await run({ probe: true });
    expect(client.count('update')).toBe(20);
  });

  test('a policy that denies one backup lets its neighbours through, one at a time until one succeeds', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(['a', 'b', 'bad']) }, (call) =>
      call.verb === 'create' && call.name === 'bad' ? failing(call, 'Invalid', policyDenial) : undefined,
    );
    const results = await run({ probe: true });
    expect(results.get('bad')?.reason).toBe('AdmissionDenied');
    expect([results.get('a')?.outcome, results.get('b')?.outcome]).toEqual(['created', 'created']);
    expect(client.said().slice(0, 4)).toEqual(['get bad', 'create bad', 'get b', 'create b']);
  });

  test('those that failed go last, and of them those that failed longest ago first', async () => {
    const { run, client } = passWorld({ backups: backupsNamed(['a', 'b', 'c', 'd']) }, undefined, {
      slots: slotsOf(1),
    });
    await run({
      failedIn: new Map([
        ['d', 7],
        ['c', 3],
      ]),
    });
    expect(client.said().filter((line) => line.startsWith('create'))).toEqual([
      'create b',
      'create a',
      'create c',
      'create d',
    ]);
  });
});

describe('a repair', () => {
  const stale = nonAdminBackup({
    syncedFrom: 'team-a-daily-1',
    status: { phase: 'BackingOff', conditions: [backupNotFound], dataMoverDataUploads: { total: 2 } },
  });
  const reading = (nab: Record<string, unknown>) => (call: Call) =>
    call.verb === 'get' && call.name === 'daily' ? nab : undefined;

  test('reads NAB and Backup, and writes the status over what is there', async () => {
    const { run, client } = passWorld({ nonAdminBackups: [stale] }, reading(stale));
    expect((await run()).get('team-a-daily-1')).toMatchObject({
      outcome: 'repaired',
      reason: 'StatusStale',
      nabUid: 'uid-of-daily',
    });
    expect(client.said()).toEqual(['get daily', 'get team-a-daily-1', 'update daily/status']);
    expect(client.calls[2]?.body).toMatchObject({
      metadata: { uid: 'uid-of-daily', resourceVersion: '50' },
      status: { phase: 'Created', dataMoverDataUploads: { total: 2 } },
    });
    expect(client.calls[2]?.body).not.toHaveProperty('spec');
  });

  test.each([
    ['has been completed', nonAdminBackup({ syncedFrom: 'team-a-daily-1' }), 'present', 'Present'],
    [
      'is being deleted',
      {
        ...stale,
        metadata: { ...(isJsonObject(stale['metadata']) ? stale['metadata'] : {}), deletionTimestamp: at(0) },
      },
      'present',
      'Present',
    ],
    ['belongs to another backup', nonAdminBackup({ nacuuid: 'x', syncedFrom: 'x' }), 'conflict', 'NameTaken'],
  ])('writes nothing if the NAB %s meanwhile', async (_, live, outcome, reason) => {
    const { run, client } = passWorld({ nonAdminBackups: [stale] }, reading(live));
    expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome, reason });
    expect(client.count('update')).toBe(0);
  });

  test.each([
    ['is gone', 'BeingDeleted', (call: Call) => failing(call, 'NotFound')],
    ['claims something else', 'IdentityMismatch', () => veleroBackup({ name: 'weekly' })],
    ['is being deleted', 'BeingDeleted', () => veleroBackup({ metadata: { deletionTimestamp: at(0) } })],
  ])('writes nothing if the Backup %s meanwhile', async (_, reason, backup) => {
    const { run, client } = passWorld({ nonAdminBackups: [stale] }, (call) =>
      call.name === 'daily' ? stale : backup(call),
    );
    expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome: 'skipped', reason });
    expect(client.count('update')).toBe(0);
  });

  test('of a NAB that is gone: it is forgotten, and due to come back', async () => {
    const { run, scene, clock } = passWorld({ nonAdminBackups: [stale] }, (call) =>
      call.name === 'daily' ? failing(call, 'NotFound') : undefined,
    );
    expect((await run()).get('team-a-daily-1')).toMatchObject({
      outcome: 'waiting',
      reason: 'Missing',
      until: clock.now + second,
    });
    expect(scene.decision().reason).toBe('Missing');
  });

  test('of a NAB that goes between reading and writing leaves no phantom of it behind', async () => {
    const { run, scene } = passWorld({ nonAdminBackups: [stale] }, (call) => {
      if (isStatus(call)) return failing(call, 'NotFound');
      return call.name === 'daily' ? stale : undefined;
    });
    expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome: 'waiting', reason: 'Missing' });
    expect(scene.decision().reason).toBe('Missing');
  });

  test('that loses the race is none: somebody else wrote it', async () => {
    const { run } = passWorld({ nonAdminBackups: [stale] }, (call) => {
      if (isStatus(call)) return failing(call, 'Conflict');
      return call.name === 'daily' ? stale : undefined;
    });
    expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome: 'present', reason: 'Present' });
  });

  test('goes on while creates are denied, and the other way round', async () => {
    const bare = bareNonAdminBackup({ name: 'broken', syncedFrom: 'broken' });
    const backups = backupsNamed(['broken', 'missing']);
    const quota = passWorld({ backups, nonAdminBackups: [bare] }, (call) => {
      if (call.verb === 'create') return failing(call, 'Forbidden', quotaDenial);
      return call.verb === 'get' && call.resource.startsWith('nonadmin') ? bare : undefined;
    });
    const denied = await quota.run();
    expect([denied.get('broken')?.outcome, denied.get('missing')?.reason]).toEqual(['repaired', 'QuotaDenied']);

    const rbac = passWorld({ backups, nonAdminBackups: [bare] }, (call) => {
      if (isStatus(call)) return failing(call, 'Forbidden');
      return call.verb === 'get' && call.resource.startsWith('nonadmin') ? bare : undefined;
    });
    const forbidden = await rbac.run();
    expect(forbidden.get('broken')?.reason).toBe('Forbidden');
    expect(rbac.client.count('create')).toBe(1);
  });

  test('of many goes on as long as one in five succeeds', async () => {
    const names = numbered(30);
    const bare = new Map(names.map((name) => [name, bareNonAdminBackup({ name, syncedFrom: name })]));
    const { run, client } = passWorld(
      { backups: backupsNamed(names), nonAdminBackups: [...bare.values()] },
      (call) => {
        if (isStatus(call)) return names.indexOf(call.name) % 5 === 0 ? undefined : failing(call, 'ServerError');
        return call.resource.startsWith('nonadmin') ? bare.get(call.name) : undefined;
      },
      { slots: slotsOf(1) },
    );
    await run();
    expect(client.count('update')).toBe(30);
  });

  test('of many ends when the server does not answer, instead of waiting for each', async () => {
    const names = numbered(100);
    const nonAdminBackups = names.map((name) => bareNonAdminBackup({ name, syncedFrom: name }));
    const { run, client } = passWorld(
      { backups: backupsNamed(names), nonAdminBackups },
      (call) => failing(call, 'Timeout'),
      { slots: slotsOf(1) },
    );
    const results = await run();
    expect(client.calls).toHaveLength(5);
    expect([...results.values()].every(({ outcome, reason }) => outcome === 'failed' && reason === 'Timeout')).toBe(
      true,
    );
  });
});

describe('a stop', () => {
  test('begins no request any more; those under way are let finish', async () => {
    const stop = new AbortController();
    const { run, client } = passWorld({ backups: backupsNamed(numbered(100)) }, (call) => {
      if (call.verb === 'create') stop.abort();
      return undefined;
    });
    const results = await run({ stop: stop.signal });
    const afterStop = client.calls.length;
    await delay(20);
    expect(client.calls).toHaveLength(afterStop);
    expect(client.count('create')).toBeLessThanOrEqual(atOnce);
    expect(client.count('update')).toBe(0);
    // A NAB that is there without its status is created all the same; the next start completes it.
    expect([...results.values()].filter(({ outcome }) => outcome === 'created')).toHaveLength(client.count('create'));
    const untried = [...results.values()].filter(({ outcome }) => outcome === 'failed');
    expect(untried).toHaveLength(100 - client.count('create'));
    expect(untried[0]).toMatchObject({ reason: 'Aborted', message: 'Not tried: nab-sync is stopping.', untried: true });
  });

  test('that came before makes no request at all', async () => {
    const bare = bareNonAdminBackup({ name: 'a', syncedFrom: 'a' });
    const { run, client } = passWorld({ backups: backupsNamed(['a', 'b', 'c']), nonAdminBackups: [bare] });
    const results = await run({ stop: AbortSignal.abort(), probe: true });
    expect(client.calls).toEqual([]);
    expect([...results.values()].map(({ reason }) => reason)).toEqual(['Aborted', 'Aborted', 'Aborted']);
  });

  test('between the read of the Backup and the create creates nothing', async () => {
    const stop = new AbortController();
    const { run, client } = passWorld({}, () => {
      stop.abort();
      return undefined;
    });
    expect((await run({ stop: stop.signal })).get('team-a-daily-1')).toMatchObject({
      reason: 'Aborted',
      untried: true,
    });
    expect(client.said()).toEqual(['get team-a-daily-1']);
  });

  test('between the last read and a status leaves the NAB created', async () => {
    const stop = new AbortController();
    let reads = 0;
    const { run, client } = passWorld(
      {},
      ({ verb }) => {
        if (verb === 'get') reads += 1;
        if (reads === 2) stop.abort();
        return undefined;
      },
      { retained: new RetainedBackups(10) },
    );
    expect((await run({ stop: stop.signal })).get('team-a-daily-1')?.outcome).toBe('created');
    expect(client.said()).toEqual(['get team-a-daily-1', 'create daily', 'get team-a-daily-1']);
  });

  test('the loss of the Lease, seen before its signal, is one', async () => {
    let leading = true;
    const { run, client } = passWorld({ backups: backupsNamed(numbered(30)) }, (call) => {
      if (call.verb === 'create') leading = false;
      return undefined;
    });
    const results = await run({ isLeading: () => leading });
    expect(client.count('create')).toBeGreaterThanOrEqual(1);
    expect(client.count('create')).toBeLessThanOrEqual(atOnce);
    expect(client.count('update')).toBe(0);
    expect([...results.values()].at(0)?.reason).toBe('Aborted');
  });
});

describe('while the API server is away requests are held back', () => {
  /** A gate that is shut for so long before each request of a kind; nothing is ever asked twice. */
  const shut = (verb: Call['verb'], ms: number) => {
    const world = passWorld({}, undefined, {
      gate: {
        pass: (_signal, request) => {
          // What has been asked so far says what comes next.
          const next = (['get', 'create', 'update'] as const)[world.client.calls.length];
          if (next === verb) world.clock.now += ms;
          return request();
        },
      },
    });
    return world;
  };

  test('a create that was held back for long is decided anew: the Backup may be gone by now', async () => {
    const { run, client, clock } = shut('create', 5001);
    expect((await run()).get('team-a-daily-1')).toMatchObject({
      outcome: 'waiting',
      reason: 'Missing',
      message: 'The API server was away for a while; it is looked at anew.',
      until: clock.now + second,
    });
    expect(client.said()).toEqual(['get team-a-daily-1']);
  });

  test('a create that was held back for a moment is made', async () => {
    const { run } = shut('create', 5000);
    expect((await run()).get('team-a-daily-1')?.outcome).toBe('created');
  });

  test('a status that was held back for long is left to the next pass; its NAB is created all the same', async () => {
    const { run, client } = shut('update', 5001);
    expect((await run()).get('team-a-daily-1')).toMatchObject({ outcome: 'created', reason: 'Missing' });
    expect(client.count('update')).toBe(0);
  });

  test('a read may be held back for as long as it takes', async () => {
    const { run } = shut('get', hour);
    expect((await run()).get('team-a-daily-1')?.outcome).toBe('created');
  });
});

test('the clock is read when it matters: a backup that expires while it waits for its slot is not created', async () => {
  const backups = backupsNamed(['a'], { status: { expiration: at(minute) } });
  const world = passWorld({ backups }, ({ verb }) => {
    if (verb === 'get') world.clock.now += hour;
    return undefined;
  });
  expect((await world.run()).get('a')).toMatchObject({ outcome: 'skipped', reason: 'Expired' });
});
