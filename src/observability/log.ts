import { pino, type DestinationStream, type Logger } from 'pino';
import { ConfigurationError } from '../kube/configuration-error.ts';
import { KubeError } from '../kube/errors.ts';
import type { LogFormat, LogLevel } from '../settings/settings.ts';
import { SettingsError } from '../settings/settings-error.ts';

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** With format pretty: whether to use colours. */
  readonly color: boolean;
  /** Where lines go; stderr unless a test says otherwise. stdout is for data. */
  readonly destination?: DestinationStream;
}

const stderr = 2;

/** The system's own word for an error (`ECONNREFUSED`, `ERR_INVALID_URL`), if it has one. */
export function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/**
 * A fault of ours, so that its stack is of use. Other errors say all by their message: those made for people, and those with a
 * code, by which the system or a library refused something; but Node gives codes to misused arguments, too.
 */
export function isBug(error: unknown): boolean {
  if (error instanceof KubeError || error instanceof ConfigurationError || error instanceof SettingsError) return false;
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError) return true;
  return codeOf(error) === undefined;
}

/** An error and what caused it, `depth` levels down. */
function describe(error: Error, depth: number): Record<string, unknown> {
  const cause = error.cause instanceof Error && depth > 0 ? { cause: describe(error.cause, depth - 1) } : {};
  const code = codeOf(error);
  if (error instanceof KubeError) {
    const { verb, resource, namespace, objectName, status, reason, message } = error;
    return { code, message, verb, resource, namespace, name: objectName, status, reason, ...cause };
  }
  const facts = { type: error.name, ...(code !== undefined && { code }), message: error.message, ...cause };
  return isBug(error) ? { ...facts, stack: error.stack } : facts;
}

/**
 * Errors in the log: code, message and what was asked for; the stack only where it is a fault of ours. Never headers, bodies
 * or other fields that a library may hang on its errors.
 */
export function errorForLog(error: unknown): unknown {
  return error instanceof Error ? describe(error, 3) : error;
}

/**
 * A logger on stderr. Lines are written before the call returns, so none is lost when the process ends; without a worker
 * thread, since the bundle is a single file and has none to load.
 */
export async function createLogger({ level, format, color, destination }: LogOptions): Promise<Logger> {
  const options = {
    level,
    // The pod's name and process id are known to whoever collects the logs.
    base: null,
    serializers: { err: errorForLog },
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  if (format === 'json') return pino(options, destination ?? pino.destination({ dest: stderr, sync: true }));
  // Only on a terminal, and a tenth of the time to start.
  const { default: pretty } = await import('pino-pretty');
  const lines = pretty({
    colorize: color,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname',
    singleLine: true,
    sync: true,
    destination: destination ?? stderr,
  });
  return pino(options, lines);
}
