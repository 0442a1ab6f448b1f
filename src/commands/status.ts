import type { CommandContext } from '../controller/context.ts';
import { neverSynced, statusConfigMapName, statusDocument, type SyncStatus } from '../controller/sync-status.ts';
import { exitCodes } from './exit-codes.ts';
import { render, type OutputFormat } from './output.ts';
import type { CommandResult } from './result.ts';
import { statusTable } from './status-output.ts';
import { tell, write, type Streams } from './streams.ts';

/** Prints how the passes went, as `run` and `once` keep it. Ends well whatever it finds: it is no judgement. */
export async function status(
  context: CommandContext,
  output: OutputFormat,
  streams: Streams,
  keptStatus: (
    context: CommandContext,
  ) => Promise<{ readonly status: SyncStatus; readonly unreadable: readonly string[] } | undefined>,
): Promise<CommandResult> {
  const kept = await keptStatus(context);
  const place = `ConfigMap ${statusConfigMapName} in namespace ${context.settings.oadpNamespace.value}`;
  if (kept === undefined) await tell(streams, `nothing was synced yet: there is no ${place}`);
  else if (kept.unreadable.length > 0) {
    await tell(streams, `${place} was edited and is left out in part: ${kept.unreadable.join(', ')}`);
  }
  const found = kept?.status ?? neverSynced;
  await write(streams.out, await render(output, statusDocument(found), () => statusTable(found, Date.now())));
  return { exitCode: exitCodes.ok };
}
