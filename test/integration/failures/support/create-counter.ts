import { afterAll } from 'vitest';
import type { MainJob } from '../../main-job/support/main-job.ts';
import { meddlingProxy } from '../../main-job/support/meddling-proxy.ts';

/** Counts the creates of NABs that nab-sync sends to the API server. */
export interface CreateCounter {
  /** Path of a kubeconfig whose requests are counted. */
  readonly kubeconfig: string;
  /** How many creates went into a namespace since the last `reset`. */
  in(namespace: string): number;
  /** When the first of them came, in milliseconds since the epoch. */
  firstIn(namespace: string): number | undefined;
  reset(): void;
}

/** Call it at the top of a file; it ends with the file's tests. */
export async function createCounter(job: MainJob): Promise<CreateCounter> {
  const creates = new Map<string, number[]>();
  const proxy = await meddlingProxy(job.kubeconfig, ({ method, path }) => {
    const namespace = /\/namespaces\/([^/]+)\/nonadminbackups$/.exec(path)?.[1];
    if (method === 'POST' && namespace !== undefined) {
      creates.set(namespace, [...(creates.get(namespace) ?? []), Date.now()]);
    }
    return undefined;
  });
  afterAll(() => proxy.close());
  return {
    kubeconfig: await job.file('counted.kubeconfig', proxy.kubeconfig),
    in: (namespace) => creates.get(namespace)?.length ?? 0,
    firstIn: (namespace) => creates.get(namespace)?.[0],
    reset: () => {
      creates.clear();
    },
  };
}
