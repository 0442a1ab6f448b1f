import groupBy from 'lodash/groupBy.js';
import isEqual from 'lodash/isEqual.js';
import { z } from 'zod';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import type { JsonObject, Resource } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import type { Objects } from '../../support/objects.ts';
import type { SeenRequest } from '../fault-proxy.ts';
import { oadpNamespace } from '../stage.ts';
import {
  backupShape,
  deleteRequestShape,
  identityOf,
  locationShape,
  nabShape,
  namespaceShape,
  newest,
  ownerShape,
  syncable,
  syncLabel,
} from './oracle.ts';
import type { Facts, Nab, Syncable } from './oracle.ts';
import type { World } from './world.ts';

/** What a test knows of its NABs: which it made itself, and which can ever have been due. */
export type Ledger = Pick<World, 'premade' | 'canHaveBeenDue'>;

const eventResource: Resource = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

/** Everything that counts, as an admin sees it now. */
export async function readFacts(objects: Objects): Promise<Facts> {
  const all = async <T>(kind: Resource, shape: z.ZodType<T>): Promise<T[]> =>
    (await objects.list(kind)).map((object) => shape.parse(object));
  const [namespaces, backups, locations, owners, deleteRequests, nabs] = await Promise.all([
    all(kinds.namespaces, namespaceShape),
    all(kinds.backups, backupShape),
    all(kinds.backupStorageLocations, locationShape),
    all(kinds.nonAdminBackupStorageLocations, ownerShape),
    all(kinds.deleteBackupRequests, deleteRequestShape),
    all(kinds.nonAdminBackups, nabShape),
  ]);
  return { namespaces, backups, locations, owners, deleteRequests, nabs };
}

/** What of the NABs is not as it has to be, each in one line; empty if all is well. */
export function wrongNabs(facts: Facts, world: Ledger, now = Date.now()): string[] {
  const due = syncable(facts, now);
  const byName = new Map(facts.nabs.map((nab) => [keyOf(nab), nab]));
  const problems: string[] = [];
  for (const [key, rivals] of Object.entries(groupBy(due, ({ namespace, name }) => `${namespace}/${name}`))) {
    const nab = byName.get(key);
    if (nab === undefined) problems.push(`${key} is missing: ${newest(rivals)?.nacuuid ?? ''}`);
  }
  for (const nab of facts.nabs) {
    const home = due.filter(({ namespace, name }) => `${namespace}/${name}` === keyOf(nab));
    problems.push(...wrongWith(nab, home, world).map((problem) => `${keyOf(nab)} ${problem}`));
  }
  return problems;
}

function keyOf({ metadata }: Nab): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

function wrongWith(nab: Nab, rivals: readonly Syncable[], world: Ledger): string[] {
  const { metadata } = nab;
  const premade = world.premade.get(metadata.uid);
  const problems: string[] = [];
  if (metadata.generation !== 1) problems.push('had its spec changed');
  const label = metadata.labels[syncLabel];
  if (premade !== undefined && (premade.kind === 'users' || premade.kind === 'fresh')) {
    // Not ours in any way.
    const { metadata: before, status } = nabShape.parse(premade.object);
    if (!isEqual(before.labels, metadata.labels)) problems.push('is its user’s, and had its metadata changed');
    if (!isEqual(status, nab.status)) problems.push('is its user’s, and had its status changed');
    return problems;
  }
  if (label === undefined) return [...problems, 'was created without the sync label'];
  if (!world.canHaveBeenDue(label, metadata.namespace ?? '', metadata.name)) {
    return [...problems, `does not belong there: it is of ${label}`];
  }
  if (metadata['ownerReferences'] !== undefined || metadata['finalizers'] !== undefined) {
    problems.push('has owners or finalizers');
  }
  const mine = rivals.find(({ nacuuid }) => nacuuid === identityOf(nab));
  // Its Backup has gone or is not due any more: it stays as it is.
  if (mine === undefined) return problems;
  problems.push(...wrongStatus(nab, mine));
  if (premade === undefined) problems.push(...wrongSpec(nab, mine));
  return problems;
}

const conditions = { Accepted: 'BackupAccepted', Queued: 'BackupScheduled', Synced: 'RecreatedFromVeleroBackup' };

function wrongStatus({ status }: Nab, { backup, nacuuid }: Syncable): string[] {
  const problems: string[] = [];
  const { phase, veleroBackup } = status;
  if (phase !== 'Created') problems.push(`has phase ${phase ?? 'none'}`);
  for (const [type, reason] of Object.entries(conditions)) {
    const condition = status.conditions.find((candidate) => candidate.type === type);
    if (condition?.status !== 'True' || condition.reason !== reason) problems.push(`lacks the condition ${type}`);
  }
  const { nacuuid: id, name, namespace } = veleroBackup;
  if (id !== nacuuid || name !== backup.metadata.name || namespace !== oadpNamespace) {
    problems.push('does not name its Velero Backup');
  }
  if (!isEqual(veleroBackup.spec, backup.spec)) problems.push('has not the spec of its Velero Backup');
  if (!isEqual(veleroBackup.status, backup.status)) problems.push('has not the status of its Velero Backup');
  return problems;
}

function wrongSpec({ spec }: Nab, { backup, nabsl }: Syncable): string[] {
  const { storageLocation: _location, ...others } = backup.spec;
  const expected: JsonObject = nabsl === undefined ? others : { ...others, storageLocation: nabsl };
  return isEqual(spec.backupSpec, expected) ? [] : ['was created with another spec'];
}

const eventShape = z.object({
  involvedObject: z.object({ kind: z.string(), name: z.string() }),
  metadata: z.object({ namespace: z.string() }),
  reason: z.string(),
  message: z.string(),
  count: z.number().default(1),
});

/** What of the events is too much. `writes`: how many NABs were created or had their status written, at most. */
export async function wrongEvents(objects: Objects, writes: number, terms: number): Promise<string[]> {
  const told = (await objects.list(eventResource))
    // Others tell of things too, in shapes of their own.
    .filter((object) => stringAt(objectAt(object, 'source'), 'component') === 'nab-sync')
    .map((object) => eventShape.parse(object));
  const problems: string[] = [];
  // A fact about a NAB and its backup is one event, however often it is told.
  const facts = groupBy(told, (event) => [
    event.metadata.namespace,
    event.involvedObject.kind,
    event.involvedObject.name,
    event.reason,
    // The message names the backup.
    event.message,
  ]);
  for (const [fact, same] of Object.entries(facts)) {
    if (same.length > 1) problems.push(`${same.length} events tell the same: ${fact}`);
  }
  const normal = told.filter(({ reason }) => reason !== 'NameTaken');
  const counted = normal.reduce((sum, { count }) => sum + count, 0);
  // An answer to an event may be lost, and the event be told once more.
  if (counted > 2 * writes + 5) problems.push(`${counted} events were told about ${writes} writes`);
  for (const { involvedObject, count } of told.filter(({ reason }) => reason === 'NameTaken')) {
    if (count > 4 * terms) problems.push(`NameTaken was told ${count} times about ${involvedObject.name}`);
  }
  return problems;
}

/** What nab-sync may ask for: verb and resource. */
const allowed: ReadonlySet<string> = new Set([
  'get backups',
  'get nonadminbackups',
  'get leases',
  ...[
    'namespaces',
    'backups',
    'backupstoragelocations',
    'deletebackuprequests',
    'nonadminbackups',
    'nonadminbackupstoragelocations',
    'dataprotectionapplications',
    'nonadminbackupsyncrequests',
  ].flatMap((resource) => [`list ${resource}`, `watch ${resource}`]),
  'create nonadminbackups',
  'update nonadminbackups/status',
  'update nonadminbackupsyncrequests/status',
  'delete nonadminbackupsyncrequests',
  'get configmaps',
  'create configmaps',
  'update configmaps',
  'create events',
  'patch events',
  'create leases',
  'update leases',
  // Whether RBAC lets it create NABs, where a create was refused.
  'create selfsubjectaccessreviews',
]);

/** Requests that nab-sync has no business to make. */
export function wrongRequests(requests: readonly SeenRequest[]): string[] {
  const made = requests.map(({ verb, resource, subresource }) =>
    subresource === undefined ? `${verb} ${resource}` : `${verb} ${resource}/${subresource}`,
  );
  return [...new Set(made)].filter((request) => !allowed.has(request)).map((request) => `asked to ${request}`);
}
