import type { CommandContext } from '../controller/context.ts';
import type { PlannedDecision } from '../sync/report.ts';
import { exitCodes } from './exit-codes.ts';
import { render, type OutputFormat } from './output.ts';
import { planDocument, planTable } from './plan-output.ts';
import type { CommandResult } from './result.ts';
import { write, type Streams } from './streams.ts';

/** Prints what a pass would do. Ends well whatever it finds: a plan is no judgement. */
export async function plan(
  context: CommandContext,
  output: OutputFormat,
  { out, error, terminal }: Streams,
  planPass: (context: CommandContext) => Promise<readonly PlannedDecision[]>,
): Promise<CommandResult> {
  const document = planDocument(await planPass(context));
  const forPeople = output === 'table' || output === 'wide';
  if (forPeople && document.decisions.length === 0) {
    // As kubectl does: people are told, and a pipe gets nothing.
    await write(error, `No labelled Velero Backups found in namespace ${context.settings.oadpNamespace.value}.\n`);
    return { exitCode: exitCodes.ok };
  }
  await write(out, await render(output, document, () => planTable(document, { terminal, wide: output === 'wide' })));
  return { exitCode: exitCodes.ok };
}
