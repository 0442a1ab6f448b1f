/**
 * `make cluster`: the API server in the foreground, with CRDs, until Ctrl-C or SIGTERM.
 * DIR is the directory for `kubeconfig` (default .cluster), PORT the API server's port (default a free one).
 */
import { once } from 'node:events';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ControlPlane } from './control-plane.ts';
import { runScript, SetupError } from './setup-error.ts';

await runScript(async () => {
  const stopRequested = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      // A second signal finds no handler and ends the process at once; the servers go with it.
      stopRequested.abort();
    });
  }
  const port = portFrom(process.env['PORT']);
  const directory = resolve(directoryFrom(process.env['DIR']));
  const kubeconfig = join(directory, 'kubeconfig');
  try {
    await mkdir(directory, { recursive: true });
    // What is left from a killed run would lead a client that waits for the file to a server that is gone.
    await rm(kubeconfig, { force: true });
  } catch (error) {
    throw new SetupError(`DIR cannot be used: ${error instanceof Error ? error.message : String(error)}`);
  }
  const controlPlane = await ControlPlane.start(port === undefined ? {} : { port });
  try {
    await writeFile(`${kubeconfig}.new`, controlPlane.kubeconfig, { mode: 0o600 });
    await rename(`${kubeconfig}.new`, kubeconfig);
    console.log(`API server ${controlPlane.server}; use it with: export KUBECONFIG=${kubeconfig}`);
    console.log('cluster ready');
    if (!stopRequested.signal.aborted) await once(stopRequested.signal, 'abort');
  } finally {
    await controlPlane.stop();
    await rm(kubeconfig, { force: true });
  }
});

function directoryFrom(value: string | undefined): string {
  return value === undefined || value === '' ? '.cluster' : value;
}

function portFrom(value: string | undefined): number | undefined {
  if (value === undefined || value === '') return undefined;
  const port = Number(value);
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port;
  throw new SetupError(`PORT must be a number from 1 to 65535, not '${value}'`);
}
