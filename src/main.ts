import { setFlagsFromString } from 'node:v8';
import { cli } from './commands/cli.ts';
import { programName } from './commands/command-line.ts';
import { dispatch } from './commands/dispatch.ts';
import { exitCodes } from './commands/exit-codes.ts';
import { Interruption, type Surroundings } from './commands/surroundings.ts';
import { terminalOf } from './commands/terminal.ts';
import { systemHost } from './settings/host.ts';

// V8 holds on to memory for throughput that the API server never lets us have. docs/performance.md has the figures.
setFlagsFromString('--semi-space-growth-factor=1');
setFlagsFromString('--heap-growing-percent=50');

const stopping = new AbortController();

const crashed = new Promise<never>((_, reject) => {
  process.on('uncaughtException', reject);
  process.on('unhandledRejection', reject);
});
// Looked at once a command runs; until then nothing asynchronous goes on that could fail.
crashed.catch(() => undefined);

for (const signalName of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signalName, () => {
    // Asked twice: whoever asks does not want to wait any longer.
    if (stopping.signal.aborted) process.exit(signalName === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated);
    stopping.abort(new Interruption(signalName));
  });
}

for (const stream of [process.stdout, process.stderr]) {
  // Each write reports its own error; without a listener a reader that went away would end the process.
  stream.on('error', () => undefined);
}

const surroundings: Surroundings = {
  program: programName(process.argv[1]),
  host: systemHost(),
  streams: {
    out: process.stdout,
    error: process.stderr,
    terminal: terminalOf(process.stdout, process.env),
    errorTerminal: terminalOf(process.stderr, process.env),
  },
  signal: stopping.signal,
  crashed,
};

// All output is handed over by now; what is left are idle connections, which nobody has to wait for.
process.exit(await cli(process.argv.slice(2), surroundings, dispatch));
