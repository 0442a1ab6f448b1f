import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import * as kinds from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { renderManifests } from '../../support/manifests.ts';
import { startNabSync } from '../../support/nab-sync.ts';
import { follow, mainJob, type Controller } from './support/main-job.ts';
import { page } from './support/scrape.ts';

/** No kubelet runs beside the embedded server: the test does what one does with the Deployment's liveness probe. */

const job = await mainJob();
const { gen, objects, kubeconfig, oadpNamespace } = job;
await objects.create(gen.storageLocation());

const deployment = z.looseObject({
  kind: z.literal('Deployment'),
  spec: z.object({
    template: z.object({
      spec: z.object({
        containers: z.array(
          z.looseObject({
            livenessProbe: z.object({
              httpGet: z.object({ path: z.string() }),
              periodSeconds: z.number(),
              timeoutSeconds: z.number(),
              failureThreshold: z.number(),
            }),
          }),
        ),
      }),
    }),
  }),
});

async function livenessProbe() {
  const manifests = await renderManifests({ kubectl: job.kubectl, namespace: oadpNamespace });
  const found = manifests.flatMap((object) => {
    const parsed = deployment.safeParse(object);
    return parsed.success ? parsed.data.spec.template.spec.containers : [];
  });
  const [container] = found;
  if (container === undefined) throw new Error('the Deployment has no liveness probe');
  return container.livenessProbe;
}

/** Each second of the Deployment is so long here. */
const secondMs = 200;

interface Kubelet {
  /** The container that runs now. */
  readonly container: () => Controller;
  readonly restarts: () => number;
}

/** Starts `run`, probes it as the Deployment says, and puts a new one in its place when the probe has failed often enough. */
async function kubelet(): Promise<Kubelet> {
  const { httpGet, periodSeconds, timeoutSeconds, failureThreshold } = await livenessProbe();
  const start = async (): Promise<Controller> => follow(await startNabSync(['run'], { kubeconfig, oadpNamespace }));
  let current = await start();
  let restarts = 0;
  const ended = new AbortController();

  async function isAlive(): Promise<boolean> {
    try {
      const late = sleep(timeoutSeconds * secondMs).then(() => undefined);
      const answer = await Promise.race([page(current, httpGet.path), late]);
      return answer?.status === 200;
    } catch {
      return false;
    }
  }

  const probing = (async () => {
    // As the kubelet does, which counts no failure before the container answers for the first time: startup takes its time here.
    await current.line('listening', { pages: [httpGet.path, '/readyz'] }, 30_000);
    let failures = 0;
    while (!ended.signal.aborted) {
      failures = (await isAlive()) ? 0 : failures + 1;
      if (failures >= failureThreshold) {
        current.signal('SIGKILL');
        await current.exited;
        current = await start();
        restarts += 1;
        failures = 0;
        await current.line('listening', { pages: [httpGet.path, '/readyz'] }, 30_000);
      }
      await sleep(periodSeconds * secondMs);
    }
  })();
  onTestFinished(async () => {
    ended.abort();
    await probing;
    current.signal('SIGKILL');
    await current.exited;
  });
  return { container: () => current, restarts: () => restarts };
}

describe('the liveness probe of the Deployment', () => {
  it(
    'has a loop that stands still restarted, and what it left undone is done; a loop that turns it lets live',
    { timeout: 150_000 },
    async () => {
      const namespace = await job.createTenant('team');
      const node = await kubelet();
      await node.container().firstPass();
      await objects.create(gen.backup({ namespace, name: 'before' }));
      await eventually(async () => {
        expect(await job.nabNames(namespace)).toEqual([`${namespace}/before`]);
      });
      expect(node.restarts()).toBe(0);

      // No turn of the loop any more, as with a loop that never ends in some function.
      node.container().signal('SIGSTOP');
      await objects.create(gen.backup({ namespace, name: 'while-stuck' }));
      await eventually(async () => {
        expect(await job.nabNames(namespace)).toEqual([`${namespace}/before`, `${namespace}/while-stuck`]);
        // Until the probe has failed often enough, and the Lease of the dead has run out.
      }, 90_000);
      expect(node.restarts()).toBe(1);
      await objects.delete(kinds.nonAdminBackups, { namespace, name: 'before' });
      await eventually(async () => {
        expect(await job.nabNames(namespace)).toContain(`${namespace}/before`);
      });
      expect(node.restarts()).toBe(1);
    },
  );
});
