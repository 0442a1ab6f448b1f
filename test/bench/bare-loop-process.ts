/**
 * The limit: what nab-sync writes, written by the shortest loop that can be written for it, as the same ServiceAccount. Its
 * argument is a BareLoopTask as JSON; it prints a BareLoopResult.
 */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { objectAt } from '../../src/kube/json.ts';
import { resourcePath, type JsonObject } from '../../src/kube/resource.ts';
import { toBackupRecord } from '../../src/oadp/backup.ts';
import { backups, nonAdminBackups } from '../../src/oadp/kinds.ts';
import { nacLabelSelector } from '../../src/oadp/labels.ts';
import { nonAdminBackupFor, syncedStatus, type Origin } from '../../src/oadp/non-admin-backup.ts';
import { originOf } from '../../src/sync/decide.ts';
import { bareLoopTask, type BareLoopResult } from './bare-loop.ts';
import { inParallel } from './in-parallel.ts';
import { PooledApi } from './pooled-api.ts';
import { oadpNamespace } from './stored-backup.ts';

interface Created {
  readonly origin: Origin;
  readonly live: JsonObject;
  readonly nab: JsonObject;
}

const { kubeconfig, concurrency, writes, http2Connections } = bareLoopTask.parse(JSON.parse(process.argv[2] ?? '{}'));
const api = await PooledApi.open({
  kubeconfig: await readFile(kubeconfig, 'utf8'),
  connections: http2Connections ?? concurrency,
  ...(http2Connections === undefined ? {} : { http2: true, streams: Math.ceil(concurrency / http2Connections) }),
});

async function create(name: string): Promise<Created> {
  const live = await api.call('GET', resourcePath(backups, { namespace: oadpNamespace, name }));
  const origin = originOf(toBackupRecord(live));
  const body = nonAdminBackupFor(live, origin, undefined);
  const nab = await api.call('POST', resourcePath(nonAdminBackups, { namespace: origin.namespace }), body);
  return { origin, live, nab };
}

/** Beside the non-admin controller, its collector may have deleted a Backup since the list, or its synchronizer made the NAB. */
function unlessForestalled(error: unknown): undefined {
  if (!(error instanceof Error && /: (404|409) /.test(error.message))) throw error;
}

async function writeStatus({ origin, live, nab }: Created): Promise<void> {
  const { uid, resourceVersion } = objectAt(nab, 'metadata');
  const body = {
    apiVersion: nab['apiVersion'],
    kind: nab['kind'],
    metadata: { namespace: origin.namespace, name: origin.name, uid, resourceVersion },
    status: syncedStatus(live, origin, oadpNamespace, undefined, Date.now()),
  };
  const ref = { namespace: origin.namespace, name: origin.name, subresource: 'status' } as const;
  await api.call('PUT', resourcePath(nonAdminBackups, ref), body);
}

const query = new URLSearchParams({ labelSelector: nacLabelSelector });
const list = z
  .object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })) })
  .parse(await api.call('GET', `${resourcePath(backups, { namespace: oadpNamespace })}?${query.toString()}`));
const names = list.items.map(({ metadata }) => metadata.name);

const began = performance.now();
const created: Created[] = [];
await inParallel(names, concurrency, async (name) => {
  const made = await create(name).catch(unlessForestalled);
  if (made === undefined) return;
  if (writes === 'all') await writeStatus(made);
  else created.push(made);
});
if (writes === 'statusesLast') await inParallel(created, concurrency, writeStatus);
const result: BareLoopResult = { seconds: (performance.now() - began) / 1000 };
console.log(JSON.stringify(result));
await api.close();
