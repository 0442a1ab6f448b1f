import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import type { RequestInfo } from '../kube/client.ts';
import type { ReflectorPhase } from '../kube/reflector.ts';
import { finalPhases } from '../requests/sync-request.ts';
import { flags } from '../settings/flags.ts';
import { settingsWarnings } from '../settings/settings-warning.ts';
import { describeSettings, sources } from '../settings/settings.ts';
import { actionOf, failureReasons, type Action, type DecisionReason } from '../sync/reasons.ts';
import { passOutcomes, type Metrics } from './metrics.ts';

export interface PrometheusOptions {
  /** nab-sync's own version. */
  readonly version: string;
  /** The kinds that are watched (`backups.velero.io`), so that each has its series before its first event. */
  readonly watched: readonly string[];
  /** What is asked of the API server, for the same reason. */
  readonly requests: readonly Pick<RequestInfo, 'verb' | 'resource'>[];
}

/** Metrics and the page that shows them. */
export interface PrometheusMetrics {
  readonly metrics: Metrics;
  readonly contentType: string;
  /** The text exposition format, process and Node metrics included. */
  render(): Promise<string>;
}

/** Every phase, held complete by its type. */
const reflectorPhases = Object.keys({
  syncing: true,
  live: true,
  offline: true,
  kindNotInstalled: true,
  forbidden: true,
  stopped: true,
} satisfies Record<ReflectorPhase, true>);

/** Everything that can come of a request, held complete by its type. */
const requestCodes = Object.keys({
  OK: true,
  Timeout: true,
  Unreachable: true,
  Unauthorized: true,
  Forbidden: true,
  NotFound: true,
  NamespaceNotFound: true,
  NamespaceTerminating: true,
  KindNotInstalled: true,
  AlreadyExists: true,
  Conflict: true,
  Gone: true,
  TooLarge: true,
  Invalid: true,
  BadRequest: true,
  Throttled: true,
  ServerError: true,
  Malformed: true,
  Aborted: true,
} satisfies Record<RequestInfo['code'], true>);

/** From one request's time to that of a pass over everything. */
const durations = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** Up to the deadline of a list. Few, since they are multiplied by verb and resource. */
const requestDurations = [0.005, 0.02, 0.1, 0.5, 1, 5, 30];

/** A registry of its own, so that two in one process (tests) do not meet. */
export function createPrometheusMetrics({ version, watched, requests }: PrometheusOptions): PrometheusMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });

  const counter = <L extends string = never>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter<L>({ name: `nab_sync_${name}`, help, labelNames, registers });
  const gauge = <L extends string = never>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge<L>({ name: `nab_sync_${name}`, help, labelNames, registers });
  const histogram = <L extends string = never>(
    name: string,
    help: string,
    labelNames: readonly L[] = [],
    buckets = durations,
  ) => new Histogram<L>({ name: `nab_sync_${name}`, help, labelNames, buckets, registers });

  const decided = counter('decisions_total', 'Decisions about a backup, by action and reason.', ['action', 'reason']);
  const backups = gauge('backups', 'Labelled backups by their latest decision.', ['action', 'reason']);
  const created = counter('created_total', 'NonAdminBackups created.');
  const repaired = counter('repaired_total', 'NonAdminBackups whose status was written anew.');
  const failures = counter('failures_total', 'Writes that did not succeed, by reason.', ['reason']);
  const requestAnswers = histogram(
    'sync_request_duration_seconds',
    'From the time when a NonAdminBackupSyncRequest was taken up to its answer, by phase.',
    ['phase'],
  );
  const namespacesPending = gauge('namespaces_pending', 'Namespaces that the pass under way has still to look at.');
  const passes = histogram('pass_duration_seconds', 'Duration of a pass over all namespaces, by outcome.', ['outcome']);
  const reconciles = histogram('reconcile_duration_seconds', 'Duration of the work on one namespace, by outcome.', [
    'outcome',
  ]);
  const lastAttempt = gauge('last_attempt_timestamp_seconds', 'When the last pass began; 0 = never.');
  const lastSuccess = gauge('last_success_timestamp_seconds', 'When a pass last ended without a failure; 0 = never.');
  const lastFailure = gauge('last_failure_timestamp_seconds', 'When a pass last ended with a failure; 0 = never.');
  const consecutiveFailures = gauge('consecutive_failures', 'Passes with a failure since the last one without.');
  const depth = gauge('workqueue_depth', 'Namespaces that wait for their turn.');
  const adds = counter('workqueue_adds_total', 'Namespaces put into the queue.');
  const retries = counter('workqueue_retries_total', 'Namespaces put into the queue again after a failure.');
  const waits = histogram('workqueue_queue_duration_seconds', 'How long a namespace waited for its turn.');
  const asked = counter(
    'requests_total',
    'Requests to the API server, by verb, resource and what came of it (OK, or the error).',
    ['verb', 'resource', 'code'],
  );
  const askedFor = histogram(
    'request_duration_seconds',
    'Duration of requests to the API server, by verb and resource; of a watch, until its answer began; a streamed list counts as a list.',
    ['verb', 'resource'],
    requestDurations,
  );
  const phases = gauge('reflector_phase', 'State of the watch on a kind: 1 for the phase that it is in.', [
    'resource',
    'phase',
  ]);
  const phaseSince = gauge('reflector_phase_timestamp_seconds', 'Since when the watch on a kind is in its phase.', [
    'resource',
  ]);
  const concurrencyLimit = gauge(
    'concurrency_limit',
    'How many requests of passes may be in flight at once, as the API server bears it.',
  );
  const leader = gauge('leader', '1 = this process holds the Lease, or needs none.');
  const syncPeriod = gauge('sync_period_seconds', 'The interval in force between two passes; 0 = none.');
  const locationPeriod = gauge(
    'storage_location_sync_period_seconds',
    'How often Velero reads the storage location of the admin that it reads least often; 0 = never, or none.',
  );
  const collectionPeriod = gauge(
    'garbage_collection_period_seconds',
    'How often the non-admin controller deletes Velero Backups without a NonAdminBackup; 0 = never.',
  );
  const settingSource = gauge('setting_source', 'Where a setting comes from: 1 for the source in force.', [
    'setting',
    'source',
  ]);
  const settingsWarning = gauge(
    'settings_warning',
    '1 = the settings do not fit together; the log says what to change.',
    ['warning'],
  );
  gauge('build_info', 'Always 1; the version is in the labels.', ['version', 'node_version']).set(
    { version, node_version: process.versions.node },
    1,
  );

  // A series that is missing until something first happens hides its first increase.
  for (const [reason, action] of Object.entries(actionOf)) {
    decided.inc({ action, reason }, 0);
    backups.set({ action, reason }, 0);
  }
  for (const reason of failureReasons) failures.inc({ reason }, 0);
  for (const outcome of passOutcomes) {
    passes.zero({ outcome });
    reconciles.zero({ outcome });
  }
  for (const phase of finalPhases) requestAnswers.zero({ phase });
  for (const { verb, resource } of requests) {
    askedFor.zero({ verb, resource });
    for (const code of requestCodes) asked.inc({ verb, resource, code }, 0);
  }
  for (const warning of settingsWarnings) settingsWarning.set({ warning }, 0);
  const setSource = (setting: string, inForce: string): void => {
    for (const source of sources) settingSource.set({ setting, source }, source === inForce ? 1 : 0);
  };
  for (const { name } of flags) setSource(name, '');
  for (const resource of watched) {
    for (const phase of reflectorPhases) phases.set({ resource, phase }, 0);
    phaseSince.set({ resource }, 0);
  }
  // Series that are not zero now, to be zeroed when the next count leaves them out.
  let counted: { readonly action: Action; readonly reason: DecisionReason }[] = [];

  const metrics: Metrics = {
    decisions(counts) {
      for (const { action, reason, count } of counts) decided.inc({ action, reason }, count);
    },
    backups(counts) {
      for (const labels of counted) backups.set(labels, 0);
      counted = [];
      for (const { action, reason, count } of counts) {
        backups.set({ action, reason }, count);
        counted.push({ action, reason });
      }
    },
    created() {
      created.inc();
    },
    repaired() {
      repaired.inc();
    },
    failure(reason) {
      failures.inc({ reason });
    },
    requestAnswered(phase, seconds) {
      requestAnswers.observe({ phase }, seconds);
    },
    namespacesPending(count) {
      namespacesPending.set(count);
    },
    passStarted(now) {
      lastAttempt.set(now / 1_000);
    },
    passEnded(outcome, seconds) {
      passes.observe({ outcome }, seconds);
    },
    passHistory(history) {
      lastSuccess.set((history.lastSuccess ?? 0) / 1_000);
      lastFailure.set((history.lastFailure ?? 0) / 1_000);
      consecutiveFailures.set(history.consecutiveFailures);
    },
    queueAdded() {
      adds.inc();
    },
    queueRetried() {
      retries.inc();
    },
    queueDepth(count) {
      depth.set(count);
    },
    queueWaited(seconds) {
      waits.observe(seconds);
    },
    reconciled(outcome, seconds) {
      reconciles.observe({ outcome }, seconds);
    },
    request({ verb, resource, code, seconds }) {
      asked.inc({ verb, resource, code });
      askedFor.observe({ verb, resource }, seconds);
    },
    reflector(resource, phase, since) {
      for (const each of reflectorPhases) phases.set({ resource, phase: each }, each === phase ? 1 : 0);
      phaseSince.set({ resource }, since / 1_000);
    },
    concurrencyLimit(requests) {
      concurrencyLimit.set(requests);
    },
    leader(leading) {
      leader.set(leading ? 1 : 0);
    },
    settings(settings) {
      for (const [setting, { source }] of Object.entries(describeSettings(settings))) setSource(setting, source);
    },
    periods({ period, others, warnings }) {
      syncPeriod.set(period.periodMs / 1_000);
      setSource('sync-period', period.source);
      locationPeriod.set((others.location?.periodMs ?? 0) / 1_000);
      collectionPeriod.set(others.collectionMs / 1_000);
      const present = new Set<string>(warnings.map(({ code }) => code));
      for (const warning of settingsWarnings) settingsWarning.set({ warning }, present.has(warning) ? 1 : 0);
    },
  };
  return { metrics, contentType: registry.contentType, render: () => registry.metrics() };
}
