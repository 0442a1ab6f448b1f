/**
 * The one table of nab-sync's settings: the command line, `--help`, validation and the documentation are all made from it.
 * A flag wins over its environment variable, that over the DPA, that over the default.
 */

export interface FlagSpec {
  /** Without the leading dashes. */
  readonly name: string;
  readonly environment?: string;
  /** What stands for the value in the help text; a flag without one is a switch with a `--no-` form. */
  readonly argument?: string;
  /** May be given several times; its variable, and each value, is a comma-separated list. */
  readonly repeatable?: true;
  /** The default, for people. */
  readonly defaultText: string;
  readonly description: string;
}

export const flags = [
  {
    name: 'oadp-namespace',
    environment: 'WATCH_NAMESPACE',
    argument: 'namespace',
    defaultText: "the pod's own namespace in a cluster, else openshift-adp",
    description: 'namespace of OADP, where Velero keeps its Backups',
  },
  {
    name: 'sync-period',
    environment: 'SYNC_PERIOD',
    argument: 'duration',
    defaultText: "the DPA's spec.nonAdmin.backupSyncPeriod, else 2m",
    description: 'time between two passes, as 90s or 1h30m; 0 = no interval: sync at start and on events only',
  },
  {
    name: 'kubeconfig',
    environment: 'KUBECONFIG',
    argument: 'path',
    defaultText: "the pod's service account in a cluster, else ~/.kube/config",
    description: 'kubeconfig file to reach the cluster with',
  },
  {
    name: 'context',
    argument: 'name',
    defaultText: "the kubeconfig's current context",
    description: 'context of the kubeconfig',
  },
  {
    name: 'concurrency',
    environment: 'CONCURRENCY',
    argument: 'number',
    defaultText: '16',
    description: 'how many requests of the sync itself are under way at once, 1 to 256',
  },
  {
    name: 'protected-namespace',
    environment: 'PROTECTED_NAMESPACES',
    argument: 'pattern',
    repeatable: true,
    defaultText: 'kube-*, openshift-*, openshift',
    description: 'namespaces that never get a NonAdminBackup; * stands for any characters; adds to the defaults',
  },
  {
    name: 'namespace-selector',
    environment: 'NAMESPACE_SELECTOR',
    argument: 'selector',
    defaultText: 'every namespace',
    description: 'label selector of the namespaces to sync into, as for kubectl -l',
  },
  {
    name: 'storage-location',
    environment: 'STORAGE_LOCATIONS',
    argument: 'name',
    repeatable: true,
    defaultText: "the default BackupStorageLocations and the tenants' own",
    description: 'a further BackupStorageLocation whose backups count',
  },
  {
    name: 'leader-elect',
    environment: 'LEADER_ELECT',
    defaultText: 'on',
    description: 'take the Lease before writing anything (run and once)',
  },
  {
    name: 'metrics-address',
    environment: 'METRICS_ADDRESS',
    argument: 'host:port',
    defaultText: '127.0.0.1:8080',
    description: 'where run serves /metrics; port 0 = a free one, no host = all interfaces, 0 = off',
  },
  {
    name: 'metrics-tls-directory',
    environment: 'METRICS_TLS_DIRECTORY',
    argument: 'path',
    defaultText: 'none: HTTP',
    description: 'directory with tls.crt and tls.key: /metrics is served with them, and with what they change to',
  },
  {
    name: 'health-address',
    environment: 'HEALTH_ADDRESS',
    argument: 'host:port',
    defaultText: '127.0.0.1:8081',
    description: 'where run serves /livez and /readyz; as --metrics-address, and may be the same',
  },
  {
    name: 'request-history',
    environment: 'REQUEST_HISTORY',
    argument: 'number',
    defaultText: '3',
    description: 'how many successful and how many other sync requests of a namespace are kept, 1 to 256 each',
  },
  {
    name: 'request-ttl',
    environment: 'REQUEST_TTL',
    argument: 'duration',
    defaultText: '24h',
    description: 'how long answered sync requests are kept, the newest success apart; 0 = no limit of time',
  },
  {
    name: 'termination-log',
    environment: 'TERMINATION_LOG',
    argument: 'path',
    defaultText: '/dev/termination-log where it exists',
    description: 'file that gets the reason of a failure as JSON, at most 4096 bytes',
  },
  {
    name: 'log-level',
    environment: 'LOG_LEVEL',
    argument: 'level',
    defaultText: 'info',
    description: 'trace, debug, info, warn, error or fatal',
  },
  {
    name: 'log-format',
    environment: 'LOG_FORMAT',
    argument: 'format',
    defaultText: 'json, or pretty on a terminal',
    description: 'json or pretty; logs go to stderr',
  },
] as const satisfies readonly FlagSpec[];

export type FlagName = (typeof flags)[number]['name'];

/** What the command line gave, as it was typed. Repeatable flags give arrays, switches booleans. */
export type FlagValues = Readonly<Partial<Record<FlagName, string | readonly string[] | boolean>>>;
