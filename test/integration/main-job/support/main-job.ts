import isMatch from 'lodash/isMatch.js';
import { afterAll, onTestFinished } from 'vitest';
import { z } from 'zod';
import type { JsonObject } from '../../../../src/kube/resource.ts';
import * as kinds from '../../../../src/oadp/kinds.ts';
import { eventually } from '../../../support/eventually.ts';
import { isolated, type Isolated } from '../../../support/isolated.ts';
import { runNabSync, startNabSync, type NabSyncExit, type NabSyncProcess } from '../../../support/nab-sync.ts';
import { bareNab, byName } from './nabs.ts';

type Environment = Readonly<Record<string, string>>;

/** `run`, as a process. */
export interface Controller extends NabSyncProcess {
  /** Its log lines so far, each a JSON object; throws if one is not. */
  log(): LogLine[];
  /** Waits for a line with this message that has at least these fields. */
  line(message: string, fields?: JsonObject, timeoutMs?: number): Promise<LogLine>;
  /** Waits for the end of the pass over all namespaces that every start begins with. */
  firstPass(): Promise<void>;
}

type LogLine = z.infer<typeof logLine>;

/** nab-sync installed beside one OADP, with the rights of manifests/base and no others. */
export interface MainJob extends Isolated {
  /** Path of its ServiceAccount's kubeconfig. */
  readonly kubeconfig: string;
  /** Runs a command to its end. */
  command(args: readonly string[], env?: Environment): Promise<NabSyncExit>;
  /** Runs a command that must end well and prints JSON. */
  json<T>(schema: z.ZodType<T>, args: readonly string[], env?: Environment): Promise<T>;
  /** Starts `run`. It is stopped at the end of the test, or of what else `atEnd` says. */
  controller(args?: readonly string[], env?: Environment, atEnd?: AtEnd): Promise<Controller>;
  /** The NABs of these namespaces, without the fields that only a server sets; sorted by namespace and name. */
  nabs(...namespaces: readonly string[]): Promise<JsonObject[]>;
  /** `namespace/name` of those NABs. */
  nabNames(...namespaces: readonly string[]): Promise<string[]>;
}

/** Registers what is to be done in the end: vitest's onTestFinished or afterAll. */
export type AtEnd = (action: () => Promise<void>) => void;

const logLine = z.looseObject({ level: z.string(), msg: z.string() });

/** Call it once at the top of a test file, in place of `isolated()`. */
export async function mainJob(): Promise<MainJob> {
  const here = await isolated();
  const kubeconfig = await here.install();
  const { oadpNamespace, objects } = here;

  const command = (args: readonly string[], env: Environment = {}): Promise<NabSyncExit> =>
    runNabSync(args, { kubeconfig, oadpNamespace, env });

  const rawNabs = async (namespaces: readonly string[]): Promise<JsonObject[]> => {
    const found = await Promise.all(namespaces.map((namespace) => objects.list(kinds.nonAdminBackups, { namespace })));
    return found.flat().sort(byName);
  };

  return {
    ...here,
    kubeconfig,
    command,
    async json(schema, args, env) {
      const { exitCode, stdout, stderr } = await command([...args, '-o', 'json'], env);
      if (exitCode !== 0) throw new Error(`${args.join(' ')}: exit code ${String(exitCode)}: ${stderr}`);
      return schema.parse(JSON.parse(stdout));
    },
    async controller(args = [], env = {}, atEnd = onTestFinished) {
      const process = await startNabSync(['run', ...args], { kubeconfig, oadpNamespace, env });
      atEnd(async () => {
        await process.stop();
      });
      return follow(process);
    },
    nabs: async (...namespaces) => (await rawNabs(namespaces)).map(bareNab),
    nabNames: async (...namespaces) =>
      (await rawNabs(namespaces)).map((nab) => {
        const { metadata } = named.parse(nab);
        return `${metadata.namespace}/${metadata.name}`;
      }),
  };
}

/** For a controller that all tests of a file share. */
export const untilTheEndOfTheFile: AtEnd = (action) => {
  afterAll(action);
};

const named = z.object({ metadata: z.object({ namespace: z.string(), name: z.string() }) });

/** A started `run`, with its log. */
export function follow(process: NabSyncProcess): Controller {
  const log = (): LogLine[] =>
    process.stderr
      .split('\n')
      // The last one may still be on its way.
      .slice(0, -1)
      .map((line) => logLine.parse(JSON.parse(line)));
  const line = async (message: string, fields: JsonObject = {}, timeoutMs?: number): Promise<LogLine> =>
    await eventually(() => {
      const found = log().find((entry) => entry.msg === message && isMatch(entry, fields));
      if (found === undefined) throw new Error(`no line "${message}" ${JSON.stringify(fields)} in:\n${process.stderr}`);
      return found;
    }, timeoutMs);
  const firstPass = async (): Promise<void> => {
    await line('pass over all namespaces done', {}, 20_000);
  };
  return Object.assign(process, { log, line, firstPass });
}
