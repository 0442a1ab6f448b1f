import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of a bundled nab-sync of this run's own. */
    faultsBundle: string;
  }
}

/**
 * Bundles nab-sync and takes a copy: a long run must not change over to another program in the middle because
 * somebody builds the project meanwhile.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await promisify(execFile)('npm', ['run', '--silent', 'build']);
  const directory = await mkdtemp(join(tmpdir(), 'nab-sync-faults-'));
  const bundle = join(directory, 'nab-sync.mjs');
  await copyFile(fileURLToPath(new URL('../../dist/nab-sync.mjs', import.meta.url)), bundle);
  project.provide('faultsBundle', bundle);
  return () => rm(directory, { recursive: true, force: true });
}
