import { basename } from 'node:path';
import { Argument, Command, CommanderError, Option } from 'commander';
import { flags, type FlagSpec, type FlagValues } from '../settings/flags.ts';
import { completionScript, shells, type Shell } from './completion.ts';
import { outputFormats, type OutputFormat } from './output.ts';
import type { RequestOptions } from './request.ts';
import { version } from './version.ts';

/** A command line that makes sense; the values in it are not checked yet. */
export type Invocation = {
  readonly flags: FlagValues;
} & (
  | { readonly command: 'run' }
  | { readonly command: 'once' | 'plan'; readonly namespaces: readonly string[]; readonly output: OutputFormat }
  | { readonly command: 'explain'; readonly target: string; readonly output: OutputFormat }
  | { readonly command: 'status' | 'check'; readonly output: OutputFormat }
  | ({ readonly command: 'request'; readonly namespaces: readonly string[] } & RequestOptions)
);

export type ParseResult =
  | { readonly kind: 'invocation'; readonly invocation: Invocation }
  /** `--help` or `--version` was asked for. */
  | { readonly kind: 'text'; readonly text: string }
  /** One line. */
  | { readonly kind: 'usageError'; readonly message: string };

function collect(value: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), value];
}

function describe({ environment, defaultText, description }: FlagSpec): string {
  const variable = environment === undefined ? '' : `env: ${environment}; `;
  return `${description} (${variable}default: ${defaultText})`;
}

/**
 * Environment variables are not commander's business: it takes any value of a switch's variable, `false` too, for true, and
 * the empty one for a value.
 */
function optionsFor(spec: FlagSpec): Option[] {
  if (spec.argument === undefined) {
    return [new Option(`--${spec.name}`, describe(spec)), new Option(`--no-${spec.name}`, `switch --${spec.name} off`)];
  }
  const option = new Option(`--${spec.name} <${spec.argument}>`, describe(spec));
  return [spec.repeatable === true ? option.argParser(collect) : option];
}

const exitCodeHelp = `
Exit codes:
  0    done; plan: whatever it found; once: also when another nab-sync holds the Lease
  1    something failed: a NonAdminBackup could not be written (once, request), nothing matches (explain), the answer did not
       come in time (request), something that is needed is not there (check), or the cluster refused
  2    the command line, a variable, the kubeconfig or an address cannot be used as given
  130  interrupted (143: terminated) before it was done; run ends with 0 then

Data goes to stdout, logs to stderr. A flag wins over its environment variable, that over the
DataProtectionApplication (DPA), that over the default.`;

/** @param lines arguments */
function examplesOf(name: string, lines: readonly string[]): string {
  return `\nExample${lines.length > 1 ? 's' : ''}:\n${lines.map((line) => `  ${name} ${line}`).join('\n')}`;
}

/** The option `-o` of every command that prints data. */
function outputOption(): Option {
  return new Option('-o, --output <format>', 'how to print').choices(outputFormats).default('table');
}

function namespaceOption(): Option {
  return new Option('-n, --namespace <namespace>', 'look at this namespace only (repeatable; default: all)').argParser(
    collect,
  );
}

interface OnceOptions {
  readonly namespace?: readonly string[];
  readonly output: OutputFormat;
}

/** Builds the commands; `found` is called by the one that was named, unless it has only text to print. */
function buildProgram(
  name: string,
  found: (invocation: Invocation) => void,
  streams: { out: string; error: string },
): Command {
  const examples = (...lines: readonly string[]): string => examplesOf(name, lines);
  const program = new Command(name)
    .description('Brings the NonAdminBackups of OADP back from the Velero Backups that they were made for.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .showSuggestionAfterError()
    .exitOverride()
    .configureHelp({
      showGlobalOptions: true,
      // Without the argument of `run` that only catches mistakes.
      subcommandTerm: (command) => {
        const [argument] = command.registeredArguments;
        return `${command.name()} ${argument?.required === true ? `<${argument.name()}> ` : ''}[options]`;
      },
    })
    .helpCommand('help [command]', 'print help')
    .configureOutput({
      writeOut: (text) => (streams.out += text),
      writeErr: (text) => (streams.error += text),
    });
  for (const spec of flags) for (const option of optionsFor(spec)) program.addOption(option);

  /** What was given of the table's flags, before or after the command. */
  function flagValues(): FlagValues {
    const values: Record<string, string | readonly string[] | boolean | undefined> = program.opts();
    return Object.fromEntries(
      flags.flatMap((spec) => {
        const [option] = optionsFor(spec);
        const value = option === undefined ? undefined : values[option.attributeName()];
        return value === undefined ? [] : [[spec.name, value]];
      }),
    );
  }

  program
    .command('run', { isDefault: true })
    .description('sync at start, at the interval and on whatever happens, until it is ended (the default command)')
    // With a default command, a mistyped command is its argument.
    .argument('[excess...]')
    .usage('[options]')
    .addHelpText('after', examples('run --oadp-namespace openshift-adp --sync-period 5m'))
    .action((excess: readonly string[]) => {
      const [first] = excess;
      if (first !== undefined) {
        const known = program.commands.map((command) => command.name()).join(', ');
        program.error(`unknown command ${JSON.stringify(first)}; there is ${known}`);
      }
      found({ command: 'run', flags: flagValues() });
    });

  program
    .command('once')
    .description('one pass over all namespaces, then exit')
    .addOption(namespaceOption())
    .addOption(outputOption())
    .addHelpText('after', examples('once', 'once -n team-a -n team-b -o json'))
    .action(({ namespace = [], output }: OnceOptions) => {
      found({ command: 'once', flags: flagValues(), namespaces: namespace, output });
    });

  program
    .command('plan')
    .description('what a pass would do and why, for every labelled Velero Backup; writes nothing')
    .addOption(namespaceOption())
    .addOption(outputOption())
    .addHelpText('after', examples('plan', 'plan -n team-a -o json'))
    .action(({ namespace = [], output }: OnceOptions) => {
      found({ command: 'plan', flags: flagValues(), namespaces: namespace, output });
    });

  program
    .command('explain')
    .description('every rule for one backup, and which of them decided')
    .argument('<backup>', 'NAMESPACE/NAME of the NonAdminBackup, there or not, or the name of the Velero Backup')
    .addOption(outputOption())
    .addHelpText('after', examples('explain team-a/nightly'))
    .action((target: string, { output }: { readonly output: OutputFormat }) => {
      found({ command: 'explain', flags: flagValues(), target, output });
    });

  program
    .command('status')
    .description('how the passes went: last attempt, last success, last failure, backups by reason')
    .addOption(outputOption())
    .addHelpText('after', examples('status', 'status -o json'))
    .action(({ output }: { readonly output: OutputFormat }) => {
      found({ command: 'status', flags: flagValues(), output });
    });

  program
    .command('check')
    .description('whether everything that nab-sync needs is there: rights, kinds, settings, locations; writes nothing')
    .addOption(outputOption())
    .addHelpText('after', examples('check', 'check --namespace-selector backups=on -o json'))
    .action(({ output }: { readonly output: OutputFormat }) => {
      found({ command: 'check', flags: flagValues(), output });
    });

  program
    .command('request')
    .description('ask the running controller for a sync of a namespace; in that of OADP, of all')
    .addOption(
      new Option('-n, --namespace <namespace>', "namespace to sync (default: the kubeconfig's context's)").argParser(
        collect,
      ),
    )
    .option('--wait', 'wait for the answer and print it', false)
    .option('--timeout <duration>', 'how long to wait for the answer', '2m')
    .addOption(outputOption())
    .addHelpText('after', examples('request -n my-team --wait', 'request -n my-team -o json'))
    .action(({ namespace = [], ...options }: RequestOptions & { readonly namespace?: readonly string[] }) => {
      found({ command: 'request', flags: flagValues(), namespaces: namespace, ...options });
    });

  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'the shell to print it for').choices(shells))
    .addHelpText('after', examples('completion bash > ~/.local/share/bash-completion/completions/nab-sync'))
    .action((shell: Shell) => {
      streams.out += completionScript(shell, program);
    });

  program.addHelpText('after', `${examples('plan', 'run --sync-period 5m')}\n${exitCodeHelp}`);
  return program;
}

/** How the program is called by people: kubectl runs `kubectl-nab_sync` for `kubectl nab-sync`. */
export function programName(path: string | undefined): string {
  return basename(path ?? '').startsWith('kubectl-') ? 'kubectl nab-sync' : 'nab-sync';
}

/**
 * Reads the arguments after `node nab-sync.mjs`. Touches nothing but its arguments.
 *
 * @param name how people call the program, for help and messages
 */
export function parseCommandLine(args: readonly string[], name = 'nab-sync'): ParseResult {
  let invocation: Invocation | undefined;
  const streams = { out: '', error: '' };
  const program = buildProgram(
    name,
    (found) => {
      invocation = found;
    },
    streams,
  );
  try {
    program.parse(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return { kind: 'text', text: streams.out };
    // `help` with a command that there is not; its message is only a placeholder.
    const message = error.code === 'commander.help' ? 'unknown command' : error.message;
    return { kind: 'usageError', message: usageMessage(message, name) };
  }
  if (invocation === undefined) return { kind: 'text', text: streams.out };
  return { kind: 'invocation', invocation };
}

/** Commander's wording on one line, with what to do next. */
function usageMessage(message: string, name: string): string {
  const text = message
    .replace(/^error: /, '')
    .replaceAll('\n', ' ')
    .replace(/\.$/, '');
  return `${text}; see ${name} --help`;
}
