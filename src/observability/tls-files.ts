import { readFile } from 'node:fs/promises';
import type { Server } from 'node:https';
import { join } from 'node:path';
import isEqual from 'lodash/isEqual.js';
import type { Logger } from 'pino';
import { ConfigurationError } from '../kube/configuration-error.ts';

/** Where a certificate lies that somebody else renews, as Kubernetes mounts a Secret of type kubernetes.io/tls. */
export interface TlsDirectory {
  /** Holds `tls.crt` (the chain) and `tls.key`, both PEM. */
  readonly path: string;
  /** The setting that the path came from, as an error names it. */
  readonly setting: string;
  /** Default one minute: as long as the kubelet takes to bring a changed Secret into a pod. */
  readonly rereadMs?: number;
}

interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

async function readTlsFiles({ path }: TlsDirectory): Promise<TlsFiles> {
  const [cert, key] = await Promise.all(['tls.crt', 'tls.key'].map((name) => readFile(join(path, name), 'utf8')));
  return { cert: cert ?? '', key: key ?? '' };
}

/**
 * Gives a server the certificate of a directory, and again when it changes, until `stop` is called. A changed one that cannot
 * be used, for instance half written, is logged, and the one before stays. Rejects with ConfigurationError when there is
 * none to begin with.
 */
export async function useTlsDirectory(server: Server, directory: TlsDirectory, log: Logger): Promise<() => void> {
  let inUse: TlsFiles | undefined;

  async function reread(): Promise<void> {
    const files = await readTlsFiles(directory);
    if (isEqual(files, inUse)) return;
    server.setSecureContext(files);
    if (inUse !== undefined) log.info({ directory: directory.path }, 'the certificate was renewed');
    inUse = files;
  }

  try {
    await reread();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no certificate and key in PEM';
    throw new ConfigurationError(`cannot use tls.crt and tls.key in ${directory.path} (${directory.setting}): ${code}`);
  }
  const timer = setInterval(() => {
    reread().catch((error: unknown) => {
      log.warn({ err: error, directory: directory.path }, 'the changed certificate cannot be used, the last one stays');
    });
  }, directory.rereadMs ?? 60_000);
  timer.unref();
  return () => {
    clearInterval(timer);
  };
}
