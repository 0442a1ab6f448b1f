import * as z from 'zod';
import { LabelSelectorError, parseLabelSelector, type LabelSelector } from '../kube/label-selector.ts';
import { isDnsLabel, isDnsSubdomain } from '../oadp/names.ts';
import { quoted } from '../oadp/printable.ts';
import { formatAddress, parseAddress, type Address } from './address.ts';
import { DurationError, formatDuration, parseDuration } from './duration.ts';
import { flags, type FlagName, type FlagSpec, type FlagValues } from './flags.ts';
import { podNamespace, type Host } from './host.ts';
import { SettingsError } from './settings-error.ts';
import { parseSyncPeriod } from './sync-period.ts';

export const sources = ['flag', 'environment', 'dpa', 'default'] as const;
export type Source = (typeof sources)[number];

/** A value in force and where it came from. */
export interface Setting<T> {
  readonly value: T;
  readonly source: Source;
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof logLevels)[number];

const logFormats = ['json', 'pretty'] as const;
export type LogFormat = (typeof logFormats)[number];

/** Everything that flags and environment settle, checked once at start. What the DPA adds: see dpa.ts. */
export interface Settings {
  readonly oadpNamespace: Setting<string>;
  /** Milliseconds, 0 = no interval; undefined = neither flag nor environment gives it (see `effectiveSyncPeriod`). */
  readonly syncPeriod: Setting<number | undefined>;
  /** Undefined = in-cluster, else ~/.kube/config. */
  readonly kubeconfig: Setting<string | undefined>;
  readonly context: Setting<string | undefined>;
  readonly concurrency: Setting<number>;
  /** The defaults and what was added; `*` stands for any run of characters. */
  readonly protectedNamespaces: Setting<readonly string[]>;
  readonly namespaceSelector: Setting<LabelSelector>;
  readonly storageLocations: Setting<readonly string[]>;
  readonly leaderElect: Setting<boolean>;
  /** Undefined = switched off. */
  readonly metricsAddress: Setting<Address | undefined>;
  readonly healthAddress: Setting<Address | undefined>;
  /** Successes, and others, that are kept of the sync requests of a namespace. */
  readonly requestHistory: Setting<number>;
  /** Milliseconds, 0 = no limit. */
  readonly requestTtl: Setting<number>;
  /** Undefined = HTTP. */
  readonly metricsTlsDirectory: Setting<string | undefined>;
  /** Undefined = nowhere. */
  readonly terminationLog: Setting<string | undefined>;
  readonly logLevel: Setting<LogLevel>;
  readonly logFormat: Setting<LogFormat>;
}

/** Namespaces of the platform, which no tenant owns. */
const defaultProtectedNamespaces: readonly string[] = ['kube-*', 'openshift-*', 'openshift'];

const defaultRequestTtlMs = 24 * 3600 * 1000;

/** Where Kubernetes looks for a container's last words unless the pod says otherwise. */
export const defaultTerminationLog = '/dev/termination-log';

/** A schema from a parser; an error of one of the expected classes becomes the field's problem, any other is a bug. */
function parsed<T>(parse: (text: string) => T) {
  return z.string().transform((text, context): T => {
    try {
      return parse(text);
    } catch (error) {
      if (!(error instanceof DurationError || error instanceof LabelSelectorError)) throw error;
      context.addIssue({ code: 'custom', message: error.message, input: text });
      return z.NEVER;
    }
  });
}

const dnsLabel = z.string().refine(isDnsLabel, {
  error: 'expected a namespace (lower-case letters, digits and dashes, at most 63)',
});

const dnsSubdomain = z.string().refine(isDnsSubdomain, {
  error: 'expected the name of a BackupStorageLocation (lower-case letters, digits, dashes and dots)',
});

const namespacePattern = z.string().refine((text) => /^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$/.test(text), {
  error: 'expected a namespace or a pattern such as team-* (lower-case letters, digits, dashes and *)',
});

const wholeNumber = z
  .string()
  .refine((text) => /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= 256, {
    error: 'expected a whole number from 1 to 256',
  })
  .transform(Number);

/** What Go's ParseBool takes, since other controllers' variables are read so. */
const switchWords: Readonly<Record<string, boolean>> = {
  true: true,
  t: true,
  1: true,
  false: false,
  f: false,
  0: false,
};

const onOrOff = z
  .string()
  .refine((text) => Object.hasOwn(switchWords, text.toLowerCase()), { error: 'expected true or false' })
  .transform((text) => switchWords[text.toLowerCase()] === true);

/** In a wrapper, since undefined alone would mean that nothing was given. */
const address = z.string().transform((text, context): { readonly at: Address | undefined } => {
  if (text === '0') return { at: undefined };
  const at = parseAddress(text);
  if (at !== undefined) return { at };
  context.addIssue({ code: 'custom', message: 'expected host:port, :port, or 0 to switch it off', input: text });
  return z.NEVER;
});

const nonEmpty = (what: string) => z.string().min(1, { error: `expected ${what}` });

const schema = z.object({
  'oadp-namespace': dnsLabel.optional(),
  'sync-period': parsed(parseSyncPeriod).optional(),
  kubeconfig: nonEmpty('the path of a kubeconfig file').optional(),
  context: nonEmpty('the name of a context').optional(),
  concurrency: wholeNumber.optional(),
  'protected-namespace': z.array(namespacePattern).optional(),
  'namespace-selector': parsed(parseLabelSelector).optional(),
  'storage-location': z.array(dnsSubdomain).optional(),
  'leader-elect': onOrOff.optional(),
  'metrics-address': address.optional(),
  'metrics-tls-directory': nonEmpty('the path of a directory').optional(),
  'health-address': address.optional(),
  'request-history': wholeNumber.optional(),
  'request-ttl': parsed(parseDuration).optional(),
  'termination-log': nonEmpty('the path of a file').optional(),
  'log-level': z.enum(logLevels, { error: `expected one of ${logLevels.join(', ')}` }).optional(),
  'log-format': z.enum(logFormats, { error: `expected one of ${logFormats.join(', ')}` }).optional(),
} satisfies Record<FlagName, z.ZodType>);

/** A setting's text before it is checked, and whose text it is. */
interface Given {
  readonly text: string | readonly string[];
  readonly source: 'flag' | 'environment';
  /** `--sync-period`, or `SYNC_PERIOD`, as an error names it. */
  readonly label: string;
}

function splitList(texts: readonly string[]): string[] {
  return texts.flatMap((text) => text.split(',')).flatMap((part) => (part.trim() === '' ? [] : [part.trim()]));
}

function given(spec: FlagSpec & { readonly name: FlagName }, values: FlagValues, host: Host): Given | undefined {
  const value = values[spec.name];
  if (value !== undefined) {
    const label = `--${spec.name}`;
    if (spec.repeatable === true) {
      return { text: splitList([value].flat().map(String)), source: 'flag', label };
    }
    return { text: String(value), source: 'flag', label };
  }
  // An empty variable is one that is not set: a manifest cannot leave out a variable that a template wrote down.
  const text = spec.environment === undefined ? '' : (host.environment[spec.environment] ?? '').trim();
  if (spec.environment === undefined || text === '') return undefined;
  const label = `environment variable ${spec.environment}`;
  return { text: spec.repeatable === true ? splitList([text]) : text, source: 'environment', label };
}

/**
 * Flag over environment over default, each checked. Throws SettingsError that lists every problem, so that a manifest with
 * three mistakes takes one restart to mend and not three.
 */
export function resolveSettings(values: FlagValues, host: Host): Settings {
  const givens = new Map<string, Given>();
  for (const spec of flags) {
    const found = given(spec, values, host);
    if (found !== undefined) givens.set(spec.name, found);
  }
  const texts = Object.fromEntries([...givens].map(([name, { text }]) => [name, text]));
  const result = schema.safeParse(texts, { reportInput: true });
  if (!result.success) {
    throw new SettingsError(
      result.error.issues.map((issue) => {
        const label = givens.get(String(issue.path[0]))?.label ?? String(issue.path[0]);
        return `${label}: ${issue.message}, got ${quoted(issue.input, 80)}`;
      }),
    );
  }
  const checked = result.data;

  function settle<T, D>(name: FlagName, value: T | undefined, fallback: () => D): Setting<T | D> {
    const source = givens.get(name)?.source;
    if (value === undefined || source === undefined) return { value: fallback(), source: 'default' };
    return { value, source };
  }
  const nothing = () => undefined;
  const loopback = (port: number) => () => ({ at: { host: '127.0.0.1', port } });
  const unwrap = ({ value, source }: Setting<{ readonly at: Address | undefined }>) => ({ value: value.at, source });

  const kubeconfig = settle('kubeconfig', checked.kubeconfig, nothing);
  return {
    // With a kubeconfig the cluster may be another one, where the pod's namespace means nothing.
    oadpNamespace: settle(
      'oadp-namespace',
      checked['oadp-namespace'],
      () => (kubeconfig.value === undefined ? podNamespace(host) : undefined) ?? 'openshift-adp',
    ),
    syncPeriod: settle('sync-period', checked['sync-period'], nothing),
    kubeconfig,
    context: settle('context', checked.context, nothing),
    concurrency: settle('concurrency', checked.concurrency, () => 16),
    protectedNamespaces: settle(
      'protected-namespace',
      checked['protected-namespace'] && [
        ...new Set([...defaultProtectedNamespaces, ...checked['protected-namespace']]),
      ],
      () => defaultProtectedNamespaces,
    ),
    namespaceSelector: settle('namespace-selector', checked['namespace-selector'], () => parseLabelSelector('')),
    storageLocations: settle('storage-location', checked['storage-location'], () => []),
    leaderElect: settle('leader-elect', checked['leader-elect'], () => true),
    metricsAddress: unwrap(settle('metrics-address', checked['metrics-address'], loopback(8080))),
    metricsTlsDirectory: settle('metrics-tls-directory', checked['metrics-tls-directory'], nothing),
    healthAddress: unwrap(settle('health-address', checked['health-address'], loopback(8081))),
    requestHistory: settle('request-history', checked['request-history'], () => 3),
    requestTtl: settle('request-ttl', checked['request-ttl'], () => defaultRequestTtlMs),
    terminationLog: settle('termination-log', checked['termination-log'], () =>
      host.exists(defaultTerminationLog) ? defaultTerminationLog : undefined,
    ),
    logLevel: settle('log-level', checked['log-level'], () => 'info'),
    logFormat: settle('log-format', checked['log-format'], () => (host.stderrIsTerminal ? 'pretty' : 'json')),
  };
}

/** The settings by flag name, for the log: each value as its flag would take it, and its source. */
export function describeSettings(settings: Settings): Readonly<Record<FlagName, Setting<string>>> {
  function show<T>(
    { value, source }: Setting<T>,
    write: (value: NonNullable<T>) => string,
    unset = '',
  ): Setting<string> {
    return { value: value === undefined || value === null ? unset : write(value), source };
  }
  const list = (values: readonly string[]) => values.join(',');
  return {
    'oadp-namespace': show(settings.oadpNamespace, String),
    'sync-period': show(settings.syncPeriod, formatDuration),
    kubeconfig: show(settings.kubeconfig, String),
    context: show(settings.context, String),
    concurrency: show(settings.concurrency, String),
    'protected-namespace': show(settings.protectedNamespaces, list),
    'namespace-selector': show(settings.namespaceSelector, ({ text }) => text),
    'storage-location': show(settings.storageLocations, list),
    'leader-elect': show(settings.leaderElect, String),
    'metrics-address': show(settings.metricsAddress, formatAddress, '0'),
    'metrics-tls-directory': show(settings.metricsTlsDirectory, String),
    'health-address': show(settings.healthAddress, formatAddress, '0'),
    'request-history': show(settings.requestHistory, String),
    'request-ttl': show(settings.requestTtl, formatDuration),
    'termination-log': show(settings.terminationLog, String),
    'log-level': show(settings.logLevel, String),
    'log-format': show(settings.logFormat, String),
  };
}
