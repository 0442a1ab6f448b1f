import type { CommandContext } from '../controller/context.ts';
import type { PassReport } from '../sync/report.ts';
import { exitCodes } from './exit-codes.ts';
import { onceTable } from './once-output.ts';
import { render, type OutputFormat } from './output.ts';
import type { CommandResult } from './result.ts';
import { write, type Streams } from './streams.ts';

/** One pass and its report. Fails only if a write failed: conflicts, skips and another holder of the Lease are no failures. */
export async function once(
  context: CommandContext,
  output: OutputFormat,
  { out, terminal }: Streams,
  runOnce: (context: CommandContext) => Promise<PassReport>,
): Promise<CommandResult> {
  const report = await runOnce(context);
  await write(out, await render(output, report, () => onceTable(report, { terminal, wide: output === 'wide' })));
  const { failed } = report.counts;
  if (failed === 0) return { exitCode: exitCodes.ok };
  return {
    exitCode: exitCodes.failed,
    failed: {
      code: report.outcome,
      message: `${failed} of ${report.counts.seen} backups could not be brought back`,
      counts: report.counts,
      failures: report.failures,
    },
  };
}
