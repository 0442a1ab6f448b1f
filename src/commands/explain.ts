import type { CommandContext } from '../controller/context.ts';
import { quoted } from '../oadp/printable.ts';
import { SettingsError } from '../settings/settings-error.ts';
import { parseExplainTarget, type ExplainTarget } from '../sync/plan.ts';
import type { Explanation } from '../sync/report.ts';
import { exitCodes } from './exit-codes.ts';
import { explainText } from './explain-output.ts';
import { render, type OutputFormat } from './output.ts';
import type { CommandResult } from './result.ts';
import { tell, write, type Streams } from './streams.ts';

/** Reads `NAMESPACE/NAME` or `VELERO-BACKUP`; what a forged backup may claim is not for us to restrict here. */
function toTarget(text: string): ExplainTarget {
  const target = parseExplainTarget(text);
  const parts = 'backup' in target ? [target.backup] : [target.namespace, target.name];
  if (parts.includes('')) {
    throw new SettingsError([`explain: expected NAMESPACE/NAME or the name of a Velero Backup, got ${quoted(text)}`]);
  }
  return target;
}

/** Prints the rule trail of each matching backup: several may claim one NAB. Fails if none matches. */
export async function explain(
  context: CommandContext,
  text: string,
  output: OutputFormat,
  streams: Streams,
  explainBackup: (context: CommandContext, target: ExplainTarget) => Promise<readonly Explanation[]>,
): Promise<CommandResult> {
  const explanations = await explainBackup(context, toTarget(text));
  if (explanations.length === 0) {
    const place = context.settings.oadpNamespace.value;
    const message = `no labelled Velero Backup in namespace ${place} matches ${quoted(text, 320)}; nab-sync plan lists them`;
    await tell(streams, message);
    return { exitCode: exitCodes.failed, failed: { code: 'NotFound', message } };
  }
  const look = { terminal: streams.terminal, wide: output === 'wide' };
  await write(streams.out, await render(output, { explanations }, () => explainText(explanations, look)));
  return { exitCode: exitCodes.ok };
}
