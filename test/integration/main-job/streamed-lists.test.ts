import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import * as kinds from '../../../src/oadp/kinds.ts';
import { ControlPlane } from '../../support/control-plane/control-plane.ts';
import { eventually } from '../../support/eventually.ts';
import { liveObjects } from '../../support/gen/live-objects.ts';
import { runNabSync, startNabSync } from '../../support/nab-sync.ts';
import { createNamespace } from '../../support/namespaces.ts';
import { Objects } from '../../support/objects.ts';
import { follow } from './support/main-job.ts';
import { metricsOf } from './support/scrape.ts';

const oadpNamespace = 'openshift-adp';
const gen = liveObjects(oadpNamespace);

/** More than fit on a first page. */
const count = 130;

const ends: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** An API server of the test's own with that many Backups of one namespace; resolves with what nab-sync needs to know. */
async function serverWith(
  featureGates: Readonly<Record<string, boolean>>,
): Promise<{ objects: Objects; kubeconfig: string; oadpNamespace: string }> {
  const controlPlane = await ControlPlane.start({ featureGates });
  ends.push(() => controlPlane.stop());
  const directory = await mkdtemp(join(tmpdir(), 'nab-sync-lists-'));
  ends.push(() => rm(directory, { recursive: true, force: true }));
  const kubeconfig = join(directory, 'kubeconfig');
  await writeFile(kubeconfig, controlPlane.kubeconfig, { mode: 0o600 });
  const objects = await Objects.on(controlPlane.admin);
  for (const name of [oadpNamespace, 'team']) await createNamespace(objects, name);
  await objects.create(gen.storageLocation());
  await Promise.all(
    Array.from({ length: count }, (_, index) =>
      objects.create(gen.backup({ namespace: 'team', name: `b-${index}`, nacuuid: `team-${index}` })),
    ),
  );
  return { objects, kubeconfig, oadpNamespace };
}

// An existing cluster has the lists that it has.
describe.skipIf(process.env['USE_EXISTING_CLUSTER'] === 'true')('first lists', () => {
  it.each([
    ['come as streams, and are the watches', {}, 1, { OK: 1, Invalid: 0 }],
    ['come in pages from a server that has no streams', { WatchList: false }, 2, { OK: 1, Invalid: 1 }],
  ])('%s', async (_, featureGates, lists, watches) => {
    const { objects, ...where } = await serverWith(featureGates);
    const controller = follow(await startNabSync(['run'], where));
    ends.push(() => controller.stop());
    await controller.firstPass();
    await eventually(async () => {
      expect(await objects.list(kinds.nonAdminBackups, { namespace: 'team' })).toHaveLength(count);
    });
    const metrics = await metricsOf(controller);
    const requests = (verb: string, code: string): number =>
      metrics.value(`nab_sync_requests_total{verb="${verb}",resource="backups.velero.io",code="${code}"}`);
    expect(requests('list', 'OK')).toBe(lists);
    expect({ OK: requests('watch', 'OK'), Invalid: requests('watch', 'Invalid') }).toEqual(watches);

    // What comes later is followed, whatever the list was.
    await objects.create(gen.backup({ namespace: 'team', name: 'late', nacuuid: 'late' }));
    await eventually(async () => {
      expect(await objects.list(kinds.nonAdminBackups, { namespace: 'team' })).toHaveLength(count + 1);
    });
    const { exitCode, stdout } = await runNabSync(['plan', '-o', 'json'], where);
    expect({ exitCode, counts: (JSON.parse(stdout) as { counts: unknown }).counts }).toMatchObject({
      exitCode: 0,
      counts: { none: count + 1 },
    });
  });
});
