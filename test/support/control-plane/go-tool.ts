import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { programNotFound, spawnBound } from './bound-process.ts';
import { SetupError } from './setup-error.ts';

/** The Go module that pins the versions of kube-apiserver, etcd and kubectl. */
export const moduleDirectory = fileURLToPath(new URL('../../control-plane/', import.meta.url));

/** There is no Go on the PATH. The message says what else will do for an API server. */
export class GoMissingError extends SetupError {
  constructor() {
    super(noGo);
  }
}

const noGo =
  'no Kubernetes API server to work with: install Go (1.21 or later) to have one built, or set KUBEBUILDER_ASSETS to a ' +
  'directory with kube-apiserver, etcd and kubectl, or set USE_EXISTING_CLUSTER=true to use the cluster of KUBECONFIG';

export interface GoOptions {
  /** Directory of the Go module to work in; default that of the control plane. */
  readonly module?: string;
  /** Called for each line that go prints on stderr. */
  readonly onProgressLine?: (line: string) => void;
  /** Directory that go writes to, removed if this process dies meanwhile. */
  readonly workspace?: string;
}

/**
 * Runs go in a module of the project's and returns its stdout. Throws `GoMissingError`, or after a failure a
 * `SetupError` with the last lines that go printed.
 */
export async function go(args: readonly string[], options: GoOptions = {}): Promise<string> {
  const child = spawnBound('go', args, {
    cwd: options.module ?? moduleDirectory,
    env: {
      ...process.env,
      // A go.work file above the checkout or a user's own GOFLAGS must not change what is built.
      GOWORK: 'off',
      GOFLAGS: '-mod=readonly',
      // Pure Go: no C compiler is needed, and the result does not depend on the machine's C library.
      CGO_ENABLED: '0',
    },
    output: 'pipe',
    ...(options.workspace === undefined ? {} : { removeWhenOrphaned: options.workspace }),
  });
  const stdout: string[] = [];
  const lastLines: string[] = [];
  let unfinished = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => stdout.push(text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (unfinished + text).split('\n');
    unfinished = lines.pop() ?? '';
    for (const line of lines) {
      options.onProgressLine?.(line);
      lastLines.push(line);
      if (lastLines.length > 20) lastLines.shift();
    }
  });
  // Comes after both outputs have been read to their end; rejects if not even the shell could be started.
  await once(child, 'close');
  if (child.exitCode === programNotFound) throw new GoMissingError();
  if (child.exitCode !== 0) {
    const output = [...lastLines, unfinished, ...stdout].join('\n').trim();
    throw new SetupError(
      `\`go ${args.slice(0, 2).join(' ')}\` failed in ${options.module ?? moduleDirectory}:\n${output}`,
    );
  }
  return stdout.join('');
}
