import type { KubeClient } from '../kube/client.ts';
import type { ConcurrencyLimit } from '../kube/concurrency-limit.ts';
import type { OutageGate } from '../kube/outage-gate.ts';
import { Reconciler } from '../sync/reconciler.ts';
import type { EventSink } from '../sync/notices.ts';
import { RequestSlots } from '../sync/request-slots.ts';
import { RetainedBackups } from '../sync/retained-backups.ts';
import type { SyncPolicy } from '../sync/world.ts';
import type { Settings } from '../settings/settings.ts';
import type { ClusterCache } from './cluster-cache.ts';
import type { CommandContext } from './context.ts';

/** What the admin has laid down, as the rules want it. */
export function policyOf(settings: Settings): SyncPolicy {
  return {
    oadpNamespace: settings.oadpNamespace.value,
    protectedNamespaces: settings.protectedNamespaces.value,
    storageLocations: settings.storageLocations.value,
  };
}

/** A reconciler over a cache; the same for the controller and for a single pass. */
export function makeReconciler(
  context: CommandContext,
  client: KubeClient,
  cache: ClusterCache,
  events: EventSink,
  limit: ConcurrencyLimit,
  gate?: OutageGate,
): Reconciler {
  const now = (): number => Date.now();
  return new Reconciler({
    client,
    state: cache.state,
    policy: policyOf(context.settings),
    nonAdminBackups: cache.nonAdminBackups,
    slots: new RequestSlots(limit, now),
    retained: new RetainedBackups(),
    gate,
    now,
    events,
    log: context.log,
  });
}

/**
 * How many namespaces are reconciled at once. More than there are request slots, so that the creates of many namespaces
 * stand before the statuses of any; what is in flight is bounded by the slots.
 */
export const namespacesAtOnce = 64;

/** Where the Lease is kept, beside the controller's other things in the OADP namespace. */
export const leaseName = 'nab-sync';
