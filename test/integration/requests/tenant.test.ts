import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ApiClient } from '../../support/api-client.ts';
import { readFile } from 'node:fs/promises';
import { fromNow } from '../../support/gen/live-objects.ts';
import { day, hour } from '../../support/gen/api-objects.ts';
import { runNabSync, type NabSyncExit } from '../../support/nab-sync.ts';
import { getTable } from '../../support/table.ts';
import { tenantKubeconfig } from '../../support/tenant-rights.ts';
import { objectAt } from '../../../src/kube/json.ts';
import { syncRequests } from '../../../src/oadp/kinds.ts';
import { resourcePath } from '../../../src/kube/resource.ts';
import { mainJob, untilTheEndOfTheFile } from '../main-job/support/main-job.ts';
import { answerOf, finalStatus, syncRequest } from '../../support/sync-requests.ts';

/** What a tenant sees who has the rights of a namespace's admin, and no others. */

const job = await mainJob();
const { gen, objects } = job;
/** Somebody who has a role in his own namespace and nothing anywhere else. */
interface Tenant {
  readonly namespace: string;
  readonly kubeconfig: string;
  readonly command: (...args: readonly string[]) => Promise<NabSyncExit>;
}

let mine: Tenant;
let viewer: Tenant;
let others: string;
let theirs: string[];

const document = z.strictObject({ namespace: z.string(), name: z.string(), status: finalStatus });

async function tenantOf(namespace: string, role: 'edit' | 'view'): Promise<Tenant> {
  const text = await tenantKubeconfig(objects, job.kubectl, namespace, role);
  const kubeconfig = await job.file(`${namespace}-${role}.kubeconfig`, text);
  return {
    namespace,
    kubeconfig,
    command: (...args) => runNabSync(args, { kubeconfig, oadpNamespace: job.oadpNamespace }),
  };
}

beforeAll(async () => {
  const own = await job.createTenant('mine');
  others = await job.createTenant('theirs');
  mine = await tenantOf(own, 'edit');
  viewer = await tenantOf(own, 'view');
  await objects.create(gen.storageLocation());
  await objects.create(gen.ownedStorageLocation({ namespace: others }));
  await objects.create(gen.nonAdminStorageLocation({ namespace: others }));
  const backups = [
    gen.backup({ namespace: own, name: 'daily' }),
    gen.backup({ namespace: own, name: 'expired', status: { expiration: fromNow(-hour) } }),
    gen.backup({ namespace: own, name: 'running', status: { phase: 'InProgress', completionTimestamp: undefined } }),
    gen.backup({ namespace: others, name: 'secret-project', status: { completionTimestamp: fromNow(-2 * day) } }),
    // Made to look as if it were mine: nothing of it may ever reach me.
    gen.backup({ namespace: own, name: 'forged', spec: { storageLocation: `${others}-bucket-1` } }),
  ];
  for (const backup of backups) await objects.create(backup);
  theirs = [others, 'secret-project', 'forged', `${others}-bucket-1`];
}, 60_000);

describe('a tenant with the rights of an admin of his namespace', () => {
  it('asks before there is a controller: the request is Pending, and not answered in time', async () => {
    const { exitCode, stdout, stderr } = await mine.command('request', '--wait', '--timeout', '1s', '-o', 'json');
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ namespace: mine.namespace, status: { phase: 'Pending' } });
    expect(stderr).toMatch(/is not answered after 1s; is a nab-sync run at work\?/);
  });

  it('gets that request answered by the first pass of the controller: what came back, and why the rest did not', async () => {
    await job.controller([], {}, untilTheEndOfTheFile);
    const [request] = await objects.list(syncRequests, { namespace: mine.namespace });
    const { name } = objectAt(request ?? {}, 'metadata');
    const status = finalStatus.parse(await answerOf(objects, mine.namespace, String(name)));
    expect(status).toMatchObject({
      phase: 'Succeeded',
      namespaces: 1,
      counts: { seen: 3, created: 1, skipped: 2, failed: 0 },
      written: [{ namespace: mine.namespace, name: 'daily', outcome: 'Created' }],
      failed: [],
      omitted: { written: 0, skipped: 0, failed: 0 },
      history: { consecutiveFailures: 0 },
    });
    expect(status.skipped.map(({ name, reason }) => [name, reason])).toEqual([
      ['expired', 'Expired'],
      ['running', 'NotFinished'],
    ]);
  });

  it('requests, waits and reads: progress on stderr, the answer on stdout', async () => {
    const { exitCode, stdout, stderr } = await mine.command('request', '--wait', '-o', 'json');
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    const { namespace, name, status } = document.parse(JSON.parse(stdout));
    expect(namespace).toBe(mine.namespace);
    expect(status).toMatchObject({ phase: 'Succeeded', counts: { seen: 3, present: 1, skipped: 2 } });
    expect(stderr).toContain(`request ${namespace}/${name}: Succeeded`);

    const table = await mine.command('request', '--wait');
    expect(table.exitCode).toBe(0);
    expect(table.stdout).toMatch(/^Request: +\S+\/sync-\w+\nPhase: +Succeeded\n/);
    expect(table.stdout).toMatch(/^NAMESPACE +NAME +SKIPPED +MESSAGE\n.* expired +Expired /m);
    console.log(table.stdout);
  });

  it('sees it with kubectl: phase and counts', async () => {
    const api = await ApiClient.fromKubeconfig(await readFile(mine.kubeconfig, 'utf8'));
    try {
      const shown = await getTable(api, syncRequests, mine.namespace);
      expect(shown).toMatch(/^NAME +PHASE +CREATED +SKIPPED +FAILED +AGE\n/);
      expect(shown).toMatch(/^sync-\w+ +Succeeded +1 +2 +0 /m);
    } finally {
      await api.close();
    }
  });

  it('learns nothing of others: not by any answer, and not by asking elsewhere', async () => {
    const all = JSON.stringify(await objects.list(syncRequests, { namespace: mine.namespace }));
    for (const word of theirs) expect(all).not.toContain(word);
    const elsewhere = await mine.command('request', '-n', others, '--wait');
    expect(elsewhere.exitCode).toBe(1);
    expect(elsewhere.stderr).toMatch(/forbidden/);
    const everywhere = await mine.command('request', '-n', job.oadpNamespace);
    expect(everywhere.exitCode).toBe(1);
    expect(everywhere.stderr).toMatch(/forbidden/);
  });

  it('cannot name other namespaces: a selector fails the request', async () => {
    const { exitCode, stdout } = await mine.command('request', '--wait', '--namespace-selector', 'a=b', '-o', 'json');
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      status: { phase: 'Failed', conditions: [{ reason: 'NamespaceSelectorNotAllowed' }, { status: 'False' }] },
    });
    expect(stdout).not.toContain('counts');
  });

  it('cannot write an answer, or change what was asked', async () => {
    const api = await ApiClient.fromKubeconfig(await readFile(mine.kubeconfig, 'utf8'));
    try {
      const [{ metadata } = { metadata: undefined }] = await objects.list(syncRequests, { namespace: mine.namespace });
      const { name } = z.object({ name: z.string() }).parse(metadata);
      const ref = { namespace: mine.namespace, name };
      for (const path of [
        resourcePath(syncRequests, ref),
        resourcePath(syncRequests, { ...ref, subresource: 'status' }),
      ]) {
        const body = { status: { phase: 'Succeeded' }, spec: { namespaceSelector: {} } };
        const answer = await api.request('PATCH', path, { body, contentType: 'application/merge-patch+json' });
        expect(answer.status).toBe(403);
      }
    } finally {
      await api.close();
    }
  });

  it('reads as a viewer, and asks for nothing', async () => {
    const api = await ApiClient.fromKubeconfig(await readFile(viewer.kubeconfig, 'utf8'));
    try {
      const path = resourcePath(syncRequests, { namespace: mine.namespace });
      expect((await api.request('GET', path)).status).toBe(200);
      expect((await api.request('POST', path, { body: syncRequest(mine.namespace) })).status).toBe(403);
    } finally {
      await api.close();
    }
  });
});
