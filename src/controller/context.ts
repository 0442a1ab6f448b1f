import type { Logger } from 'pino';
import type { Connection } from '../kube/connection.ts';
import type { Health } from '../observability/health.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Settings } from '../settings/settings.ts';

/** All that a command hands to the work behind it. */
export interface CommandContext {
  readonly settings: Settings;
  /** Only these namespaces (`-n`); empty = all. Always empty for `run`. */
  readonly namespaces: readonly string[];
  readonly connection: Connection;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Where `run` registers its checks. Already has one each: `ready` fails until the controller replaces `synced`. */
  readonly health: Health;
  /** `nab-sync/0.1.0` */
  readonly userAgent: string;
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

/** Which backups `explain` is asked about. */
export type ExplainTarget =
  | { readonly kind: 'nonAdminBackup'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'backup'; readonly name: string };
