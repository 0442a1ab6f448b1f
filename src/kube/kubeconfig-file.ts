import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseDocument } from 'yaml';
import { ConfigurationError } from './configuration-error.ts';
import { isJsonObject, objectAt, printable, stringAt } from './json.ts';
import type { JsonObject } from './resource.ts';

/** One context of a kubeconfig, still in kubeconfig's own words, with every path made absolute. */
export interface KubeconfigTarget {
  readonly cluster: JsonObject;
  readonly user: JsonObject;
  readonly namespace: string | undefined;
  /** The file that the cluster came from. */
  readonly file: string;
}

interface Entry {
  readonly file: string;
  readonly value: JsonObject;
}

/**
 * Picks one context out of kubeconfig files. Several files count as kubectl counts them: the first to give a name or a
 * current context wins, files that do not exist are passed over as long as one does.
 *
 * Throws ConfigurationError; nothing of a file's content but names is ever shown.
 */
export function readKubeconfig(files: readonly string[], contextName: string | undefined): KubeconfigTarget {
  const read = files.map((file) => ({ file, config: readFile(file, files.length > 1) }));
  const present = read.filter((one): one is { file: string; config: JsonObject } => one.config !== undefined);
  const where = `kubeconfig ${files.join(path.delimiter)}`;
  if (present.length === 0) {
    throw new ConfigurationError(`cannot read ${where}: no such file; give one with --kubeconfig or KUBECONFIG`);
  }
  const contexts = collect(present, 'contexts', 'context');
  const names = [...contexts.keys()].map((name) => printable(name, 100)).join(', ') || 'none';
  const wanted = contextName ?? present.map(({ config }) => stringAt(config, 'current-context')).find(Boolean);
  if (wanted === undefined) {
    throw new ConfigurationError(`${where} has no current context; choose one with --context (it has: ${names})`);
  }
  const context = contexts.get(wanted);
  if (context === undefined) {
    throw new ConfigurationError(
      `context "${printable(wanted, 100)}" is not in ${where}; choose another with --context (it has: ${names})`,
    );
  }
  const cluster = entry(collect(present, 'clusters', 'cluster'), context, 'cluster', wanted, where);
  // A context may go without a user: then the server sees an anonymous one.
  const user =
    stringAt(context.value, 'user') === undefined
      ? { file: context.file, value: {} }
      : entry(collect(present, 'users', 'user'), context, 'user', wanted, where);
  return {
    cluster: absoluteCluster(cluster),
    user: absoluteUser(user),
    namespace: stringAt(context.value, 'namespace'),
    file: cluster.file,
  };
}

function readFile(file: string, mayBeMissing: boolean): JsonObject | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (mayBeMissing && errorCode(error) === 'ENOENT') return undefined;
    throw new ConfigurationError(
      `cannot read kubeconfig ${file}: ${fileProblem(error)}; give another with --kubeconfig or KUBECONFIG`,
      { cause: error },
    );
  }
  const document = parseDocument(text, { logLevel: 'error' });
  const problem = document.errors[0];
  if (problem !== undefined) {
    // The parser's own message quotes the lines around the fault, and those may be a credential.
    const line = problem.linePos?.[0].line;
    throw new ConfigurationError(
      `kubeconfig ${file} is not YAML${line === undefined ? '' : ` (line ${line})`}; correct it or give another with --kubeconfig`,
    );
  }
  const config: unknown = document.toJS();
  if (!isJsonObject(config)) {
    throw new ConfigurationError(
      `kubeconfig ${file} holds no kubeconfig (expected a mapping with clusters, users and contexts); correct it or give another with --kubeconfig`,
    );
  }
  return config;
}

/** Entries of `clusters`, `users` or `contexts` by name. What is not shaped like one is left out. */
function collect(
  files: readonly { file: string; config: JsonObject }[],
  list: string,
  key: string,
): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const { file, config } of files) {
    const items = config[list];
    for (const item of Array.isArray(items) ? items.filter(isJsonObject) : []) {
      const name = stringAt(item, 'name');
      if (name !== undefined && !entries.has(name)) entries.set(name, { file, value: objectAt(item, key) });
    }
  }
  return entries;
}

function entry(entries: Map<string, Entry>, context: Entry, key: string, contextName: string, where: string): Entry {
  const name = stringAt(context.value, key);
  const found = name === undefined ? undefined : entries.get(name);
  if (found !== undefined) return found;
  throw new ConfigurationError(
    name === undefined
      ? `context "${printable(contextName, 100)}" in ${where} names no ${key}; add one or choose another with --context`
      : `${key} "${printable(name, 100)}" of context "${printable(contextName, 100)}" is not in ${where}; add it or choose another with --context`,
  );
}

function absoluteCluster({ file, value }: Entry): JsonObject {
  return withAbsolute(file, value, ['certificate-authority']);
}

function absoluteUser({ file, value }: Entry): JsonObject {
  const user = withAbsolute(file, value, ['client-certificate', 'client-key', 'tokenFile', 'token-file']);
  const exec = user['exec'];
  if (!isJsonObject(exec)) return user;
  const command = stringAt(exec, 'command');
  // As kubectl does it: a bare name is looked up on the PATH, anything with a slash is relative to the file.
  if (command?.includes('/') !== true) return user;
  return { ...user, exec: { ...exec, command: path.resolve(path.dirname(file), command) } };
}

function withAbsolute(file: string, value: JsonObject, keys: readonly string[]): JsonObject {
  const result = { ...value };
  for (const key of keys) {
    const found = stringAt(value, key);
    if (found !== undefined) result[key] = path.resolve(path.dirname(file), found);
  }
  return result;
}

/** `ENOENT` and the like of a system error. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Why a file could not be read, for a sentence. */
export function fileProblem(error: unknown): string {
  const code = errorCode(error);
  switch (code) {
    case 'ENOENT':
      return 'no such file';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied';
    case 'EISDIR':
      return 'it is a directory';
    default:
      return code ?? 'unreadable';
  }
}
