import type { Logger } from 'pino';
import type { CommandContext } from '../controller/context.ts';
import { HealthChecks } from '../observability/health.ts';
import { createLogger } from '../observability/log.ts';
import { noMetrics } from '../observability/metrics.ts';
import { isDnsLabel } from '../oadp/names.ts';
import { quoted } from '../oadp/printable.ts';
import { describeSettings, resolveSettings, type Settings } from '../settings/settings.ts';
import { SettingsError } from '../settings/settings-error.ts';
import type { Invocation } from './command-line.ts';
import { exitCodes, type ExitCode } from './exit-codes.ts';
import { describeFailure } from './fail.ts';
import type { CommandResult } from './result.ts';
import { ProgressLine } from './progress.ts';
import { tell } from './streams.ts';
import { Interruption, type Surroundings } from './surroundings.ts';
import { wantsColor } from './terminal.ts';
import { namedTerminationLog, tellTerminationLog, terminationLogPath } from './termination-log.ts';
import { version } from './version.ts';

/** Runs a command's body; loads what it needs only then, since a cold start is waited for. */
export type Dispatch = (
  invocation: Invocation,
  context: CommandContext,
  surroundings: Surroundings,
) => Promise<CommandResult>;

/** The namespaces of `-n`, each of which may be a list. */
function namespacesOf(invocation: Invocation): string[] {
  if (!('namespaces' in invocation)) return [];
  const namespaces = invocation.namespaces.flatMap((text) => text.split(',')).map((text) => text.trim());
  const wrong = namespaces.filter((namespace) => !isDnsLabel(namespace));
  if (wrong.length > 0) {
    throw new SettingsError(wrong.map((text) => `--namespace: expected a namespace, got ${quoted(text, 80)}`));
  }
  return namespaces;
}

/** What is known by the time something fails; fills up as the command gets on. */
interface Progress {
  settings?: Settings;
  log?: Logger;
  server?: string;
}

async function work(
  invocation: Invocation,
  progress: Progress,
  { host, signal, streams }: Surroundings,
  line: ProgressLine,
  dispatch: (context: CommandContext) => Promise<CommandResult>,
): Promise<CommandResult> {
  const settings = resolveSettings(invocation.flags, host);
  progress.settings = settings;
  const log = await createLogger({
    level: settings.logLevel.value,
    format: settings.logFormat.value,
    color: host.stderrIsTerminal && wantsColor(host.environment),
    ...(streams.errorTerminal !== undefined && { destination: line.before(streams.error) }),
  });
  progress.log = log;
  const namespaces = namespacesOf(invocation);
  const { loadConnection } = await import('../kube/connection.ts');
  const connection = loadConnection({ kubeconfig: settings.kubeconfig.value, context: settings.context.value });
  progress.server = connection.server;
  // The controller tells them itself, and again when the DPA changes one.
  if (invocation.command !== 'run') {
    log.debug({ version, server: connection.server, settings: describeSettings(settings) }, 'settings in force');
  }
  return dispatch({
    settings,
    namespaces,
    connection,
    log,
    metrics: noMetrics,
    progress: (...progress) => {
      line.show(...progress);
    },
    health: { live: new HealthChecks(), ready: new HealthChecks() },
    userAgent: `nab-sync/${version}`,
    signal,
  });
}

/** Commands that people run in the controller's pod as well, whose termination log is the controller's. */
const questions: ReadonlySet<Invocation['command']> = new Set(['plan', 'explain', 'status', 'check']);

/** The exit code of a command that was told to end before it was done. A controller is never done: it did as it was told. */
function interrupted({ command }: Invocation, signal: AbortSignal): ExitCode {
  if (command === 'run') return exitCodes.ok;
  const reason: unknown = signal.reason;
  return reason instanceof Interruption && reason.signalName === 'SIGTERM'
    ? exitCodes.terminated
    : exitCodes.interrupted;
}

/** One command from its settings to its exit code. Never rejects for what the command ran into: that is told, and is the code. */
export async function execute(
  invocation: Invocation,
  surroundings: Surroundings,
  dispatch: Dispatch,
): Promise<ExitCode> {
  const { streams, host, signal, crashed } = surroundings;
  const progress: Progress = {};
  // With the data in a pipe, the terminal may be that of the next command.
  const line = new ProgressLine(streams.error, streams.terminal && streams.errorTerminal);
  const { command } = invocation;
  const path = () => {
    if (questions.has(command)) return namedTerminationLog(invocation.flags, host);
    // Settings may be what is wrong; then the path is taken as it was given.
    return progress.settings?.terminationLog.value ?? terminationLogPath(invocation.flags, host);
  };
  try {
    const result = await Promise.race([
      work(invocation, progress, surroundings, line, (context) => dispatch(invocation, context, surroundings)),
      crashed,
    ]);
    const { failed } = result;
    if (failed === undefined) return result.exitCode;
    // Not all of it was done because it was told to end: that is what the exit code says, as if it had not come so far.
    const exitCode = signal.aborted ? interrupted(invocation, signal) : result.exitCode;
    await tellTerminationLog(path(), { command, exitCode, ...failed }, streams);
    return exitCode;
  } catch (error) {
    line.clear();
    const { lines, exitCode, code, stack } = describeFailure(error, {
      server: progress.server,
      oadpNamespace: progress.settings?.oadpNamespace.value,
    });
    // Whatever was under way when the signal came failed because of it, unless it is a fault of ours. What had not begun
    // fails with the signal's own reason.
    if (signal.aborted && (stack === undefined || error === signal.reason)) {
      const code = interrupted(invocation, signal);
      const message = `${signal.reason instanceof Interruption ? signal.reason.message : 'ended'} before it was done`;
      if (code !== exitCodes.ok) {
        await tellTerminationLog(path(), { command, exitCode: code, code: 'Interrupted', message }, streams);
      }
      return code;
    }
    for (const text of lines) await tell(streams, text);
    if (stack !== undefined) progress.log?.[command === 'run' ? 'fatal' : 'debug']({ err: error }, 'internal error');
    await tellTerminationLog(path(), { command, exitCode, code, message: lines.join('; ') }, streams);
    return exitCode;
  }
}
