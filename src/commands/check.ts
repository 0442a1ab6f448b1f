import type { CheckResult } from '../controller/check/verdict.ts';
import type { CommandContext } from '../controller/context.ts';
import { checkDocument, checkTable } from './check-output.ts';
import { exitCodes } from './exit-codes.ts';
import { render, type OutputFormat } from './output.ts';
import type { CommandResult } from './result.ts';
import { write, type Streams } from './streams.ts';

/** Prints what is in order and what is not. Fails if something keeps nab-sync from its work; a warning does not. */
export async function check(
  context: CommandContext,
  output: OutputFormat,
  { out, terminal }: Streams,
  checkInstall: (context: CommandContext) => Promise<readonly CheckResult[]>,
): Promise<CommandResult> {
  const document = checkDocument(await checkInstall(context));
  await write(out, await render(output, document, () => checkTable(document, { terminal })));
  return { exitCode: document.counts.FAIL === 0 ? exitCodes.ok : exitCodes.failed };
}
