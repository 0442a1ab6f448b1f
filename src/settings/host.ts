import { existsSync, readFileSync } from 'node:fs';

/** What settings depend on besides the command line; tests hand in one of their own. */
export interface Host {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether somebody reads stderr on a terminal. */
  readonly stderrIsTerminal: boolean;
  exists(path: string): boolean;
  /** A file's text; undefined when it cannot be read, for whatever reason. */
  read(path: string): string | undefined;
}

export function systemHost(): Host {
  return {
    environment: process.env,
    stderrIsTerminal: process.stderr.isTTY,
    exists: existsSync,
    read(path) {
      try {
        return readFileSync(path, 'utf8');
      } catch {
        return undefined;
      }
    },
  };
}

/** Kubernetes writes the pod's namespace here, beside its token and CA. */
const podNamespaceFile = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** The namespace of the pod that this process runs in; undefined outside a cluster. */
export function podNamespace(host: Host): string | undefined {
  if ((host.environment['KUBERNETES_SERVICE_HOST'] ?? '') === '') return undefined;
  const namespace = host.read(podNamespaceFile)?.trim();
  return namespace === '' ? undefined : namespace;
}
