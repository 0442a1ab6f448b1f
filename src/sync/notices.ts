import { apiVersion } from '../kube/resource.ts';
import { namespaces, nonAdminBackups } from '../oadp/kinds.ts';
import { syncedCondition } from '../oadp/non-admin-backup.ts';
import { quoted } from '../oadp/printable.ts';
import { rfc3339Seconds } from '../oadp/read.ts';
import type { ItemResult } from './namespace-pass.ts';
import type { FailureReason, Reason } from './reasons.ts';
import { messageForTenant } from './tenant-message.ts';

/** Where events go; never fails and never holds up the caller. */
export interface EventSink {
  record(event: {
    readonly regarding: {
      readonly apiVersion: string;
      readonly kind: string;
      readonly namespace?: string;
      readonly name: string;
      readonly uid?: string;
    };
    readonly type: 'Normal' | 'Warning';
    readonly reason: string;
    readonly message: string;
    /** The same fact has the same key, so that telling it twice makes one event. */
    readonly dedupeKey: string;
  }): void;
}

/** Most single events of a kind for a namespace and pass; what goes beyond is told in one that carries the count. */
const singleEvents = 5;

/** Failures that the namespace's owner or admin can do something about, and what that is. */
const toldFailures: ReadonlyMap<Reason, string> = new Map<FailureReason, string>([
  [
    'QuotaDenied',
    'Have the quota on count/nonadminbackups.oadp.openshift.io raised, or delete NonAdminBackups that nobody needs: it is tried again by itself.',
  ],
  [
    'AdmissionDenied',
    'Ask the admin of the policy or webhook named below to let it pass: it is tried again by itself.',
  ],
  [
    'Invalid',
    'The installed NonAdminBackup CRD refuses its spec: ask the admin to bring OADP to the version that made the backup. It is tried again when the backup or the namespace changes.',
  ],
  [
    'TooLarge',
    'The API server takes no object of this size: ask the admin to restore from the Velero Backup itself. It is tried again when the backup or the namespace changes.',
  ],
]);

function completed({ backup }: ItemResult): string {
  return backup.completionTime === undefined ? 'an unknown time' : rfc3339Seconds(backup.completionTime);
}

function aboutNab(item: ItemResult): Parameters<EventSink['record']>[0]['regarding'] {
  const { namespace = '', name = '' } = item.backup.claim;
  return {
    apiVersion: apiVersion(nonAdminBackups),
    kind: nonAdminBackups.kind,
    namespace,
    name,
    ...(item.nabUid === undefined ? {} : { uid: item.nabUid }),
  };
}

function aboutNamespace(namespace: string, uid: string | undefined): Parameters<EventSink['record']>[0]['regarding'] {
  return {
    apiVersion: apiVersion(namespaces),
    kind: namespaces.kind,
    name: namespace,
    ...(uid === undefined ? {} : { uid }),
  };
}

/**
 * Tells in events what is new in a namespace. They are read by the tenant, so nothing in them stems from another
 * namespace, and a Velero Backup is named only to the namespace that it belongs to.
 *
 * @param news results that differ from those of the pass before
 * @param namespaceUid uid of the Namespace object, where known
 */
export function tellNews(
  sink: EventSink,
  namespace: string,
  namespaceUid: string | undefined,
  news: readonly ItemResult[],
): void {
  const created = news.filter(({ outcome }) => outcome === 'created');
  const repaired = news.filter(({ outcome }) => outcome === 'repaired');
  const conflicts = news.filter(({ outcome }) => outcome === 'conflict');

  for (const item of created.slice(0, singleEvents)) {
    sink.record({
      regarding: aboutNab(item),
      type: 'Normal',
      reason: syncedCondition.reason,
      message: `Re-created from the Velero Backup ${item.backup.name}, which completed at ${completed(item)}. To remove the backup for good, set spec.deleteBackup to true; after a plain delete it comes back.`,
      dedupeKey: item.backup.name,
    });
  }
  for (const item of repaired.slice(0, singleEvents)) {
    sink.record({
      regarding: aboutNab(item),
      type: 'Normal',
      reason: item.reason,
      message: `Status completed from the Velero Backup ${item.backup.name}, which completed at ${completed(item)}.`,
      dedupeKey: item.backup.name,
    });
  }
  const beyond = Math.max(0, created.length - singleEvents) + Math.max(0, repaired.length - singleEvents);
  if (beyond > 0) {
    sink.record({
      regarding: aboutNamespace(namespace, namespaceUid),
      type: 'Normal',
      reason: syncedCondition.reason,
      message: `${String(beyond)} more NonAdminBackups were re-created or repaired from Velero Backups.`,
      dedupeKey: 'beyond',
    });
  }
  for (const item of conflicts.slice(0, singleEvents)) {
    sink.record({
      regarding: aboutNab(item),
      type: 'Warning',
      reason: item.reason,
      message: `This NonAdminBackup has the name of a stored backup that completed at ${completed(item)}, which therefore is not brought back. Delete this one, or keep it and ignore the other.`,
      dedupeKey: item.backup.name,
    });
  }
  if (conflicts.length > singleEvents) {
    const more = String(conflicts.length - singleEvents);
    sink.record({
      regarding: aboutNamespace(namespace, namespaceUid),
      type: 'Warning',
      reason: 'NameTaken',
      message: `${more} more NonAdminBackups have the names of stored backups, which therefore are not brought back. Delete those whose stored backup you want.`,
      dedupeKey: 'beyond',
    });
  }
  for (const [reason, items] of byReason(news.filter(({ reason }) => toldFailures.has(reason)))) {
    const count = items.length === 1 ? '1 NonAdminBackup' : `${String(items.length)} NonAdminBackups`;
    const [first] = items;
    const { name } = first?.backup.claim ?? {};
    sink.record({
      regarding: aboutNamespace(namespace, namespaceUid),
      type: 'Warning',
      reason,
      message: `${count} could not be re-created, among them ${quoted(name)}. ${toldFailures.get(reason) ?? ''} The API server said: ${first === undefined ? '' : messageForTenant(first)}`,
      dedupeKey: reason,
    });
  }
}

function byReason(items: readonly ItemResult[]): Map<Reason, ItemResult[]> {
  const groups = new Map<Reason, ItemResult[]>();
  for (const item of items) {
    const group = groups.get(item.reason);
    if (group === undefined) groups.set(item.reason, [item]);
    else group.push(item);
  }
  return groups;
}
