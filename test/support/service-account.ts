import { z } from 'zod';
import type { ApiClient } from './api-client.ts';

const tokenRequest = z.object({ status: z.object({ token: z.string() }) });

export interface ServiceAccountRef {
  readonly namespace: string;
  readonly name: string;
}

/**
 * A token of a ServiceAccount, from the same API that a kubelet asks for a pod's. The ServiceAccount must exist; with
 * `seconds` the token lives that long, at least ten minutes.
 */
export async function serviceAccountToken(api: ApiClient, account: ServiceAccountRef, seconds = 3600): Promise<string> {
  const path = `/api/v1/namespaces/${account.namespace}/serviceaccounts/${account.name}/token`;
  const answer = await api.call('POST', path, {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: seconds } },
  });
  return tokenRequest.parse(answer).status.token;
}
