import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mainJob } from './support/main-job.ts';
import { planReport } from './support/reports.ts';

/** nab-sync as kubectl finds it: an executable file `kubectl-nab_sync` on the PATH, for which kubectl takes `nab-sync`. */

const job = await mainJob();
const bundle = fileURLToPath(new URL('../../../dist/nab-sync.mjs', import.meta.url));
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nab-sync-plugin-'));
  await symlink(bundle, join(directory, 'kubectl-nab_sync'));
});

afterAll(async () => {
  await rm(directory, { recursive: true });
});

async function kubectl(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(job.kubectl, args, {
    env: {
      // The node of the tests, for the file's first line.
      PATH: [directory, dirname(process.execPath), process.env['PATH']].join(delimiter),
      HOME: homedir(),
      KUBECONFIG: job.kubeconfig,
      WATCH_NAMESPACE: job.oadpNamespace,
    },
  });
  return stdout;
}

describe('kubectl nab-sync', () => {
  it('runs a command with its options and hands on what it prints', async () => {
    const namespace = await job.createTenant('team');
    await job.objects.create(job.gen.storageLocation());
    await job.objects.create(job.gen.backup({ namespace }));
    const plan = planReport.parse(JSON.parse(await kubectl('nab-sync', 'plan', '-n', namespace, '-o', 'json')));
    expect(plan.decisions).toMatchObject([{ namespace, name: 'daily', reason: 'Missing' }]);
  });

  it('speaks of itself as it is called', async () => {
    expect(await kubectl('nab-sync', 'plan', '--help')).toContain('Usage: kubectl nab-sync plan');
    await expect(kubectl('nab-sync', 'plna')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('see kubectl nab-sync --help') as unknown,
    });
  });
});
