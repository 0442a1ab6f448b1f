import { KubeClient, type RequestInfo } from '../kube/client.ts';
import { EventRecorder } from '../kube/events.ts';
import type { ConcurrencyLimit } from '../kube/concurrency-limit.ts';
import type { CommandContext } from './context.ts';

/** Connections beside those for the pass's own requests: lists, events, the Lease. */
const spareConnections = 8;

/**
 * @param limit hears how long the requests take
 * @param onRequest called for every request that is over
 */
export function makeClient(
  { connection, settings, userAgent, metrics }: CommandContext,
  limit?: ConcurrencyLimit,
  onRequest?: (request: RequestInfo) => void,
): KubeClient {
  return new KubeClient(connection, {
    connections: settings.concurrency.value + spareConnections,
    userAgent,
    onRequest: (request) => {
      metrics.request(request);
      onRequest?.(request);
      if (limit === undefined) return;
      limit.observe(request);
      metrics.concurrencyLimit(limit.current);
    },
  });
}

export function makeEvents({ log }: CommandContext, client: KubeClient, identity: string): EventRecorder {
  return new EventRecorder({ client, log, component: 'nab-sync', instance: identity });
}
