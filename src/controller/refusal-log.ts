import countBy from 'lodash/countBy.js';
import type { Logger } from 'pino';
import { printable } from '../oadp/printable.ts';
import type { BackupRecord } from '../oadp/backup.ts';
import type { Decision, DecisionReason } from '../sync/reasons.ts';

/** Most refusals that get a line of their own each time; a bucket may hold ten thousand forgeries. */
const singleLines = 20;

/**
 * Tells the log which backups were refused for good (rules 1 to 8): each once, and again when the reason changes. They
 * are told here and nowhere else, since the namespace that such a backup claims has nothing to do with it.
 */
export class RefusalLog {
  readonly #log: Logger;
  #told = new Map<string, DecisionReason>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** @param refused all that are refused now, by Backup */
  tell(refused: ReadonlyMap<string, Decision>, backupOf: (name: string) => BackupRecord | undefined): void {
    const news = [...refused].filter(([name, { reason }]) => this.#told.get(name) !== reason);
    this.#told = new Map([...refused].map(([name, { reason }]) => [name, reason]));
    for (const [name, { reason, message }] of news.slice(0, singleLines)) {
      const claim = backupOf(name)?.claim;
      const claimed = { namespace: printable(claim?.namespace), name: printable(claim?.name) };
      this.#log.warn({ backup: printable(name), claimed, reason, detail: message }, 'backup refused');
    }
    if (news.length <= singleLines) return;
    const reasons = countBy(news, ([, { reason }]) => reason);
    this.#log.warn({ refused: news.length, reasons }, 'more backups refused; nab-sync plan lists them');
  }
}
