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
  /** Told how far long work is, in parts of `total`; whoever reads it on a terminal sees it. */
  readonly progress: (done: number, total: number, what: string) => void;
  /** Where `run` registers its checks. `ready` fails until the controller replaces the check named `synced`. */
  readonly health: Health;
  /** `nab-sync/0.1.0` */
  readonly userAgent: string;
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}
