import { setTimeout as sleep } from 'node:timers/promises';
import { backupStorageLocations } from '../../src/oadp/kinds.ts';
import type { NabSyncProcess } from '../support/nab-sync.ts';
import { metricsOf, untilReady } from './metrics-page.ts';
import type { BenchOptions } from './options.ts';
import { ProcessMeter } from './process-meter.ts';
import { Relay } from './relay.ts';
import type { Results } from './results.ts';
import { oadpNamespace } from './stored-backup.ts';
import type { World } from './world.ts';

const part = 'steady';

/** From the start until memory, connections and compiled code have settled. */
const settleMs = 10_000;

const resyncSeconds = 5;

/** What happened in a stretch of time. */
interface Stretch {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly resyncs: number;
  readonly lists: number;
  /** Creates and updates of anything but the Lease and the ConfigMap. */
  readonly writes: number;
  /** Of the ConfigMap that keeps how the passes went. */
  readonly statusWrites: number;
  readonly leaseRequests: number;
  readonly otherRequests: number;
  readonly bytes: number;
}

/** All NABs are there and stay there: what nab-sync does all day. The Lease is renewed, and Velero stamps its location. */
export async function measureSteadyState(world: World, options: BenchOptions, results: Results): Promise<void> {
  const count = world.places.length;
  const idle = await stretch(world, options.steadySeconds, '0');
  const busy = await stretch(world, options.steadySeconds, `${resyncSeconds}s`);
  const name = (text: string): string => `${count} backups: ${text}`;
  const cpuOfResync = ((busy.cpuSeconds - (idle.cpuSeconds / idle.seconds) * busy.seconds) / busy.resyncs) * 1000;

  results.add({
    part,
    name: name('writes in all resyncs'),
    unit: '',
    value: busy.writes,
    target: { of: 'value', atMost: 0 },
  });
  results.add({
    part,
    name: name(`writes of the kept status in ${busy.resyncs} resyncs`),
    unit: '',
    value: busy.statusWrites,
    // What came of the one before is written a moment after it ended.
    target: { of: 'value', atMost: busy.resyncs + 1 },
  });
  results.add({
    part,
    name: name('lists in all resyncs'),
    unit: '',
    value: busy.lists,
    target: { of: 'value', atMost: 0 },
  });
  results.add({
    part,
    name: name(`CPU of a resync (mean of ${busy.resyncs})`),
    unit: 'ms',
    value: cpuOfResync,
    target: { of: 'value', atMost: 150 },
  });
  const perMinute = (value: number): number => (value / idle.seconds) * 60;
  results.add({ part, name: name('between resyncs: CPU'), unit: 'ms/min', value: perMinute(idle.cpuSeconds * 1000) });
  results.add({ part, name: name('between resyncs: writes'), unit: '', value: idle.writes });
  results.add({ part, name: name('between resyncs: lists'), unit: '', value: idle.lists });
  results.add({
    part,
    name: name('between resyncs: Lease requests'),
    unit: '/min',
    value: perMinute(idle.leaseRequests),
  });
  results.add({
    part,
    name: name('between resyncs: other requests'),
    unit: '/min',
    value: perMinute(idle.otherRequests),
  });
  results.add({ part, name: name('between resyncs: bytes, both ways'), unit: 'B/min', value: perMinute(idle.bytes) });
  results.add({
    part,
    name: name('bytes of a resync'),
    unit: 'B',
    value: Math.max(0, (busy.bytes - (idle.bytes / idle.seconds) * busy.seconds) / busy.resyncs),
  });
}

async function stretch(world: World, seconds: number, syncPeriod: string): Promise<Stretch> {
  const relay = await Relay.start(world.controlPlane.server);
  const nabSync = await world.startNabSync({ server: relay.url, env: { SYNC_PERIOD: syncPeriod } });
  try {
    await untilReady(nabSync, 120_000);
    await sleep(settleMs);
    return await observe(world, relay, nabSync, seconds);
  } finally {
    await nabSync.stop();
    relay.close();
  }
}

async function observe(world: World, relay: Relay, nabSync: NabSyncProcess, seconds: number): Promise<Stretch> {
  const meter = new ProcessMeter(nabSync.pid);
  const metricsBefore = await metricsOf(nabSync);
  const trafficBefore = relay.traffic;
  const cpuBefore = await meter.cpuSeconds();
  const began = performance.now();
  while (performance.now() - began < seconds * 1000) {
    await stampLocation(world);
    await sleep(Math.min(60_000, Math.max(0, seconds * 1000 - (performance.now() - began))));
  }
  const took = (performance.now() - began) / 1000;
  const cpuAfter = await meter.cpuSeconds();
  const trafficAfter = relay.traffic;
  const metricsAfter = await metricsOf(nabSync);
  const requests = (accept: (labels: Readonly<Record<string, string>>) => boolean): number =>
    metricsAfter.requests(accept) - metricsBefore.requests(accept);
  const isLease = ({ resource }: Readonly<Record<string, string>>): boolean =>
    resource === 'leases.coordination.k8s.io';
  const isStatus = ({ resource }: Readonly<Record<string, string>>): boolean => resource === 'configmaps';
  const isWrite = ({ verb = '' }: Readonly<Record<string, string>>): boolean =>
    ['create', 'update', 'patch'].includes(verb);
  const isList = ({ verb }: Readonly<Record<string, string>>): boolean => verb === 'list';
  const passes = 'nab_sync_pass_duration_seconds_count';
  return {
    seconds: took,
    cpuSeconds: cpuAfter - cpuBefore,
    resyncs: metricsAfter.sum(passes) - metricsBefore.sum(passes),
    lists: requests(isList),
    writes: requests((labels) => isWrite(labels) && !isLease(labels) && !isStatus(labels)),
    statusWrites: requests((labels) => isWrite(labels) && isStatus(labels)),
    leaseRequests: requests(isLease),
    otherRequests: requests((labels) => !isWrite(labels) && !isList(labels) && !isLease(labels)),
    bytes:
      trafficAfter.bytesToServer +
      trafficAfter.bytesToClient -
      trafficBefore.bytesToServer -
      trafficBefore.bytesToClient,
  };
}

/** As Velero does each minute. */
async function stampLocation(world: World): Promise<void> {
  const ref = { namespace: oadpNamespace, name: 'default' };
  const lastSyncedTime = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  await world.objects.setStatus(backupStorageLocations, ref, { lastSyncedTime });
}
