import { objectAt, stringAt } from '../../../../src/kube/json.ts';
import type { JsonObject } from '../../../../src/kube/resource.ts';
import * as kinds from '../../../../src/oadp/kinds.ts';
import type { DecisionReason } from '../../../../src/sync/reasons.ts';
import { day, hour, minute } from '../../../support/gen/api-objects.ts';
import { fromNow, nacuuid } from '../../../support/gen/live-objects.ts';
import { startNamespaceDeletion } from '../../../support/namespaces.ts';
import type { MainJob } from './main-job.ts';

/** One Backup of the world, and the reason that it deserves. */
export interface Case {
  /** Why, in words; unique. */
  readonly title: string;
  readonly reason: DecisionReason;
  /** As the server has it. */
  readonly backup: JsonObject;
  /** Where the Backup says that it belongs, whether that is a legal place or not. */
  readonly claim: { readonly namespace: string; readonly name: string; readonly nacuuid: string };
  /** Only where a NAB is due: the NABSL that its spec has to name. */
  readonly nabslName?: string;
}

export interface WorldOfReasons {
  readonly cases: readonly Case[];
  /** The flags with which the reasons hold. */
  readonly flags: readonly string[];
  /** All namespaces in which something lies. */
  readonly namespaces: readonly string[];
  /** The two tenants whose namespaces are as they should be. */
  readonly apps: string;
  readonly bank: string;
}

const nabName = 'openshift.io/oadp-nab-origin-name';
const nabNamespace = 'openshift.io/oadp-nab-origin-namespace';
const nabNacuuid = 'openshift.io/oadp-nab-origin-nacuuid';
const nabslName = 'openshift.io/oadp-nabsl-origin-name';

type BackupShape = Omit<Parameters<MainJob['gen']['backup']>[0], 'namespace' | 'name'>;

/**
 * A cluster in which every reason for a decision occurs, most of them in several ways. The reason `LocationSyncing` holds for
 * two minutes from now.
 */
export async function worldOfReasons(job: MainJob): Promise<WorldOfReasons> {
  const { gen, objects, oadpNamespace, tenant } = job;
  const selected = { tenant: 'yes' };
  const [apps, bank, going, unselected] = await Promise.all([
    job.createTenant('apps', selected),
    job.createTenant('bank', selected),
    job.createTenant('going', selected),
    job.createTenant('unselected'),
  ]);
  const missing = tenant('missing');
  const vault = tenant('vault');

  await Promise.all(
    [
      gen.storageLocation(),
      gen.storageLocation({ name: 'archive', spec: { default: false } }),
      gen.storageLocation({ name: 'yesterday', spec: { default: false } }),
      gen.storageLocation({ name: 'second-default' }),
      gen.storageLocation({ name: 'readonly', spec: { accessMode: 'ReadOnly' } }),
      gen.storageLocation({ name: 'half-marked', labels: { 'app.kubernetes.io/managed-by': 'oadp-nac-controller' } }),
      gen.storageLocation({ name: 'reading', status: { lastSyncedTime: fromNow(-hour) } }),
      gen.storageLocation({ name: 'never-read', status: { lastSyncedTime: undefined } }),
      gen.storageLocation({ name: 'away', status: { phase: 'Unavailable', lastSyncedTime: fromNow(-hour) } }),
      gen.nonAdminStorageLocation({ namespace: apps, name: 'own', nacuuid: 'apps-own' }),
      gen.ownedStorageLocation({ namespace: apps, name: 'apps-own', annotations: { [nabslName]: 'own' } }),
      gen.nonAdminStorageLocation({ namespace: bank, name: 'own', nacuuid: 'bank-own' }),
      gen.ownedStorageLocation({ namespace: bank, name: 'bank-own', annotations: { [nabslName]: 'own' } }),
      gen.ownedStorageLocation({ namespace: bank, name: 'bank-default', spec: { default: true } }),
      gen.nonAdminStorageLocation({ namespace: bank, nacuuid: 'bank-default' }),
      gen.ownedStorageLocation({ namespace: apps, name: 'orphan', annotations: { [nabslName]: 'nobody' } }),
      gen.nonAdminStorageLocation({ namespace: apps, name: 'renewed', nacuuid: 'apps-renewed-2' }),
      gen.ownedStorageLocation({ namespace: apps, name: 'apps-renewed-1', annotations: { [nabslName]: 'renewed' } }),
      gen.nonAdminStorageLocation({
        namespace: apps,
        name: 'leaving',
        nacuuid: 'apps-leaving',
        metadata: { finalizers: ['test/held'] },
      }),
      gen.ownedStorageLocation({ namespace: apps, name: 'apps-leaving', annotations: { [nabslName]: 'leaving' } }),
    ].map((object) => objects.create(object)),
  );
  await job.api.call(
    'DELETE',
    `/apis/oadp.openshift.io/v1alpha1/namespaces/${apps}/nonadminbackupstoragelocations/leaving`,
  );

  const building: Promise<Case>[] = [];
  function add(
    reason: DecisionReason,
    title: string,
    namespace: string,
    shape: BackupShape & { readonly name?: string } = {},
    owner?: string,
  ): string {
    // A name of its own, so that no case stands in another one's way.
    const {
      name = title
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-')
        .slice(0, 40),
    } = shape;
    const id = shape.nacuuid ?? nacuuid(namespace, name);
    const wanted = gen.backup({ ...shape, namespace, name, nacuuid: id });
    building.push(
      objects.create(wanted).then((backup) => ({
        title,
        reason,
        backup,
        claim: claimOf(backup),
        ...(owner === undefined ? {} : { nabslName: owner }),
      })),
    );
    return id;
  }

  add('InvalidOrigin', 'no NACUUID', apps, { labels: { [nabNacuuid]: undefined } });
  add('InvalidOrigin', 'no origin name', apps, { annotations: { [nabName]: undefined } });
  add('InvalidOrigin', 'no origin namespace', apps, { annotations: { [nabNamespace]: undefined } });
  add('InvalidOrigin', 'a name that is a path', apps, { annotations: { [nabName]: '../../secrets/root' } });
  add('InvalidOrigin', 'a namespace in capitals', apps, { annotations: { [nabNamespace]: apps.toUpperCase() } });
  add('InvalidOrigin', 'a name that would move the cursor', apps, { annotations: { [nabName]: '\u001b[2Jdaily' } });

  const present = add('Present', 'a NAB that its user made', apps);
  add('IdentityMismatch', 'a copy of another NACUUID', apps, { labels: { [nabNacuuid]: present } });

  for (const namespace of [oadpNamespace, 'kube-system', 'openshift', 'openshift-monitoring', vault]) {
    add('ProtectedNamespace', `claims ${namespace}`, namespace);
  }

  add('UnknownStorageLocation', 'a location that is gone', apps, { spec: { storageLocation: 'gone' } });
  add('UnknownStorageLocation', 'names no location', apps, { spec: { storageLocation: undefined } });
  add('UnwatchedStorageLocation', 'a location that is not default', apps, { spec: { storageLocation: 'archive' } });
  add('UnwatchedStorageLocation', 'half the marks of a NABSL', apps, { spec: { storageLocation: 'half-marked' } });

  add('StorageLocationOwnerGone', 'a NABSL that is gone', apps, { spec: { storageLocation: 'orphan' } });
  add('StorageLocationOwnerGone', 'a NABSL being deleted', apps, { spec: { storageLocation: 'apps-leaving' } });
  add('StorageLocationOwnerGone', 'a new NABSL of the name', apps, { spec: { storageLocation: 'apps-renewed-1' } });
  add('StorageLocationOwnerMismatch', 'bank forges for apps', apps, { spec: { storageLocation: 'bank-own' } });
  add('StorageLocationOwnerMismatch', 'also in a default location', apps, {
    spec: { storageLocation: 'bank-default' },
  });

  add('ForeignContent', 'includes everything', apps, { spec: { includedNamespaces: ['*'] } });
  add('ForeignContent', 'includes another tenant', apps, { spec: { includedNamespaces: [apps, bank] } });
  add('ForeignContent', 'includes only another tenant', apps, { spec: { includedNamespaces: [bank] } });
  add('ForeignContent', 'includes nothing by name', apps, { spec: { includedNamespaces: undefined } });

  const requested = add('BeingDeleted', 'a delete request not begun', apps);
  const failing = add('BeingDeleted', 'a delete request with errors', apps);
  const held = add('BeingDeleted', 'has a deletionTimestamp', apps, { metadata: { finalizers: ['test/held'] } });
  add('BeingDeleted', 'phase Deleting', apps, { status: { phase: 'Deleting' } });
  const refused = add('Missing', 'a delete request that is through', apps);

  for (const phase of ['New', 'InProgress', 'Finalizing', 'FailedValidation']) {
    add('NotFinished', `phase ${phase}`, apps, { status: { phase } });
  }
  add('NotFinished', 'no phase', apps, { status: { phase: undefined } });
  add('NotFinished', 'no completion time', apps, { status: { completionTimestamp: undefined } });
  const running = { phase: 'InProgress', completionTimestamp: undefined };

  const past = { expiration: fromNow(-minute) };
  add('Expired', 'expired a minute ago', apps, { status: past });
  add('Missing', 'expired, but read-only', apps, { status: past, spec: { storageLocation: 'readonly' } });

  add('NamespaceMissing', 'no such namespace', missing);
  add('NamespaceTerminating', 'a namespace on its way out', going);
  add('NamespaceNotSelected', 'a namespace without the label', unselected);

  const bySyncLabel = add('Present', 'a NAB that was synced', apps);
  const owned = add('Present', 'a NAB that its owner deletes for good', apps);
  const bare = add('StatusMissing', 'a NAB without a status', apps);
  const stale = add('StatusStale', 'a NAB that missed its Backup', apps);

  add('LocationSyncing', 'Velero is still reading', apps, { spec: { storageLocation: 'reading' } });
  add('LocationSyncing', 'Velero never read it', apps, { spec: { storageLocation: 'never-read' } });
  add('Missing', 'Velero cannot read it', apps, { spec: { storageLocation: 'away' } });

  const older = { status: { completionTimestamp: fromNow(-2 * day) } };
  add('Superseded', 'an older one', apps, { name: 'made-anew', ...older });
  add('Missing', 'a newer one', apps, { name: 'made-anew' });
  const sameTime = { status: { completionTimestamp: fromNow(-day) } };
  add('Superseded', 'a tie, the smaller NACUUID', apps, { name: 'tie', nacuuid: `${apps}-tie-1`, ...sameTime });
  add('Missing', 'a tie, the larger NACUUID', apps, { name: 'tie', nacuuid: `${apps}-tie-2`, ...sameTime });
  add('Missing', 'the newer one still runs', apps, { name: 'running-anew' });
  add('NotFinished', 'still runs', apps, { name: 'running-anew', status: running });

  add('NameTaken', 'a NAB of another backup', apps);
  add('NameTaken', 'a NAB without a backup yet', apps);
  const labelled = add('NameTaken', 'label and status differ', apps);

  add('Missing', 'completed', apps);
  add('Missing', 'partially failed', bank, { status: { phase: 'PartiallyFailed' } });
  add('Missing', 'failed', bank, { status: { phase: 'Failed' } });
  add('Missing', 'in a second default location', bank, { spec: { storageLocation: 'second-default' } });
  add('Missing', 'in a location that the admin named', bank, { spec: { storageLocation: 'yesterday' } });
  add('Missing', 'in the location of its tenant', apps, { spec: { storageLocation: 'apps-own' } }, 'own');
  add('Missing', 'in a default one of its tenant', bank, { spec: { storageLocation: 'bank-default' } }, 'bucket');

  const cases = await Promise.all(building);
  const claim = (title: string): { namespace: string; name: string } => {
    const found = cases.find((each) => each.title === title);
    if (found === undefined) throw new Error(`no case "${title}"`);
    return { namespace: found.claim.namespace, name: found.claim.name };
  };
  const unfinished = { type: 'Accepted', status: 'False', reason: 'VeleroBackupNotFound', message: 'away' };
  await Promise.all(
    [
      gen.deleteRequest({ name: 'not-begun', backupName: requested }),
      gen.deleteRequest({
        name: 'with-errors',
        backupName: failing,
        status: { phase: 'InProgress', errors: ['the bucket does not answer'] },
      }),
      gen.deleteRequest({
        name: 'through',
        backupName: refused,
        status: { phase: 'Processed', errors: ['the bucket is locked'] },
      }),
      gen.nonAdminBackup({ ...claim('a NAB that its user made'), nacuuid: present }),
      gen.nonAdminBackup({ ...claim('a NAB that was synced'), nacuuid: bySyncLabel, syncedFrom: bySyncLabel }),
      withoutStatus({
        ...gen.nonAdminBackup({ ...claim('a NAB that its owner deletes for good'), syncedFrom: owned }),
        spec: { backupSpec: {}, deleteBackup: true },
      }),
      withoutStatus(gen.nonAdminBackup({ ...claim('a NAB without a status'), syncedFrom: bare })),
      gen.nonAdminBackup({
        ...claim('a NAB that missed its Backup'),
        nacuuid: stale,
        syncedFrom: stale,
        status: { phase: 'BackingOff', conditions: [{ ...unfinished, lastTransitionTime: fromNow(-hour) }] },
      }),
      gen.nonAdminBackup({ ...claim('a NAB of another backup'), nacuuid: 'of-another-backup' }),
      withoutStatus(gen.nonAdminBackup(claim('a NAB without a backup yet'))),
      gen.nonAdminBackup({ ...claim('label and status differ'), nacuuid: 'of-another-backup', syncedFrom: labelled }),
    ].map((object) => objects.create(object)),
  );
  await job.api.call('DELETE', `/apis/velero.io/v1/namespaces/${oadpNamespace}/backups/${held}`);
  await startNamespaceDeletion(objects, going);

  return {
    cases,
    flags: [
      '--namespace-selector=tenant=yes',
      '--storage-location=yesterday',
      `--protected-namespace=${tenant('v*t')}`,
    ],
    namespaces: [apps, bank, going, unselected, oadpNamespace],
    apps,
    bank,
  };
}

function claimOf(backup: JsonObject): Case['claim'] {
  const metadata = objectAt(backup, 'metadata');
  const annotations = objectAt(metadata, 'annotations');
  return {
    namespace: stringAt(annotations, nabNamespace) ?? '',
    name: stringAt(annotations, nabName) ?? '',
    nacuuid: stringAt(objectAt(metadata, 'labels'), nabNacuuid) ?? '',
  };
}

function withoutStatus({ status, ...rest }: JsonObject): JsonObject {
  return rest;
}

/** The NAB that a case is about, if it is there. */
export async function nabOf(job: MainJob, { claim }: Case): Promise<JsonObject | undefined> {
  return await job.objects.get(kinds.nonAdminBackups, { namespace: claim.namespace, name: claim.name });
}
