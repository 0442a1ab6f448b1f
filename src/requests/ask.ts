import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import { KubeError, policyFor } from '../kube/errors.ts';
import { apiVersion, type JsonObject } from '../kube/resource.ts';
import { syncRequests } from '../oadp/kinds.ts';
import { nameAt } from '../oadp/read.ts';
import { isFinal, toSyncRequestRecord, type Phase } from './sync-request.ts';

/** Makes a request for a sync and returns it as the server stored it. Rejects with KubeError. */
export async function makeRequest(
  client: Pick<KubeClient, 'create'>,
  namespace: string,
  namespaceSelector: JsonObject | undefined,
): Promise<JsonObject> {
  return client.create(
    syncRequests,
    { namespace },
    {
      apiVersion: apiVersion(syncRequests),
      kind: syncRequests.kind,
      metadata: { namespace, generateName: 'sync-' },
      spec: namespaceSelector === undefined ? {} : { namespaceSelector },
    },
  );
}

export interface WaitOptions {
  readonly client: Pick<KubeClient, 'get'>;
  /** Milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Told of each phase that is seen, once. */
  readonly onPhase: (phase: Phase) => void;
}

/** The request was not answered in time. `request` is it as it was seen last. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError';
  readonly request: JsonObject;

  constructor(request: JsonObject) {
    super('no answer in time');
    this.request = request;
  }
}

/** How often the request is looked at. A right to `get` is all that this needs. */
const lookMs = 500;

/**
 * Waits until a request is answered and returns it. Rejects with UnansweredError when it is not in time; with KubeError
 * where it cannot be read or is gone, though not for what passes by itself; and with the signal's reason.
 */
export async function untilAnswered(request: JsonObject, options: WaitOptions): Promise<JsonObject> {
  const { client, timeoutMs, clock, signal, onPhase } = options;
  const ref = { namespace: nameAt(request, 'metadata', 'namespace'), name: nameAt(request, 'metadata', 'name') };
  const deadline = clock.monotonic() + timeoutMs;
  let latest = request;
  let told: Phase | undefined;
  for (;;) {
    const phase = toSyncRequestRecord(latest)?.phase ?? 'Pending';
    if (phase !== told) onPhase(phase);
    told = phase;
    if (isFinal({ phase })) return latest;
    const left = deadline - clock.monotonic();
    if (left <= 0) throw new UnansweredError(latest);
    await clock.sleep(Math.min(lookMs, left), signal);
    signal.throwIfAborted();
    try {
      latest = await client.get(syncRequests, ref, { signal });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof KubeError && policyFor(error) === 'retry')) throw error;
    }
  }
}
