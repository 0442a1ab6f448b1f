/** Looks at one thing: undefined = well, else what is wrong, in a few words without secrets. Throwing counts as unwell. */
export type HealthCheck = () => string | undefined;

export interface HealthReport {
  readonly healthy: boolean;
  /** One line a check, in the order of registration, in the API server's words: `[+]loop ok`, `[-]watches failed: why`. */
  readonly lines: readonly string[];
}

/** Named checks behind one endpoint. */
export class HealthChecks {
  readonly #checks = new Map<string, HealthCheck>();

  /** Adds a check; one of the same name is replaced. */
  set(name: string, check: HealthCheck): void {
    this.#checks.set(name, check);
  }

  report(): HealthReport {
    const results = [...this.#checks].map(([name, check]) => {
      const problem = this.#run(check);
      return {
        healthy: problem === undefined,
        line: problem === undefined ? `[+]${name} ok` : `[-]${name} failed: ${problem}`,
      };
    });
    return { healthy: results.every(({ healthy }) => healthy), lines: results.map(({ line }) => line) };
  }

  #run(check: HealthCheck): string | undefined {
    try {
      return check();
    } catch (error) {
      return error instanceof Error ? error.message : 'the check itself failed';
    }
  }
}

/** `/livez`: restart me if not. `/readyz`: what I show is complete. */
export interface Health {
  readonly live: HealthChecks;
  readonly ready: HealthChecks;
}
