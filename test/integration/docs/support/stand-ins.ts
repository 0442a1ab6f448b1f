import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import type { JsonObject, Resource } from '../../../../src/kube/resource.ts';
import * as kinds from '../../../../src/oadp/kinds.ts';
import { ApiError } from '../../../support/api-client.ts';
import type { ControlPlane } from '../../../support/control-plane/control-plane.ts';
import { freePort } from '../../../support/control-plane/free-port.ts';
import { fromNow } from '../../../support/gen/live-objects.ts';
import { startNabSync, type NabSyncProcess } from '../../../support/nab-sync.ts';
import { deleteNamespace } from '../../../support/namespaces.ts';
import { Objects } from '../../../support/objects.ts';
import { serviceAccountToken } from '../../../support/service-account.ts';

/**
 * What runs on a real cluster and not beside the embedded server, as far as the pages need it: namespaces that are deleted go
 * away, a Deployment of nab-sync runs as its manifest says, and Velero reads buckets.
 */
export interface StandInOptions {
  readonly controlPlane: ControlPlane;
  /** What lies in each bucket: Backups as Velero makes them from it, without their location. */
  readonly buckets: Readonly<Record<string, readonly JsonObject[]>>;
  /** Writes a file and returns its path. */
  readonly file: (name: string, content: string) => Promise<string>;
}

const metadata = z.object({ namespace: z.string(), name: z.string() });
const variable = z.object({ name: z.string(), value: z.string().optional() });
const deploymentShape = z.looseObject({
  metadata: metadata.extend({ generation: z.number() }),
  spec: z.object({
    replicas: z.number(),
    template: z.object({
      spec: z.object({
        serviceAccountName: z.string(),
        containers: z.tuple([
          z.object({
            // What Kubernetes runs; the image's own words are overridden by them.
            command: z.tuple([z.literal('node'), z.literal('/app/nab-sync.mjs')], z.string()),
            env: z.array(variable),
          }),
        ]),
      }),
    }),
  }),
});
type Deployment = z.infer<typeof deploymentShape>;

const locationShape = z.object({
  metadata,
  spec: z.object({ objectStorage: z.object({ bucket: z.string() }) }),
  status: z.object({ lastSyncedTime: z.string().optional() }).optional(),
});

interface Running {
  readonly template: string;
  readonly process: NabSyncProcess;
  readonly healthPort: number;
}

const deployments: Resource = {
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  namespaced: true,
};

const tickMs = 200;
/** Velero's own period is a minute at least. */
const bucketPeriodMs = 1_000;

export class StandIns {
  readonly #options: StandInOptions;
  readonly #objects: Objects;
  readonly #running = new Map<string, Running>();
  readonly #stop = new AbortController();
  readonly #loop: Promise<void>;
  #bucketsReadAt = 0;
  #failure: Error | undefined;

  private constructor(options: StandInOptions, objects: Objects) {
    this.#options = options;
    this.#objects = objects;
    this.#loop = this.#run();
  }

  static async start(options: StandInOptions): Promise<StandIns> {
    return new StandIns(options, await Objects.on(options.controlPlane.admin));
  }

  /** Throws what went wrong meanwhile: a nab-sync that ended, for instance. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
    await Promise.all([...this.#running.values()].map(({ process }) => process.stop()));
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Ends with the first failure, which `stop` tells. */
  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted && this.#failure === undefined) {
      try {
        await this.#finishNamespaces();
        await this.#runDeployments();
        if (performance.now() - this.#bucketsReadAt >= bucketPeriodMs) {
          await this.#readBuckets();
          this.#bucketsReadAt = performance.now();
        }
      } catch (error) {
        // What the pages delete may go between two requests; the next round sees it.
        if (!(error instanceof ApiError && error.status === 404)) {
          this.#failure = error instanceof Error ? error : new Error(String(error));
        }
      }
      await sleep(tickMs);
    }
  }

  async #finishNamespaces(): Promise<void> {
    const shape = z.object({ metadata: z.object({ name: z.string(), deletionTimestamp: z.string().optional() }) });
    for (const namespace of await this.#objects.list(kinds.namespaces)) {
      const { name, deletionTimestamp } = shape.parse(namespace).metadata;
      if (deletionTimestamp !== undefined) await deleteNamespace(this.#objects, name);
    }
  }

  async #runDeployments(): Promise<void> {
    const wanted = new Map<string, Deployment>();
    for (const object of await this.#objects.list(deployments)) {
      const deployment = deploymentShape.parse(object);
      wanted.set(`${deployment.metadata.namespace}/${deployment.metadata.name}`, deployment);
    }
    for (const [key, { process, template }] of this.#running) {
      const deployment = wanted.get(key);
      if (deployment !== undefined && template === JSON.stringify(deployment.spec.template)) continue;
      await process.stop();
      this.#running.delete(key);
    }
    for (const [key, deployment] of wanted) {
      const running = this.#running.get(key) ?? (await this.#launch(deployment));
      this.#running.set(key, running);
      await this.#report(deployment, await isReady(running));
    }
  }

  async #launch({ metadata: { namespace }, spec: { template } }: Deployment): Promise<Running> {
    const { serviceAccountName, containers } = template.spec;
    const [{ command, env }] = containers;
    const token = await serviceAccountToken(this.#objects.api, { namespace, name: serviceAccountName });
    const kubeconfig = await this.#options.file(
      `${namespace}.kubeconfig`,
      this.#objects.api.kubeconfigFor({ token, namespace }),
    );
    const healthPort = await freePort();
    const process = await startNabSync(command.slice(2), {
      kubeconfig,
      oadpNamespace: namespace,
      env: {
        ...Object.fromEntries(env.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]]))),
        METRICS_ADDRESS: '127.0.0.1:0',
        HEALTH_ADDRESS: `127.0.0.1:${healthPort}`,
      },
    });
    return { template: JSON.stringify(template), process, healthPort };
  }

  async #report({ metadata: { namespace, name, generation } }: Deployment, ready: boolean): Promise<void> {
    const pods = { replicas: 1, updatedReplicas: 1, readyReplicas: Number(ready), availableReplicas: Number(ready) };
    await this.#objects.setStatus(deployments, { namespace, name }, { observedGeneration: generation, ...pods });
  }

  async #readBuckets(): Promise<void> {
    for (const object of await this.#objects.list(kinds.backupStorageLocations)) {
      const { metadata: location, spec } = locationShape.parse(object);
      for (const stored of this.#options.buckets[spec.objectStorage.bucket] ?? []) {
        const read = inLocation(stored, location);
        const ref = metadata.parse(read['metadata']);
        if ((await this.#objects.get(kinds.backups, ref)) === undefined) await this.#objects.create(read);
      }
      await this.#objects.setStatus(kinds.backupStorageLocations, location, {
        phase: 'Available',
        lastSyncedTime: fromNow(0),
        lastValidationTime: fromNow(0),
      });
    }
  }
}

/** As Velero makes it: what says where it lies comes from the location, everything else from the bucket. */
function inLocation(stored: JsonObject, location: z.infer<typeof metadata>): JsonObject {
  const { metadata: original, spec } = z
    .looseObject({ metadata: z.looseObject({ labels: z.looseObject({}) }), spec: z.looseObject({}) })
    .parse(stored);
  return {
    ...stored,
    metadata: {
      ...original,
      namespace: location.namespace,
      labels: { ...original.labels, 'velero.io/storage-location': location.name },
    },
    spec: { ...spec, storageLocation: location.name },
  };
}

async function isReady({ process, healthPort }: Running): Promise<boolean> {
  const ended = await Promise.race([process.exited, sleep(0, undefined)]);
  if (ended !== undefined) throw new Error(`nab-sync ended with ${String(ended.exitCode)}: ${ended.stderr}`);
  try {
    return (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).ok;
  } catch {
    // It does not listen yet.
    return false;
  }
}
