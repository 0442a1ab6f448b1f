import { z } from 'zod';
import type { JsonObject } from '../../src/kube/resource.ts';
import { syncRequests } from '../../src/oadp/kinds.ts';
import { count, outcomeCounts } from './documented-json.ts';
import { eventually } from './eventually.ts';
import type { Objects } from './objects.ts';

/** Sync requests as tests make them, and their answers as documented. */

const entry = z.strictObject({
  namespace: z.string(),
  name: z.string(),
  reason: z.string(),
  message: z.string().min(1),
});
const time = z.iso.datetime();

const condition = z.strictObject({
  type: z.enum(['Complete', 'Succeeded']),
  status: z.enum(['True', 'False', 'Unknown']),
  observedGeneration: z.int(),
  lastTransitionTime: time,
  reason: z.string(),
  message: z.string(),
});

const history = z.strictObject({
  attempts: count,
  lastAttemptTime: time,
  lastSuccessTime: time.optional(),
  lastFailureTime: time.optional(),
  lastFailureMessage: z.string().optional(),
  failingSince: time.optional(),
  consecutiveFailures: count,
});

/** A status that is final, as documented: an additional field is a change of the interface. */
export const finalStatus = z.strictObject({
  phase: z.enum(['Succeeded', 'Partial', 'Failed']),
  observedGeneration: z.int(),
  startTime: time,
  completionTime: time,
  conditions: z.array(condition).length(2),
  oadpNamespace: z.string(),
  namespaces: count,
  counts: outcomeCounts,
  written: z
    .array(
      z.strictObject({
        namespace: z.string(),
        name: z.string(),
        veleroBackup: z.string(),
        outcome: z.enum(['Created', 'Repaired']),
      }),
    )
    .max(20),
  skipped: z.array(entry).max(20),
  failed: z.array(entry).max(20),
  omitted: z.strictObject({ written: count, skipped: count, failed: count }),
  history,
});

export type FinalStatus = z.infer<typeof finalStatus>;

/** The status of a request that was refused: nothing was looked at. */
export const refusedStatus = finalStatus
  .partial()
  .required({ phase: true, startTime: true, completionTime: true, conditions: true });

/** A request body; the server gives the name. */
export function syncRequest(namespace: string, spec?: JsonObject): JsonObject {
  return {
    apiVersion: 'sync.oadp.openshift.io/v1alpha1',
    kind: 'NonAdminBackupSyncRequest',
    metadata: { namespace, generateName: 'test-' },
    ...(spec === undefined ? {} : { spec }),
  };
}

const named = z.object({ metadata: z.object({ name: z.string(), namespace: z.string() }) });

/** Makes a request as an admin and returns its name. */
export async function ask(objects: Objects, namespace: string, spec?: JsonObject): Promise<string> {
  return named.parse(await objects.create(syncRequest(namespace, spec))).metadata.name;
}

const withPhase = z.object({ status: z.looseObject({ phase: z.string() }) });

/** Waits until a request has a final status and returns that, unchecked. */
export async function answerOf(
  objects: Objects,
  namespace: string,
  name: string,
  timeoutMs = 30_000,
): Promise<JsonObject> {
  return await eventually(async () => {
    const { status } = withPhase.parse(await objects.get(syncRequests, { namespace, name }));
    if (!['Succeeded', 'Partial', 'Failed'].includes(status.phase)) throw new Error(`${name} is ${status.phase}`);
    return status;
  }, timeoutMs);
}

/** Makes a request and waits for its answer. */
export async function askAndWait(objects: Objects, namespace: string, spec?: JsonObject): Promise<FinalStatus> {
  return finalStatus.parse(await answerOf(objects, namespace, await ask(objects, namespace, spec)));
}
