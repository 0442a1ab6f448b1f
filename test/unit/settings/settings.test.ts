import { describe, expect, test } from 'vitest';
import { flags, type FlagValues } from '../../../src/settings/flags.ts';
import type { Host } from '../../../src/settings/host.ts';
import { SettingsError } from '../../../src/settings/settings-error.ts';
import { describeSettings, resolveSettings } from '../../../src/settings/settings.ts';

function host(environment: Record<string, string> = {}, files: Record<string, string> = {}, terminal = false): Host {
  return {
    environment,
    stderrIsTerminal: terminal,
    exists: (path) => path in files,
    read: (path) => files[path],
  };
}

function problems(values: FlagValues, environment: Record<string, string> = {}): readonly string[] {
  try {
    resolveSettings(values, host(environment));
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  throw new Error('the settings were accepted');
}

const podFiles = { '/var/run/secrets/kubernetes.io/serviceaccount/namespace': 'oadp-two\n' };

describe('without flags and variables', () => {
  test('every setting has its documented default, and says so', () => {
    const settings = resolveSettings({}, host());
    expect(settings.namespaceSelector.value.text).toBe('');
    const { namespaceSelector: _, ...others } = settings;
    expect(others).toEqual({
      oadpNamespace: { value: 'openshift-adp', source: 'default' },
      syncPeriod: { value: undefined, source: 'default' },
      kubeconfig: { value: undefined, source: 'default' },
      context: { value: undefined, source: 'default' },
      concurrency: { value: 16, source: 'default' },
      protectedNamespaces: { value: ['kube-*', 'openshift-*', 'openshift'], source: 'default' },
      storageLocations: { value: [], source: 'default' },
      leaderElect: { value: true, source: 'default' },
      metricsAddress: { value: { host: '127.0.0.1', port: 8080 }, source: 'default' },
      healthAddress: { value: { host: '127.0.0.1', port: 8081 }, source: 'default' },
      requestHistory: { value: 3, source: 'default' },
      requestTtl: { value: 24 * 3600 * 1000, source: 'default' },
      metricsTlsDirectory: { value: undefined, source: 'default' },
      terminationLog: { value: undefined, source: 'default' },
      logLevel: { value: 'info', source: 'default' },
      logFormat: { value: 'json', source: 'default' },
    });
  });

  test('logs are pretty when stderr is a terminal', () => {
    expect(resolveSettings({}, host({}, {}, true)).logFormat.value).toBe('pretty');
  });

  test('in a cluster the OADP namespace is the one of the pod', () => {
    const inPod = host({ KUBERNETES_SERVICE_HOST: '10.0.0.1' }, podFiles);
    expect(resolveSettings({}, inPod).oadpNamespace).toEqual({ value: 'oadp-two', source: 'default' });
  });

  test('a left-over service account file outside a cluster means nothing', () => {
    expect(resolveSettings({}, host({}, podFiles)).oadpNamespace.value).toBe('openshift-adp');
  });

  test('in a pod with a kubeconfig of its own, the pod’s namespace means nothing', () => {
    const inPod = host({ KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBECONFIG: '/etc/other' }, podFiles);
    expect(resolveSettings({}, inPod).oadpNamespace.value).toBe('openshift-adp');
  });

  test('the termination log is written where Kubernetes mounts one', () => {
    const inPod = host({}, { '/dev/termination-log': '' });
    expect(resolveSettings({}, inPod).terminationLog).toEqual({ value: '/dev/termination-log', source: 'default' });
  });
});

describe('of a flag and its variable', () => {
  test('the flag wins', () => {
    const { syncPeriod } = resolveSettings({ 'sync-period': '90s' }, host({ SYNC_PERIOD: '5m' }));
    expect(syncPeriod).toEqual({ value: 90_000, source: 'flag' });
  });

  test('the variable wins over the default', () => {
    expect(resolveSettings({}, host({ SYNC_PERIOD: '0' })).syncPeriod).toEqual({ value: 0, source: 'environment' });
  });

  test('an empty variable is one that is not set', () => {
    const settings = resolveSettings({}, host({ SYNC_PERIOD: '', LEADER_ELECT: ' ', PROTECTED_NAMESPACES: '' }));
    expect(settings.syncPeriod.source).toBe('default');
    expect(settings.leaderElect).toEqual({ value: true, source: 'default' });
    expect(settings.protectedNamespaces.source).toBe('default');
  });

  test.each(['false', 'False', 'F', '0'])('LEADER_ELECT=%s switches it off', (text) => {
    expect(resolveSettings({}, host({ LEADER_ELECT: text })).leaderElect.value).toBe(false);
  });

  test('--leader-elect overrules LEADER_ELECT=false', () => {
    const { leaderElect } = resolveSettings({ 'leader-elect': true }, host({ LEADER_ELECT: 'false' }));
    expect(leaderElect).toEqual({ value: true, source: 'flag' });
  });

  test('every variable of the table is read', () => {
    const environment = {
      WATCH_NAMESPACE: 'oadp',
      SYNC_PERIOD: '1m',
      KUBECONFIG: '/a:/b',
      CONCURRENCY: '4',
      PROTECTED_NAMESPACES: 'infra-*',
      NAMESPACE_SELECTOR: 'team',
      STORAGE_LOCATIONS: 'old',
      LEADER_ELECT: 'false',
      METRICS_ADDRESS: ':9090',
      METRICS_TLS_DIRECTORY: '/tls',
      HEALTH_ADDRESS: '0',
      REQUEST_HISTORY: '5',
      REQUEST_TTL: '1h',
      TERMINATION_LOG: '/tmp/why',
      LOG_LEVEL: 'debug',
      LOG_FORMAT: 'pretty',
    };
    const variables = flags.flatMap((flag) => ('environment' in flag ? [flag.environment] : []));
    expect(Object.keys(environment)).toEqual(variables);
    const described = describeSettings(resolveSettings({}, host(environment)));
    const { context, ...others } = described;
    expect(context.source).toBe('default');
    for (const setting of Object.values(others)) expect(setting.source).toBe('environment');
  });
});

describe('a list', () => {
  test('is comma-separated in its variable, spaces and empty parts left out', () => {
    const { storageLocations } = resolveSettings({}, host({ STORAGE_LOCATIONS: 'old, older,,' }));
    expect(storageLocations.value).toEqual(['old', 'older']);
  });

  test('may be given by repeating its flag, which replaces the variable', () => {
    const values = { 'storage-location': ['a', 'b,c'] };
    const { storageLocations } = resolveSettings(values, host({ STORAGE_LOCATIONS: 'old' }));
    expect(storageLocations).toEqual({ value: ['a', 'b', 'c'], source: 'flag' });
  });

  test('of protected namespaces adds to the defaults, each once', () => {
    const { protectedNamespaces } = resolveSettings(
      { 'protected-namespace': ['infra-*', 'kube-*', 'infra-*'] },
      host(),
    );
    expect(protectedNamespaces.value).toEqual(['kube-*', 'openshift-*', 'openshift', 'infra-*']);
  });
});

describe('an address', () => {
  test.each([
    ['0.0.0.0:8080', { host: '0.0.0.0', port: 8080 }],
    [':8080', { host: undefined, port: 8080 }],
    ['[::1]:0', { host: '::1', port: 0 }],
    ['localhost:65535', { host: 'localhost', port: 65_535 }],
    ['0', undefined],
  ])('%s is taken', (text, address) => {
    expect(resolveSettings({ 'metrics-address': text }, host()).metricsAddress).toEqual({
      value: address,
      source: 'flag',
    });
  });

  test.each([
    '8080',
    'a:b',
    '127.0.0.1',
    '127.0.0.1:',
    '127.0.0.1:65536',
    '300.1.1.1:80',
    '::1:80',
    '[x]:80',
    'a b:80',
    '',
  ])('%j is refused', (text) => {
    expect(problems({ 'health-address': text })).toEqual([
      `--health-address: expected host:port, :port, or 0 to switch it off, got ${JSON.stringify(text)}`,
    ]);
  });
});

describe('a value that cannot be used is one line with its flag or variable, what was expected and what came', () => {
  test.each<[FlagValues, Record<string, string>, string]>([
    [{ 'sync-period': '-1m' }, {}, '--sync-period: expected a duration that is not negative, got "-1m"'],
    [
      {},
      { SYNC_PERIOD: '2 minutes' },
      'environment variable SYNC_PERIOD: expected a duration such as 90s, 2m or 1h30m (units: ms, s, m, h), got "2 minutes"',
    ],
    [{ 'sync-period': '1ns' }, {}, '--sync-period: expected 0 or a duration from 100ms to 596h31m23.647s, got "1ns"'],
    [{ 'sync-period': '600h' }, {}, '--sync-period: expected 0 or a duration from 100ms to 596h31m23.647s, got "600h"'],
    [{ concurrency: '0' }, {}, '--concurrency: expected a whole number from 1 to 256, got "0"'],
    [{ concurrency: '257' }, {}, '--concurrency: expected a whole number from 1 to 256, got "257"'],
    [{ concurrency: '1.5' }, {}, '--concurrency: expected a whole number from 1 to 256, got "1.5"'],
    [{ concurrency: '1e1' }, {}, '--concurrency: expected a whole number from 1 to 256, got "1e1"'],
    [
      {},
      { WATCH_NAMESPACE: 'a,b' },
      'environment variable WATCH_NAMESPACE: expected a namespace (lower-case letters, digits and dashes, at most 63), got "a,b"',
    ],
    [
      { 'protected-namespace': ['infra', 'Team_*'] },
      {},
      '--protected-namespace: expected a namespace or a pattern such as team-* (lower-case letters, digits, dashes and *), got "Team_*"',
    ],
    [
      { 'storage-location': ['a/b'] },
      {},
      '--storage-location: expected the name of a BackupStorageLocation (lower-case letters, digits, dashes and dots), got "a/b"',
    ],
    [
      { 'namespace-selector': 'team in prod' },
      {},
      `--namespace-selector: expected '(', found "prod" at character 9, got "team in prod"`,
    ],
    [{}, { LEADER_ELECT: 'maybe' }, 'environment variable LEADER_ELECT: expected true or false, got "maybe"'],
    [{ 'log-level': 'loud' }, {}, '--log-level: expected one of trace, debug, info, warn, error, fatal, got "loud"'],
    [{ 'log-format': 'xml' }, {}, '--log-format: expected one of json, pretty, got "xml"'],
    [{ kubeconfig: '' }, {}, '--kubeconfig: expected the path of a kubeconfig file, got ""'],
  ])('%j %j', (values, environment, message) => {
    expect(problems(values, environment)).toEqual([message]);
  });

  test('and all of them are told at once', () => {
    const all = problems({ concurrency: 'x', 'storage-location': ['A', 'b', 'C'] }, { SYNC_PERIOD: '-1s' });
    expect(all.map((problem) => problem.split(':')[0])).toEqual([
      'environment variable SYNC_PERIOD',
      '--concurrency',
      '--storage-location',
      '--storage-location',
    ]);
  });

  test('with nothing in it that a terminal would act on, and cut', () => {
    const [problem = ''] = problems({ concurrency: `\u001b[31m\n${'9'.repeat(1_000)}` });
    expect(problem).toContain('got "\\u{1b}[31m\\u{a}999');
    expect(problem.length).toBeLessThan(200);
  });
});

test('the description shows each value as its flag would take it', () => {
  const settings = resolveSettings(
    {
      'sync-period': '1h',
      'namespace-selector': 'team in (a)',
      'metrics-address': '0',
      'storage-location': ['a', 'b'],
    },
    host({ HEALTH_ADDRESS: '[::]:8081' }),
  );
  expect(describeSettings(settings)).toMatchObject({
    'sync-period': { value: '1h0m0s', source: 'flag' },
    'namespace-selector': { value: 'team in (a)', source: 'flag' },
    'metrics-address': { value: '0', source: 'flag' },
    'health-address': { value: '[::]:8081', source: 'environment' },
    'storage-location': { value: 'a,b', source: 'flag' },
    'leader-elect': { value: 'true', source: 'default' },
    kubeconfig: { value: '', source: 'default' },
  });
  expect(Object.keys(describeSettings(settings)).sort()).toEqual(flags.map(({ name }) => name).sort());
});
