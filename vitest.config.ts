import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Tests start processes and send them signals, which belongs into processes and not into threads of one.
    pool: 'forks',
    // `.only` is for the desk: in CI it would let the other tests pass unseen.
    allowOnly: process.env['CI'] === undefined,
    reporters: ['default', './test/support/vitest/summary-reporter.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          testTimeout: 20_000,
          maxWorkers: availableParallelism(),
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts', 'test/e2e/**/*.test.ts'],
          globalSetup: './test/support/vitest/global-setup.ts',
          // On two cores a test shares the machine with the API server, etcd, a controller and other test files.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // These wait for the server and for intervals more than they compute.
          maxWorkers: availableParallelism() + 1,
          // After the unit tests: those fail in seconds, and none of them is slowed down by servers.
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          // Skipped unless NAC_BINARY names the non-admin controller's program (make test-nac).
          name: 'nac',
          include: ['test/nac/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          // Each file has an API server of its own, which it harms. After all others, whose timing it would disturb.
          name: 'faults',
          include: ['test/faults/**/*.test.ts'],
          globalSetup: './test/faults/global-setup.ts',
          testTimeout: 180_000,
          hookTimeout: 120_000,
          maxWorkers: 3,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
