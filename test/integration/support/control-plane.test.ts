import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { namespaces } from '../../../src/oadp/kinds.ts';
import { ControlPlane } from '../../support/control-plane/control-plane.ts';
import type { ServerName } from '../../support/control-plane/control-plane.ts';
import { createNamespace } from '../../support/namespaces.ts';
import { Objects } from '../../support/objects.ts';
import { eventually } from '../../support/eventually.ts';

/** Servers of its own, since what is done to them here would harm the other test files; an existing cluster has none. */
const onOwnServers = describe.skipIf(process.env['USE_EXISTING_CLUSTER'] === 'true');
let controlPlane: ControlPlane;
let objects: Objects;

onOwnServers('a control plane that faults are done to', () => {
  beforeAll(async () => {
    controlPlane = await ControlPlane.start({ crds: false });
    objects = await Objects.on(controlPlane.admin);
  });

  afterAll(async () => {
    await controlPlane.stop();
  });

  it.each<ServerName>(['kube-apiserver', 'etcd'])(
    '%s can be killed and started again: same address, same data, same credentials',
    async (name) => {
      await createNamespace(objects, `before-${name}`);
      await controlPlane.kill(name);
      await expect(controlPlane.untilReady()).rejects.toThrow(`${name} does not run: see `);
      await controlPlane.startAgain(name);
      await controlPlane.untilReady();
      await eventually(async () => {
        expect(await objects.get(namespaces, { name: `before-${name}` })).toBeDefined();
      }, 20_000);
    },
  );

  it('can be frozen, so that nothing answers, and thawed', async () => {
    // The server was restarted before: a connection of that time would break instead of waiting.
    await eventually(() => controlPlane.admin.call('GET', '/version'));
    controlPlane.pause('kube-apiserver');
    // The signal takes a moment to reach every thread of a busy machine.
    await eventually(async () => {
      const frozen = controlPlane.admin.request('GET', '/version', { timeoutMs: 300 });
      await expect(frozen).rejects.toMatchObject({ name: 'TimeoutError' });
    });
    controlPlane.resume('kube-apiserver');
    await expect(controlPlane.admin.call('GET', '/version')).resolves.toMatchObject({ major: '1' });
  });
});

onOwnServers('starting a control plane', () => {
  it('on a port that is taken fails with one line that names the log', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = taken.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    try {
      const failure = await ControlPlane.start({ crds: false, port: address.port }).catch((error: unknown) => error);
      expect(failure).toMatchObject({ name: 'SetupError' });
      const [, log] = /^kube-apiserver does not run: see (\S+)$/.exec((failure as Error).message) ?? [];
      expect(existsSync(log ?? '')).toBe(true);
      rmSync(join(log ?? '', '..'), { recursive: true });
    } finally {
      taken.close();
    }
  });
});

onOwnServers('make control-plane', () => {
  const script = join(import.meta.dirname, '../../support/control-plane/build.ts');
  const run = async (env: NodeJS.ProcessEnv): Promise<{ stdout: string; stderr: string; failed: boolean }> => {
    try {
      return { ...(await promisify(execFile)(process.execPath, [script], { env })), failed: false };
    } catch (error) {
      if (!(error instanceof Error && 'stdout' in error && 'stderr' in error)) throw error;
      return { stdout: String(error.stdout), stderr: String(error.stderr), failed: true };
    }
  };

  // A PATH without Go, wherever this machine has it.
  let shellOnly: string;
  beforeAll(async () => {
    shellOnly = mkdtempSync(join(tmpdir(), 'nab-sync-path-'));
    const { stdout } = await promisify(execFile)('sh', ['-c', 'command -v sh']);
    symlinkSync(stdout.trim(), join(shellOnly, 'sh'));
  });
  afterAll(() => {
    rmSync(shellOnly, { recursive: true });
  });

  it('prints the directory of the three programs, and nothing else, once they are there', async () => {
    const { stdout, stderr } = await run(process.env);
    expect(stderr).toBe('');
    expect(readdirSync(stdout.trimEnd()).sort()).toEqual(['etcd', 'kube-apiserver', 'kubectl']);
  });

  it('without Go says in one line which three ways there are', async () => {
    const { stderr, failed } = await run({ HOME: process.env['HOME'], PATH: shellOnly });
    expect(failed).toBe(true);
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/install Go .*KUBEBUILDER_ASSETS.*USE_EXISTING_CLUSTER=true/),
    ]);
  });

  it('takes KUBEBUILDER_ASSETS as it is, and says what is missing there', async () => {
    const { stdout } = await run(process.env);
    const assets = stdout.trimEnd();
    expect(await run({ ...process.env, KUBEBUILDER_ASSETS: assets, PATH: shellOnly })).toEqual({
      stdout: `${assets}\n`,
      stderr: '',
      failed: false,
    });
    const empty = mkdtempSync(join(tmpdir(), 'nab-sync-assets-'));
    const { stderr } = await run({ ...process.env, KUBEBUILDER_ASSETS: empty });
    expect(stderr).toBe(
      `KUBEBUILDER_ASSETS is ${empty}, but ${join(empty, 'kube-apiserver')} is not there or cannot be executed\n`,
    );
    rmSync(empty, { recursive: true });
  });
});
