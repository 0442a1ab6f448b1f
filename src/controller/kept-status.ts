import { KubeError } from '../kube/errors.ts';
import { makeClient } from './clients.ts';
import type { CommandContext } from './context.ts';
import { configMapResource, readStatus, statusConfigMapName } from './sync-status.ts';

/** The status that `run` and `once` keep; undefined where none was kept yet. Rejects with KubeError. */
export async function keptStatus(context: CommandContext): Promise<ReturnType<typeof readStatus> | undefined> {
  const client = makeClient(context);
  const ref = { namespace: context.settings.oadpNamespace.value, name: statusConfigMapName };
  try {
    return readStatus(await client.get(configMapResource, ref, { signal: context.signal }), Date.now());
  } catch (error) {
    if (error instanceof KubeError && error.code === 'NotFound') return undefined;
    throw error;
  } finally {
    await client.close();
  }
}
