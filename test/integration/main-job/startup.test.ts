import omit from 'lodash/omit.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { objectAt } from '../../../src/kube/json.ts';
import type { JsonObject } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { day } from '../../support/gen/api-objects.ts';
import { fromNow } from '../../support/gen/live-objects.ts';
import { eventLines, eventsIn } from './support/events.ts';
import { mainJob, untilTheEndOfTheFile, type Controller } from './support/main-job.ts';
import { byName, expectedNab } from './support/nabs.ts';

const job = await mainJob();
const { gen, objects } = job;

/** A field of Velero 1.18's Backup that the NAB of OADP 1.5 does not have: a CRD is never older than the next one. */
const newerSpec = { volumeGroupSnapshotLabelKey: 'velero.io/volume-group' };
const newerStatus = { queuePosition: 3 };

const full = {
  metadata: {
    ownerReferences: [
      { apiVersion: 'velero.io/v1', kind: 'Schedule', name: 'nightly', uid: '0b2c9a4e-1c1c-4a7e-9a5f-4a2d5d4d4c11' },
    ],
    finalizers: ['backups.velero.io/external-resources-finalizer'],
  },
  labels: { team: 'blue', 'velero.io/schedule-name': 'nightly' },
  annotations: { 'velero.io/source-cluster-k8s-gitversion': 'v1.30.0', note: 'made by hand' },
  spec: {
    metadata: { labels: { made: 'nightly' } },
    excludedNamespaces: ['nobody'],
    includedResources: ['deployments', 'persistentvolumeclaims'],
    excludedResources: null,
    labelSelector: { matchLabels: { app: 'shop' }, matchExpressions: [{ key: 'tier', operator: 'Exists' }] },
    orLabelSelectors: null,
    includeClusterResources: false,
    snapshotVolumes: null,
    snapshotMoveData: true,
    datamover: 'velero',
    defaultVolumesToFsBackup: false,
    orderedResources: { pods: 'shop/db-0,shop/db-1' },
    csiSnapshotTimeout: '10m0s',
    itemOperationTimeout: '4h0m0s',
    volumeSnapshotLocations: ['default'],
    resourcePolicy: { kind: 'configmap', name: 'policy' },
    uploaderConfig: { parallelFilesUpload: 4 },
    hooks: {
      resources: [
        {
          name: 'freeze',
          includedNamespaces: ['*'],
          labelSelector: { matchLabels: { app: 'db' } },
          pre: [{ exec: { container: 'db', command: ['sh', '-c', 'sync; fsfreeze -f "/data"'], onError: 'Fail' } }],
        },
      ],
    },
    ...newerSpec,
  },
  status: {
    phase: 'PartiallyFailed',
    version: 1,
    formatVersion: '1.1.0',
    failureReason: 'one volume of three',
    warnings: 2,
    errors: 1,
    progress: { totalItems: 40, itemsBackedUp: 40 },
    volumeSnapshotsAttempted: 3,
    volumeSnapshotsCompleted: 2,
    csiVolumeSnapshotsAttempted: 3,
    csiVolumeSnapshotsCompleted: 2,
    backupItemOperationsAttempted: 3,
    backupItemOperationsCompleted: 2,
    backupItemOperationsFailed: 1,
    hookStatus: { hooksAttempted: 2, hooksFailed: 0 },
    ...newerStatus,
  },
};

let shop: string;
let bank: string;
let longest: string;
let many: string;
let due: JsonObject[];
let began: number;
let controller: Controller;

beforeAll(async () => {
  shop = await job.createTenant('shop');
  bank = await job.createTenant('bank');
  many = await job.createTenant('many');
  const room = 63 - job.tenant('').length;
  longest = await job.createTenant('n'.repeat(room));
  for (const location of [
    gen.storageLocation(),
    gen.nonAdminStorageLocation({ namespace: bank, name: 'bucket', nacuuid: 'bank-bucket' }),
    gen.ownedStorageLocation({ namespace: bank, name: 'bank-bucket' }),
  ]) {
    await objects.create(location);
  }
  const inOwn = { spec: { storageLocation: 'bank-bucket' } };
  const made = await Promise.all(
    [
      gen.backup({ namespace: shop, name: 'full', ...full }),
      gen.backup({ namespace: shop, name: 'plain' }),
      gen.backup({ namespace: shop, name: 'failed', status: { phase: 'Failed' } }),
      gen.backup({ namespace: bank, name: 'plain' }),
      gen.backup({ namespace: bank, name: 'own', ...inOwn }),
      gen.backup({ namespace: longest, name: `${'x'.repeat(125)}.${'y'.repeat(127)}` }),
      ...Array.from({ length: 12 }, (_, index) => gen.backup({ namespace: many, name: `nightly-${index + 1}` })),
      // None of these may come back.
      gen.backup({ namespace: shop, name: 'forged', ...inOwn }),
      gen.backup({ namespace: shop, name: 'running', status: { phase: 'InProgress', completionTimestamp: undefined } }),
      gen.backup({ namespace: shop, name: 'expired', status: { expiration: fromNow(-day) } }),
      gen.backup({ namespace: job.tenant('gone') }),
    ].map((backup) => objects.create(backup)),
  );
  due = made.slice(0, 18).map((backup) => {
    const { storageLocation } = objectAt(backup, 'spec');
    const known = { ...backup, spec: omit(objectAt(backup, 'spec'), Object.keys(newerSpec)) };
    const nab = expectedNab(
      { ...known, status: omit(objectAt(backup, 'status'), Object.keys(newerStatus)) },
      storageLocation === 'bank-bucket' ? 'bucket' : undefined,
    );
    return nab;
  });
  began = Date.now();
  controller = await job.controller([], {}, untilTheEndOfTheFile);
  await controller.firstPass();
}, 60_000);

describe('the start of the controller', () => {
  it('brings every missing NAB back, and no other, each exactly as designed', async () => {
    expect(await job.nabs(shop, bank, longest, many)).toEqual(due.sort(byName));
  });

  it('has them written, with their status, when the first pass is done', () => {
    const pass = controller.log().find(({ msg }) => msg === 'pass over all namespaces done');
    expect(pass).toMatchObject({
      outcome: 'succeeded',
      backups: { Present: 18, StorageLocationOwnerMismatch: 1, NotFinished: 1, Expired: 1, NamespaceMissing: 1 },
    });
    expect(controller.log().filter(({ level }) => level !== 'info' && level !== 'warn')).toEqual([]);
  });

  it('takes the NABSL name for the location of a tenant, and none for that of the admin', async () => {
    const spec = z.object({ spec: z.object({ backupSpec: z.object({ storageLocation: z.string().optional() }) }) });
    const locations = (await job.nabs(bank)).map((nab) => spec.parse(nab).spec.backupSpec.storageLocation);
    expect(locations).toEqual(['bucket', undefined]);
  });

  it('dates the conditions to when it wrote them', async () => {
    const conditions = z.object({
      status: z.object({ conditions: z.array(z.object({ lastTransitionTime: z.iso.datetime() })) }),
    });
    const nab = await objects.get(kinds.nonAdminBackups, { namespace: shop, name: 'full' });
    for (const { lastTransitionTime } of conditions.parse(nab).status.conditions) {
      // Whole seconds.
      expect(Date.parse(lastTransitionTime)).toBeGreaterThanOrEqual(began - 1000);
      expect(Date.parse(lastTransitionTime)).toBeLessThanOrEqual(Date.now());
    }
  });

  it('tells each tenant of the first five by name, and of the others in one event', async () => {
    const lines = await eventually(async () => {
      const told = await eventLines(objects, many);
      expect(told).toHaveLength(6);
      return told;
    });
    expect(lines.filter((line) => /^nightly-\d+ RecreatedFromVeleroBackup x1$/.test(line))).toHaveLength(5);
    const [aboutTheRest] = (await eventsIn(objects, many)).filter(
      ({ involvedObject }) => involvedObject.kind === 'Namespace',
    );
    expect(aboutTheRest).toMatchObject({ type: 'Normal', reason: 'RecreatedFromVeleroBackup', count: 1 });
    expect(aboutTheRest?.message).toMatch(/^7 more /);
  });

  it('tells how to get rid of a backup for good, since a NAB that is only deleted comes back (field case A6)', async () => {
    const events = await eventsIn(objects, bank);
    expect(events).toHaveLength(2);
    for (const { message } of events) expect(message).toMatch(/set spec\.deleteBackup to true/);
  });

  it('logs a refused Backup once, for the admin, and tells nobody whose namespace it claims', async () => {
    const refusals = controller.log().filter(({ msg }) => msg === 'backup refused');
    expect(refusals).toMatchObject([{ level: 'warn', reason: 'StorageLocationOwnerMismatch' }]);
    const told = await eventsIn(objects, shop);
    expect(told.map(({ involvedObject }) => involvedObject.name)).toEqual(['failed', 'full', 'plain']);
  });
});
