import type { Command, Option } from 'commander';

/** Scripts that complete commands and options in a shell, made from the command line itself. */

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

/** One option as a shell has to know it. */
interface CompletedOption {
  /** `-o`, `--output`. */
  readonly names: readonly string[];
  readonly description: string;
  /** It is followed by a value: one of these, or any where there are none. Undefined for a switch. */
  readonly values: readonly string[] | undefined;
}

interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** Values of its argument, where they are known. */
  readonly argument: readonly string[];
}

/** What follows these is a path. */
const pathOptions: ReadonlySet<string> = new Set(['--kubeconfig', '--termination-log']);

function completedOption({ short, long, description, required, argChoices }: Option): CompletedOption {
  return {
    names: [short, long].flatMap((name) => name ?? []),
    // The first sentence part; a shell shows it beside the option.
    description: description.replace(/ \(env: .*| \(default: .*/, ''),
    values: required ? (argChoices ?? []) : undefined,
  };
}

function completedCommand(command: Command, globals: readonly Option[]): CompletedCommand {
  const [argument] = command.registeredArguments;
  return {
    name: command.name(),
    description: command.description(),
    options: [...command.options, ...globals].map(completedOption),
    argument: argument?.argChoices ?? [],
  };
}

/** The script for a shell, for both ways in which the program may be called. */
export function completionScript(shell: Shell, program: Command): string {
  const commands = program.commands.map((command) => completedCommand(command, program.options));
  switch (shell) {
    case 'bash':
      return bashScript(commands);
    case 'zsh':
      return zshScript(commands);
    case 'fish':
      return fishScript(commands);
  }
}

const words = (list: readonly string[]): string => list.join(' ');

/** Options with values, each once whatever the command. */
function valued(commands: readonly CompletedCommand[]): CompletedOption[] {
  const options = commands.flatMap((command) => command.options).filter(({ values }) => values !== undefined);
  return [...new Map(options.map((option) => [option.names.join(), option])).values()];
}

function bashScript(commands: readonly CompletedCommand[]): string {
  const names = commands.map(({ name }) => name);
  const afterOption = valued(commands).map(({ names: options, values = [] }) => {
    const source = options.some((name) => pathOptions.has(name)) ? '-f' : `-W '${words(values)}'`;
    return `    ${options.join('|')}) COMPREPLY=($(compgen ${source} -- "$current")); return ;;`;
  });
  const afterCommand = commands.map(
    ({ name, options, argument }) =>
      `    ${name}) choices='${words([...argument, ...options.flatMap((option) => option.names)])}' ;;`,
  );
  return `# Completion for bash: source <(nab-sync completion bash)
_nab_sync() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command='' choices='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in ${names.join('|')}) command="$word"; break ;; esac
  done
  case "$previous" in
${afterOption.join('\n')}
  esac
  case "$command" in
${afterCommand.join('\n')}
    *) choices='${words(names)}' ;;
  esac
  COMPREPLY=($(compgen -W "$choices" -- "$current"))
}
complete -F _nab_sync nab-sync kubectl-nab_sync
`;
}

/** Inside single quotes of zsh, where a colon or bracket would end the part. */
function zshText(text: string): string {
  return text.replaceAll("'", '’').replace(/[[\]:\\]/g, String.raw`\$&`);
}

function zshScript(commands: readonly CompletedCommand[]): string {
  const described = commands.map(({ name, description }) => `    '${name}:${zshText(description)}'`);
  const argumentsOf = ({ options, argument }: CompletedCommand): string[] => [
    ...options.flatMap(({ names, description, values }) =>
      names.map((name) => {
        const action = pathOptions.has(name) ? '_files' : values?.length === 0 ? '' : `(${words(values ?? [])})`;
        return `'*${name}[${zshText(description)}]${values === undefined ? '' : `:value:${action}`}'`;
      }),
    ),
    ...(argument.length === 0 ? [] : [`'1:argument:(${words(argument)})'`]),
  ];
  const afterCommand = commands.map(
    (command) => `    ${command.name}) _arguments ${argumentsOf(command).join(' ')} ;;`,
  );
  return `#compdef nab-sync kubectl-nab_sync
# Completion for zsh: source <(nab-sync completion zsh), after compinit
_nab_sync() {
  local -a commands=(
${described.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command="$words[2]"
  shift words
  (( CURRENT -= 1 ))
  case "$command" in
${afterCommand.join('\n')}
  esac
}
compdef _nab_sync nab-sync kubectl-nab_sync
`;
}

/** In single quotes of fish. */
function fishText(text: string): string {
  return `'${text.replace(/['\\]/g, String.raw`\$&`)}'`;
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap(({ name, description, options, argument }) => {
    const seen = `-n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c nab-sync -n __fish_use_subcommand -a ${name} -d ${fishText(description)}`,
      ...(argument.length === 0 ? [] : [`complete -c nab-sync ${seen} -a '${words(argument)}'`]),
      ...options.map(({ names, description: about, values }) => {
        const spelled = names.map((option) =>
          option.startsWith('--') ? `-l ${option.slice(2)}` : `-s ${option.slice(1)}`,
        );
        const isPath = names.some((option) => pathOptions.has(option));
        const value = values === undefined ? '' : isPath ? ' -r -F' : ` -x -a '${words(values)}'`;
        return `complete -c nab-sync ${seen} ${words(spelled)}${value} -d ${fishText(about)}`;
      }),
    ];
  });
  return `# Completion for fish: nab-sync completion fish | source
complete -c nab-sync -f
${lines.join('\n')}
complete -c kubectl-nab_sync -w nab-sync
`;
}
