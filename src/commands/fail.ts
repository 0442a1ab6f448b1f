import { ConfigurationError } from '../kube/configuration-error.ts';
import { KubeError } from '../kube/errors.ts';
import { qualifiedName } from '../kube/resource.ts';
import { syncRequests } from '../oadp/kinds.ts';
import { printable } from '../oadp/printable.ts';
import { codeOf, isBug } from '../observability/log.ts';
import { SettingsError } from '../settings/settings-error.ts';
import { exitCodes, type ExitCode } from './exit-codes.ts';

/** The end of a command that did not do its work, for people, for the exit code and for the termination log. */
export interface FailureDescription {
  /** What, where and what to do, one line a problem; printable, without secrets. */
  readonly lines: readonly string[];
  readonly exitCode: ExitCode;
  /** A KubeErrorCode, `Configuration`, the system's own code (`ENOSPC`), or `InternalError`. */
  readonly code: string;
  /** Only for a fault of ours: where it happened. Not for the ordinary output. */
  readonly stack?: string;
}

/** Where it happened, as far as it got. */
export interface FailureScene {
  /** URL of the API server. */
  readonly server?: string | undefined;
  readonly oadpNamespace?: string | undefined;
}

const longestLine = 1_000;

/** Which of our roles has the right that was missed (manifests/base). */
function roleFor(namespace: string | undefined, oadpNamespace: string | undefined): string {
  return namespace !== undefined && namespace === oadpNamespace
    ? 'the Role nab-sync of that namespace'
    : 'the ClusterRole nab-sync';
}

/** What an admin can do about an error of the API server or of the way there. */
function advice(error: KubeError, { server, oadpNamespace }: FailureScene): string {
  switch (error.code) {
    case 'Forbidden':
      if (error.resource === qualifiedName(syncRequests)) {
        return 'the roles admin and edit of that namespace have it where manifests/crd is installed';
      }
      return `grant ${error.verb} on ${error.resource} as ${roleFor(error.namespace, oadpNamespace)} in manifests/base does`;
    case 'KindNotInstalled':
      if (error.resource === qualifiedName(syncRequests)) {
        return `the CustomResourceDefinition ${error.resource} is missing: install manifests/crd`;
      }
      return error.resource.endsWith('.velero.io')
        ? `the CustomResourceDefinition ${error.resource} is missing: install OADP, or Velero`
        : `the CustomResourceDefinition ${error.resource} is missing: install OADP with non-admin backups enabled`;
    case 'Unreachable':
      return 'check that the server runs and that --kubeconfig and --context name the right one';
    case 'Timeout':
      return 'check the network and the load of the API server';
    case 'Unauthorized':
      return "renew the credentials of the kubeconfig's user, or the pod's service account token";
    case 'Throttled':
    case 'ServerError':
      return 'the API server is in trouble or busy: try again later';
    case 'Malformed':
      return `check that ${server ?? 'the address'} is a Kubernetes API server and not a proxy's page`;
    case 'NamespaceNotFound':
    case 'NamespaceTerminating':
      return 'check --oadp-namespace';
    case 'NotFound':
    case 'AlreadyExists':
    case 'Conflict':
    case 'Gone':
    case 'TooLarge':
    case 'Invalid':
    case 'BadRequest':
    case 'Aborted':
      return 'try again; if it stays, --log-level debug shows more';
  }
}

function line(text: string): string {
  return printable(text, longestLine);
}

/** Describes anything that was thrown. */
export function describeFailure(error: unknown, scene: FailureScene = {}): FailureDescription {
  if (error instanceof SettingsError) {
    return { lines: error.problems.map(line), exitCode: exitCodes.usage, code: 'Configuration' };
  }
  if (error instanceof ConfigurationError) {
    return { lines: [line(error.message)], exitCode: exitCodes.usage, code: 'Configuration' };
  }
  if (error instanceof KubeError) {
    // The client names the address itself where that is what does not answer.
    const place = scene.server === undefined || error.code === 'Unreachable' ? '' : ` (${scene.server})`;
    return {
      lines: [line(`${error.message}${place}; ${advice(error, scene)}`)],
      exitCode: exitCodes.failed,
      code: error.code,
    };
  }
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Error && !isBug(error)) {
    return { lines: [line(message)], exitCode: exitCodes.failed, code: codeOf(error) ?? error.name };
  }
  return {
    lines: [line(`internal error: ${message}; a fault of nab-sync, --log-level debug shows where`)],
    exitCode: exitCodes.failed,
    code: 'InternalError',
    stack: (error instanceof Error ? error.stack : undefined) ?? message,
  };
}
