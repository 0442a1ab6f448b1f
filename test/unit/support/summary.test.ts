import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const reporter = join(project, 'test/support/vitest/summary-reporter.ts');
let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'nab-sync-summary-'));
});

afterAll(() => {
  rmSync(directory, { recursive: true });
});

/** Runs vitest on the given files and returns its last line and its exit code. */
async function run(files: Readonly<Record<string, string>>): Promise<{ line: string | undefined; exitCode: unknown }> {
  const root = mkdtempSync(join(directory, 'run-'));
  const config = { test: { globals: true, reporters: [reporter] } };
  writeFileSync(join(root, 'vitest.config.mjs'), `export default ${JSON.stringify(config)}`);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(root, name), content);
  const args = [join(project, 'node_modules/vitest/vitest.mjs'), 'run', '--root', root];
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
    return { line: stdout.trimEnd().split('\n').at(-1), exitCode: 0 };
  } catch (error) {
    if (!(error instanceof Error && 'stdout' in error && typeof error.stdout === 'string' && 'code' in error))
      throw error;
    return { line: error.stdout.trimEnd().split('\n').at(-1), exitCode: error.code };
  }
}

describe('the closing line of a test run', { timeout: 60_000 }, () => {
  it('counts what passed and what was skipped', async () => {
    const ended = await run({ 'a.test.ts': `it('a', () => {}); it.skip('b', () => {}); it.todo('c');` });
    expect(ended).toEqual({ line: 'tests: 1 passed, 0 failed, 2 skipped', exitCode: 0 });
  });

  it('counts a failed test, a file that cannot be loaded and a failed hook as failures', async () => {
    const ended = await run({
      'a.test.ts': `it('a', () => {}); it('b', () => { throw new Error('b'); });`,
      'b.test.ts': `import './is-not-there.ts';`,
      'c.test.ts': `describe('c', () => { beforeAll(() => { throw new Error('c'); }); it('d', () => {}); });`,
    });
    expect(ended).toEqual({ line: 'tests: 1 passed, 3 failed, 1 skipped', exitCode: 1 });
  });

  it('never says that nothing failed when a promise was left to fail or when there was no test', async () => {
    const left = await run({ 'a.test.ts': `it('a', () => { void Promise.reject(new Error('left')); });` });
    expect(left).toEqual({ line: 'tests: 1 passed, 1 failed, 0 skipped', exitCode: 1 });
    const none = await run({});
    expect(none).toEqual({ line: 'tests: 0 passed, 1 failed, 0 skipped', exitCode: 1 });
  });
});
