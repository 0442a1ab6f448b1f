import { describe, expect, test } from 'vitest';
import { noMetrics } from '../../../src/observability/metrics.ts';
import { createPrometheusMetrics } from '../../../src/observability/prometheus.ts';
import { flags } from '../../../src/settings/flags.ts';
import { settingsWarnings } from '../../../src/settings/settings-warning.ts';
import { resolveSettings, sources } from '../../../src/settings/settings.ts';
import { decisionReasons, failureReasons, refusalReasons } from '../../../src/sync/reasons.ts';

const watched = ['backups.velero.io', 'namespaces'];
const requests = [
  { verb: 'create', resource: 'backups.velero.io' },
  { verb: 'watch', resource: 'namespaces' },
];

async function rendered(
  use: (metrics: ReturnType<typeof createPrometheusMetrics>['metrics']) => void = () => undefined,
) {
  const prometheus = createPrometheusMetrics({ version: '1.2.3', watched, requests });
  use(prometheus.metrics);
  return prometheus.render();
}

/** The value of one series; NaN when there is none. */
function valueOf(text: string, series: string): number {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1));
}

describe('before anything has happened', () => {
  test('every reason has its series, at 0', async () => {
    const text = await rendered();
    for (const reason of [...refusalReasons, ...decisionReasons]) {
      const line = text
        .split('\n')
        .find((each) => each.startsWith('nab_sync_backups{') && each.includes(`"${reason}"`));
      expect(line, reason).toMatch(/ 0$/);
      expect(text).toMatch(new RegExp(`nab_sync_decisions_total\\{action="\\w+",reason="${reason}"\\} 0`));
    }
    for (const reason of failureReasons) expect(valueOf(text, `nab_sync_failures_total{reason="${reason}"}`)).toBe(0);
  });

  test('every request that is made has a series for whatever may come of it', async () => {
    const text = await rendered();
    for (const { verb, resource } of requests) {
      const labels = `verb="${verb}",resource="${resource}"`;
      expect(valueOf(text, `nab_sync_request_duration_seconds_count{${labels}}`)).toBe(0);
      for (const code of ['OK', 'Forbidden', 'Timeout', 'Aborted']) {
        expect(valueOf(text, `nab_sync_requests_total{${labels},code="${code}"}`)).toBe(0);
      }
    }
  });

  test('every setting has a series for each source, and every warning one', async () => {
    const text = await rendered();
    for (const { name } of flags) {
      for (const source of sources) {
        expect(valueOf(text, `nab_sync_setting_source{setting="${name}",source="${source}"}`)).toBe(0);
      }
    }
    for (const warning of settingsWarnings) {
      expect(valueOf(text, `nab_sync_settings_warning{warning="${warning}"}`)).toBe(0);
    }
  });

  test('every watched kind has a series for each phase, and each outcome a duration', async () => {
    const text = await rendered();
    for (const resource of watched) {
      for (const phase of ['syncing', 'live', 'offline', 'kindNotInstalled', 'forbidden', 'stopped']) {
        expect(valueOf(text, `nab_sync_reflector_phase{resource="${resource}",phase="${phase}"}`)).toBe(0);
      }
    }
    for (const outcome of ['succeeded', 'partial', 'failed']) {
      expect(valueOf(text, `nab_sync_pass_duration_seconds_count{outcome="${outcome}"}`)).toBe(0);
      expect(valueOf(text, `nab_sync_reconcile_duration_seconds_count{outcome="${outcome}"}`)).toBe(0);
    }
    expect(valueOf(text, 'nab_sync_created_total')).toBe(0);
    expect(valueOf(text, 'nab_sync_workqueue_depth')).toBe(0);
    expect(valueOf(text, 'nab_sync_last_success_timestamp_seconds')).toBe(0);
  });

  test('build, process and Node are told', async () => {
    const text = await rendered();
    expect(valueOf(text, `nab_sync_build_info{version="1.2.3",node_version="${process.versions.node}"}`)).toBe(1);
    expect(text).toContain('process_cpu_seconds_total');
    expect(text).toContain('nodejs_eventloop_lag_seconds');
  });
});

describe('the metrics', () => {
  test('count decisions, writes and failures', async () => {
    const text = await rendered((metrics) => {
      metrics.decisions([
        { action: 'create', reason: 'Missing', count: 1 },
        { action: 'none', reason: 'Present', count: 7 },
      ]);
      metrics.decisions([{ action: 'create', reason: 'Missing', count: 2 }]);
      metrics.created();
      metrics.repaired();
      metrics.failure('QuotaDenied');
      metrics.queueAdded();
      metrics.queueRetried();
      metrics.queueDepth(3);
      metrics.queueWaited(0.2);
      metrics.reconciled('partial', 0.3);
      metrics.namespacesPending(2);
    });
    expect(valueOf(text, 'nab_sync_decisions_total{action="create",reason="Missing"}')).toBe(3);
    expect(valueOf(text, 'nab_sync_created_total')).toBe(1);
    expect(valueOf(text, 'nab_sync_repaired_total')).toBe(1);
    expect(valueOf(text, 'nab_sync_failures_total{reason="QuotaDenied"}')).toBe(1);
    expect(valueOf(text, 'nab_sync_workqueue_adds_total')).toBe(1);
    expect(valueOf(text, 'nab_sync_workqueue_retries_total')).toBe(1);
    expect(valueOf(text, 'nab_sync_workqueue_depth')).toBe(3);
    expect(valueOf(text, 'nab_sync_workqueue_queue_duration_seconds_count')).toBe(1);
    expect(valueOf(text, 'nab_sync_reconcile_duration_seconds_count{outcome="partial"}')).toBe(1);
    expect(valueOf(text, 'nab_sync_namespaces_pending')).toBe(2);
  });

  test('show backups as they stand now, and no longer as they stood', async () => {
    const text = await rendered((metrics) => {
      metrics.backups([
        { action: 'skip', reason: 'Expired', count: 4 },
        { action: 'none', reason: 'Present', count: 7 },
      ]);
      metrics.backups([{ action: 'none', reason: 'Present', count: 8 }]);
    });
    expect(valueOf(text, 'nab_sync_backups{action="skip",reason="Expired"}')).toBe(0);
    expect(valueOf(text, 'nab_sync_backups{action="none",reason="Present"}')).toBe(8);
  });

  test('show how sync requests were answered', async () => {
    const text = await rendered((metrics) => {
      metrics.requestAnswered('Partial', 2);
    });
    expect(valueOf(text, 'nab_sync_sync_request_duration_seconds_sum{phase="Partial"}')).toBe(2);
    expect(valueOf(text, 'nab_sync_sync_request_duration_seconds_count{phase="Failed"}')).toBe(0);
  });

  test('show how the passes went, and what never happened as 0', async () => {
    const text = await rendered((metrics) => {
      metrics.passStarted(2_000_000);
      metrics.passEnded('partial', 1.5);
      metrics.passHistory({ lastFailure: 2_001_500, consecutiveFailures: 2 });
    });
    expect(valueOf(text, 'nab_sync_last_attempt_timestamp_seconds')).toBe(2_000);
    expect(valueOf(text, 'nab_sync_last_success_timestamp_seconds')).toBe(0);
    expect(valueOf(text, 'nab_sync_last_failure_timestamp_seconds')).toBe(2_001.5);
    expect(valueOf(text, 'nab_sync_consecutive_failures')).toBe(2);
    expect(valueOf(text, 'nab_sync_pass_duration_seconds_sum{outcome="partial"}')).toBe(1.5);
  });

  test('show the phase that a watch is in, the others at 0', async () => {
    const text = await rendered((metrics) => {
      metrics.reflector('namespaces', 'syncing', 5_000);
      metrics.reflector('namespaces', 'live', 6_000);
    });
    expect(valueOf(text, 'nab_sync_reflector_phase{resource="namespaces",phase="live"}')).toBe(1);
    expect(valueOf(text, 'nab_sync_reflector_phase{resource="namespaces",phase="syncing"}')).toBe(0);
    expect(valueOf(text, 'nab_sync_reflector_phase_timestamp_seconds{resource="namespaces"}')).toBe(6);
  });

  test('show requests by verb, resource and what came of them', async () => {
    const text = await rendered(({ request }) => {
      // As KubeClient calls it: without its object.
      request({ verb: 'create', resource: 'backups.velero.io', code: 'Forbidden', status: 403, seconds: 0.01 });
    });
    const labels = 'verb="create",resource="backups.velero.io"';
    expect(valueOf(text, `nab_sync_requests_total{${labels},code="Forbidden"}`)).toBe(1);
    expect(valueOf(text, `nab_sync_request_duration_seconds_count{${labels}}`)).toBe(1);
  });

  test('show leadership, and the settings in force with their sources', async () => {
    const settings = resolveSettings(
      { concurrency: '4' },
      { environment: { LOG_LEVEL: 'warn' }, stderrIsTerminal: false, exists: () => false, read: () => undefined },
    );
    const text = await rendered((metrics) => {
      metrics.leader(true);
      metrics.settings(settings);
      metrics.periods({
        period: { periodMs: 90_000, source: 'dpa' },
        others: { location: { name: 'default', periodMs: 60_000 }, collectionMs: 3_600_000 },
        warnings: [{ code: 'SeveralDpas', message: '', next: '' }],
      });
    });
    expect(valueOf(text, 'nab_sync_leader')).toBe(1);
    expect(valueOf(text, 'nab_sync_sync_period_seconds')).toBe(90);
    expect(valueOf(text, 'nab_sync_storage_location_sync_period_seconds')).toBe(60);
    expect(valueOf(text, 'nab_sync_garbage_collection_period_seconds')).toBe(3_600);
    const source = (setting: string, from: string): number =>
      valueOf(text, `nab_sync_setting_source{setting="${setting}",source="${from}"}`);
    expect([source('concurrency', 'flag'), source('concurrency', 'default')]).toEqual([1, 0]);
    expect([source('log-level', 'environment'), source('log-format', 'default')]).toEqual([1, 1]);
    expect([source('sync-period', 'dpa'), source('sync-period', 'default')]).toEqual([1, 0]);
    expect(valueOf(text, 'nab_sync_settings_warning{warning="SeveralDpas"}')).toBe(1);
    expect(valueOf(text, 'nab_sync_settings_warning{warning="IntervalOff"}')).toBe(0);
  });

  test('of two instances do not meet', async () => {
    const one = createPrometheusMetrics({ version: '1', watched, requests });
    const two = createPrometheusMetrics({ version: '1', watched, requests });
    one.metrics.created();
    expect(valueOf(await two.render(), 'nab_sync_created_total')).toBe(0);
  });
});

test('every metric of ours follows Prometheus’ naming rules and never has a namespace or a name as a label', async () => {
  const text = await rendered((metrics) => {
    metrics.request({ verb: 'get', resource: 'namespaces', code: 'OK', status: 200, seconds: 1 });
  });
  const types = [...text.matchAll(/^# TYPE (nab_sync_\w+) (\w+)$/gm)].map(([, name = '', type = '']) => ({
    name,
    type,
  }));
  expect(types.length).toBeGreaterThan(15);
  for (const { name, type } of types) {
    expect(name).toMatch(/^[a-z_]+$/);
    expect(text).toMatch(new RegExp(`^# HELP ${name} [A-Z01].*\\.$`, 'm'));
    if (type === 'counter') expect(name).toMatch(/_total$/);
    else expect(name).not.toMatch(/_total$/);
    if (type === 'histogram') expect(name).toMatch(/_seconds$/);
  }
  const labels = new Set([...text.matchAll(/(?<=^nab_sync_.*[{,])(\w+)(?==")/gm)].map(([label]) => label));
  const known = ['action', 'code', 'le', 'node_version', 'outcome', 'phase', 'reason', 'resource', 'setting', 'source'];
  expect([...labels].sort()).toEqual([...known, 'verb', 'version', 'warning']);
});

test('without anybody to tell, every call is taken and ignored', () => {
  noMetrics.decisions([{ action: 'create', reason: 'Missing', count: 1 }]);
  noMetrics.request({ verb: 'get', resource: 'x', code: 'OK', status: 200, seconds: 1 });
  expect(Object.keys(noMetrics).sort()).toEqual(
    Object.keys(createPrometheusMetrics({ version: '', watched: [], requests: [] }).metrics).sort(),
  );
});
