import { parseCommandLine } from './command-line.ts';
import { execute, type Dispatch } from './execute.ts';
import { exitCodes, type ExitCode } from './exit-codes.ts';
import { tell, write } from './streams.ts';
import type { Surroundings } from './surroundings.ts';
import { tellTerminationLog, terminationLogPath } from './termination-log.ts';

/** From the arguments after `node nab-sync.mjs` to the exit code. */
export async function cli(args: readonly string[], surroundings: Surroundings, dispatch: Dispatch): Promise<ExitCode> {
  const { streams, host } = surroundings;
  const parsed = parseCommandLine(args, surroundings.program);
  switch (parsed.kind) {
    case 'text':
      await write(streams.out, parsed.text);
      return exitCodes.ok;
    case 'usageError':
      await tell(streams, parsed.message);
      // A Deployment with a mistyped flag is looked for where all other failures are.
      await tellTerminationLog(
        terminationLogPath({}, host),
        { command: '', exitCode: exitCodes.usage, code: 'Configuration', message: parsed.message },
        streams,
      );
      return exitCodes.usage;
    case 'invocation':
      return execute(parsed.invocation, surroundings, dispatch);
  }
}
