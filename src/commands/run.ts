import isEqual from 'lodash/isEqual.js';
import type { CommandContext } from '../controller/context.ts';
import { rights } from '../controller/rights.ts';
import { qualifiedName } from '../kube/resource.ts';
import { healthPage, startServer, type Pages, type RunningServer } from '../observability/http-server.ts';
import { createPrometheusMetrics, type PrometheusMetrics } from '../observability/prometheus.ts';
import { formatDuration } from '../settings/duration.ts';
import { exitCodes } from './exit-codes.ts';
import type { CommandResult } from './result.ts';
import { version } from './version.ts';

/** How long the controller may take to stop. Less than the 30 seconds after which Kubernetes kills a pod. */
const stopGraceMs = 20_000;

/** Servers for metrics and health; one for both where both settings name the same address. */
async function startServers(context: CommandContext, prometheus: PrometheusMetrics): Promise<RunningServer[]> {
  const { settings, health, log } = context;
  const metricsAddress = settings.metricsAddress.value;
  const healthAddress = settings.healthAddress.value;
  const tlsPath = settings.metricsTlsDirectory.value;
  const tls = tlsPath === undefined ? undefined : { path: tlsPath, setting: '--metrics-tls-directory' };
  const metricsPages: Pages = {
    '/metrics': async () => ({ status: 200, contentType: prometheus.contentType, body: await prometheus.render() }),
  };
  const healthPages: Pages = {
    '/livez': healthPage('livez', health.live),
    '/readyz': healthPage('readyz', health.ready),
  };
  const shared = metricsAddress !== undefined && metricsAddress.port !== 0 && isEqual(metricsAddress, healthAddress);
  const plans = shared
    ? [{ address: metricsAddress, setting: '--metrics-address', pages: { ...metricsPages, ...healthPages }, tls }]
    : [
        { address: metricsAddress, setting: '--metrics-address', pages: metricsPages, tls },
        { address: healthAddress, setting: '--health-address', pages: healthPages, tls: undefined },
      ];
  const servers: RunningServer[] = [];
  try {
    for (const { address, ...plan } of plans) {
      if (address !== undefined) servers.push(await startServer({ address, ...plan, log }));
    }
  } catch (error) {
    await Promise.all(servers.map((server) => server.close()));
    throw error;
  }
  return servers;
}

/** Rejects when `work` is still at it so long after the signal. */
async function withinGrace(work: Promise<void>, signal: AbortSignal, graceMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<never>((_, reject) => {
    const startTimer = () => {
      timer = setTimeout(() => {
        reject(new Error(`the controller did not stop within ${formatDuration(graceMs)}`));
      }, graceMs);
    };
    if (signal.aborted) startTimer();
    else signal.addEventListener('abort', startTimer, { once: true });
  });
  try {
    await Promise.race([work, overdue]);
  } finally {
    clearTimeout(timer);
  }
}

/** The controller, with its metrics and probes, until the signal. */
export async function run(
  context: CommandContext,
  runController: (context: CommandContext) => Promise<void>,
  graceMs = stopGraceMs,
): Promise<CommandResult> {
  const requests = rights.map(({ verb, resource }) => ({ verb, resource: qualifiedName(resource) }));
  const watched = requests.filter(({ verb }) => verb === 'watch').map(({ resource }) => resource);
  const prometheus = createPrometheusMetrics({ version, watched, requests });
  context.health.ready.set('synced', () => 'the controller has not started');
  const servers = await startServers(context, prometheus);
  try {
    await withinGrace(runController({ ...context, metrics: prometheus.metrics }), context.signal, graceMs);
  } finally {
    await Promise.all(servers.map((server) => server.close()));
  }
  return { exitCode: exitCodes.ok };
}
