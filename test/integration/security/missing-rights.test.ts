import { describe, expect, it } from 'vitest';
import { rights, type Right } from '../../../src/controller/rights.ts';
import { leaseName } from '../../../src/controller/sync-setup.ts';
import { configMapResource, statusConfigMapName } from '../../../src/controller/sync-status.ts';
import { leaseResource } from '../../../src/kube/lease-record.ts';
import { objectAt } from '../../../src/kube/json.ts';
import { qualifiedName } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { hour } from '../../support/gen/api-objects.ts';
import { fromNow, nacuuid } from '../../support/gen/live-objects.ts';
import { isolated } from '../../support/isolated.ts';
import { runNabSync, startNabSync } from '../../support/nab-sync.ts';
import { meddlingProxy, type MeddlingProxy } from '../main-job/support/meddling-proxy.ts';
import { onceReport } from '../main-job/support/reports.ts';
import { install, rightLine, type Installation } from './support/installation.ts';

/**
 * Each right is taken away in turn. `once` fails with one line that names it, or does without; `run` says so, lives on,
 * does what it still can, and is complete soon after the right came back.
 */

const here = await isolated();
const { objects } = here;

/** How a missing right shows in `once`. */
type Effect =
  /** Nothing can be decided: one line on stderr, nothing on stdout. */
  | 'refuses'
  /** The write fails and is reported. */
  | 'fails'
  /** The work is done all the same; the log says what is lacking. */
  | 'warns'
  /** `once` has no use for the right. */
  | 'unused';

function effectOn(right: Right): Effect {
  const { verb, resource } = right;
  if (verb === 'watch' || resource === kinds.dataProtectionApplications || resource === kinds.syncRequests) {
    return 'unused';
  }
  if (verb === 'list' || resource === leaseResource) return 'refuses';
  return resource.plural === 'events' || resource === configMapResource ? 'warns' : 'fails';
}

/** Nothing of the main job rests on it. */
function isSideline(right: Right): boolean {
  return effectOn(right) === 'warns' || right.resource === kinds.syncRequests;
}

/** What messages call it: `update nonadminbackups.oadp.openshift.io/status`. */
function spelled({ verb, resource, subresource }: Right): string {
  return `${verb} ${qualifiedName(resource)}${subresource === undefined ? '' : `/${subresource}`}`;
}

class Scene {
  readonly nabSync: Installation;
  readonly tenant: string;
  readonly #ids = new Map<string, string>();
  /** Path. */
  #kubeconfig: string;

  private constructor(nabSync: Installation, tenant: string) {
    this.nabSync = nabSync;
    this.#kubeconfig = nabSync.kubeconfig;
    this.tenant = tenant;
  }

  /** A tenant with one backup to bring back, and a NAB whose status was never written. */
  static async make(name: string): Promise<Scene> {
    const nabSync = await install(here, `${name}-adp`);
    const scene = new Scene(nabSync, await here.createTenant(name));
    await objects.create(nabSync.gen.storageLocation());
    await objects.create({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: leaseName, namespace: nabSync.oadpNamespace },
      spec: {},
    });
    for (const backup of ['daily', 'begun']) await scene.#backUp(backup);
    const { status, ...begun } = nabSync.gen.nonAdminBackup({
      namespace: scene.tenant,
      name: 'begun',
      syncedFrom: scene.#ids.get('begun') ?? '',
    });
    expect(status).toBeDefined();
    await objects.create(begun);
    return scene;
  }

  async #backUp(name: string): Promise<void> {
    const id = nacuuid(this.tenant, name);
    this.#ids.set(name, id);
    await objects.create(this.nabSync.gen.backup({ namespace: this.tenant, name, nacuuid: id }));
  }

  get options(): { kubeconfig: string; oadpNamespace: string; env: Record<string, string> } {
    const { oadpNamespace } = this.nabSync;
    return { kubeconfig: this.#kubeconfig, oadpNamespace, env: { LOG_LEVEL: 'info' } };
  }

  /** From here on lists are not streamed, as by an older server: where they are, the controller can do without the right to list. */
  async refuseStreams(): Promise<MeddlingProxy> {
    const proxy = await meddlingProxy(this.#kubeconfig, ({ query }) =>
      query.has('sendInitialEvents')
        ? Promise.resolve({ status: 400, body: { kind: 'Status', reason: 'BadRequest', code: 400 } })
        : undefined,
    );
    this.#kubeconfig = await here.file(`${this.tenant}-paged.kubeconfig`, proxy.kubeconfig);
    return proxy;
  }

  async expectComplete(): Promise<void> {
    for (const [name, id] of this.#ids) {
      const nab = await objects.get(kinds.nonAdminBackups, { namespace: this.tenant, name });
      expect(objectAt(nab ?? {}, 'status'), name).toMatchObject({ phase: 'Created', veleroBackup: { nacuuid: id } });
    }
  }

  /** Makes the one thing happen for which some rights are needed. */
  async provoke({ verb, resource }: Right): Promise<void> {
    if (resource === configMapResource) {
      const status = { namespace: this.nabSync.oadpNamespace, name: statusConfigMapName };
      if (verb === 'create') await objects.delete(configMapResource, status);
      else await runNabSync(['once'], this.options);
      await objects.delete(kinds.nonAdminBackups, { namespace: this.tenant, name: 'daily' });
    }
    if (resource === leaseResource && verb === 'create') {
      await objects.delete(leaseResource, { namespace: this.nabSync.oadpNamespace, name: leaseName });
    }
    if (resource === kinds.syncRequests && (verb === 'update' || verb === 'delete')) {
      const request = { apiVersion: 'sync.oadp.openshift.io/v1alpha1', kind: resource.kind };
      const answered = ['a', 'b', 'c', 'd', 'e'].map((name) => ({
        ...request,
        metadata: { namespace: this.tenant, name },
        status: { phase: 'Succeeded', oadpNamespace: this.nabSync.oadpNamespace, completionTime: fromNow(-hour) },
      }));
      // One that waits for its answer, or more answers than are kept.
      const unanswered = { ...request, metadata: { namespace: this.tenant, name: 'asked' } };
      for (const each of verb === 'update' ? [unanswered] : answered) await objects.create(each);
    }
    if (resource.plural === 'events' && verb === 'patch') {
      // Told once already, so that the next time raises a count.
      await runNabSync(['once'], this.options);
      await objects.delete(kinds.nonAdminBackups, { namespace: this.tenant, name: 'daily' });
    }
  }
}

/** Rights that are missed side by side: a reflector each. All others are tried alone. */
const watching = rights.filter(({ verb }) => verb === 'watch');
const listing = rights.filter(({ verb }) => verb === 'list');
const single = rights.filter((right) => !watching.includes(right) && !listing.includes(right));

const cases: readonly (readonly [string, readonly Right[]])[] = [
  ...single.map((right) => [rightLine(right), [right]] as const),
  ['watch anything', watching],
  ['list anything', listing],
];

describe.concurrent('without the right to', () => {
  it.for(cases.map(([title, missing], index) => [title, missing, `r${index}`] as const))(
    '%s',
    { timeout: 120_000 },
    async ([, missing, id], { onTestFinished }) => {
      const scene = await Scene.make(id);
      if (missing === listing) {
        const proxy = await scene.refuseStreams();
        onTestFinished(() => proxy.close());
      }
      // `once` watches nothing, so it can miss all of that at once.
      for (const withdrawn of missing === watching ? [watching] : missing.map((right) => [right])) {
        for (const right of withdrawn) await scene.provoke(right);
        await scene.nabSync.withdraw(...withdrawn);
        for (const right of withdrawn.slice(0, 1)) await checkOnce(scene, right);
      }
      await scene.nabSync.withdraw(...missing);
      const controller = await startNabSync(['run'], scene.options);
      onTestFinished(async () => {
        await controller.stop();
      });
      const lines = (): string[] => controller.stderr.split('\n').slice(0, -1);
      for (const right of missing) {
        const said = await eventually(() => {
          const found = lines().find(
            (line) => line.includes(`${spelled(right)} `) || line.includes(`${spelled(right)}:`),
          );
          if (found === undefined) throw new Error(`${spelled(right)} is not in the log:\n${controller.stderr}`);
          return found;
        }, 30_000);
        expect(JSON.parse(said)).toMatchObject({ level: 'warn' });
        expect(said).toContain('forbidden');
      }
      const stillWorks = missing.every((right) => right.verb === 'watch' || isSideline(right));
      if (stillWorks) await eventually(() => scene.expectComplete(), 30_000);

      await scene.nabSync.restore();
      try {
        await eventually(() => scene.expectComplete(), 30_000);
      } catch (error) {
        throw new Error(`not complete after the right came back:\n${controller.stderr}`, { cause: error });
      }
      expect(lines().filter((line) => /"level":"(error|fatal)"|"stack"/.test(line))).toEqual([]);
      const { exitCode } = await controller.stop();
      expect(exitCode).toBe(0);
    },
  );
});

async function checkOnce(scene: Scene, right: Right): Promise<void> {
  const began = performance.now();
  const { exitCode, stdout, stderr } = await runNabSync(['once', '-o', 'json'], scene.options);
  const effect = effectOn(right);
  const told = stderr.trimEnd().split('\n');
  expect(stderr).not.toMatch(/\n\s+at |"level":"(error|fatal)"/);
  if (effect === 'refuses') {
    expect(exitCode).toBe(1);
    expect(stdout).toBe('');
    const lines = told.filter((line) => line.startsWith('nab-sync: '));
    expect(lines, stderr).toHaveLength(1);
    expect(lines[0]).toContain(spelled(right));
    expect(lines[0]).toContain('forbidden');
    expect(lines[0]).toContain(`grant ${right.verb} on ${qualifiedName(right.resource)}`);
    // Nobody waits for a right that only an admin brings.
    expect(performance.now() - began).toBeLessThan(10_000);
    return;
  }
  const report = onceReport.parse(JSON.parse(stdout));
  if (effect === 'fails') {
    expect(exitCode).toBe(1);
    expect(report.failures.map(({ reason }) => reason)).toContain('Forbidden');
    for (const { namespace, reason, message } of report.failures) {
      expect({ namespace, reason }).toEqual({ namespace: scene.tenant, reason: 'Forbidden' });
      expect(message).toContain(spelled(right));
    }
    return;
  }
  expect(exitCode, stderr).toBe(0);
  expect(report.failures).toEqual([]);
  await scene.expectComplete();
  if (effect === 'warns')
    expect(
      told.filter((line) => line.includes(spelled(right))),
      stderr,
    ).toHaveLength(1);
  else expect(stderr).not.toMatch(/"level":"warn"/);
  // For `run` there is to be something to do again.
  await objects.delete(kinds.nonAdminBackups, { namespace: scene.tenant, name: 'daily' });
}
