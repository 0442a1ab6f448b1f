import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of a bundled nab-sync of this run's own. */
    faultsBundle: string;
  }
}

/**
 * Bundles nab-sync into a file of this run's own: a long run must not change over to another program in the middle because
 * somebody builds the project meanwhile.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'nab-sync-faults-'));
  const bundle = join(directory, 'nab-sync.mjs');
  await promisify(execFile)('npm', ['run', '--silent', 'build', '--', `--outfile=${bundle}`]);
  project.provide('faultsBundle', bundle);
  return () => rm(directory, { recursive: true, force: true });
}
