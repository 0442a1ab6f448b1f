import { stringify } from 'yaml';

export interface KubeconfigParts {
  readonly server: string;
  /** Base64 of a CA's certificate; left out, the system's own count. */
  readonly ca?: string | undefined;
  readonly token?: string;
}

/** Text of a kubeconfig with one context, `here`. */
export function kubeconfig({ server, ca, token = 'not-a-token' }: KubeconfigParts): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'here', cluster: { server, ...(ca === undefined ? {} : { 'certificate-authority-data': ca }) } },
    ],
    users: [{ name: 'here', user: { token } }],
    contexts: [{ name: 'here', context: { cluster: 'here', user: 'here' } }],
    'current-context': 'here',
  });
}
