import type { SerializedError } from 'vitest';
import type { Reporter, TestModule } from 'vitest/node';

export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** The plain line with which a run ends; CI systems read it. */
export function summaryLine({ passed, failed, skipped }: Totals): string {
  return `tests: ${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/**
 * Counts tests. What fails outside of a test counts as one failure each: a file that cannot be loaded, a hook, an error that
 * nobody caught. A run that vitest fails must never end in "0 failed".
 */
export function totals(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): Totals {
  let passed = 0;
  let failed = unhandledErrors.length;
  let skipped = 0;
  for (const module of modules) {
    failed += module.errors().length;
    for (const suite of module.children.allSuites()) failed += suite.errors().length;
    for (const test of module.children.allTests()) {
      switch (test.result().state) {
        case 'passed':
          passed += 1;
          break;
        case 'skipped':
          skipped += 1;
          break;
        case 'failed':
        // Never run to its end: its worker died, or the run was interrupted.
        case 'pending':
          failed += 1;
          break;
      }
    }
  }
  return { passed, failed, skipped };
}

/** A run without a test has failed once: the API server did not start, or a filter matched nothing. */
const neverRun: Totals = { passed: 0, failed: 1, skipped: 0 };

/** Prints the summary line when the process ends, after all that the other reporters have to say. */
export default class SummaryReporter implements Reporter {
  #totals = neverRun;

  onInit(): void {
    process.once('exit', () => {
      process.stdout.write(`${summaryLine(this.#totals)}\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const counted = totals(modules, unhandledErrors);
    if (counted.passed + counted.failed + counted.skipped > 0) this.#totals = counted;
  }
}
