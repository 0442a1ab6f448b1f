import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { writeKubeconfig } from './support.ts';

/** The program as people start it. What it prints in process is tested in cli.test.ts. */

const main = join(import.meta.dirname, '../../../src/main.ts');
const directory = mkdtempSync(join(tmpdir(), 'nab-sync-'));
// A closed port of the loopback: nothing listens on port 1.
const unreachable = writeKubeconfig(directory, 'http://127.0.0.1:1');
afterAll(() => {
  rmSync(directory, { recursive: true });
});

/** Two cores and many test files: starting Node and its libraries takes its time. */
const patience = 60_000;

function start(args: readonly string[], environment: Record<string, string> = {}) {
  const child = spawn(process.execPath, [main, ...args], {
    // Of this machine's environment only what a process needs.
    env: { PATH: process.env['PATH'] ?? '', HOME: directory, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { out: '', error: '' };
  child.stdout.on('data', (chunk) => (output.out += String(chunk)));
  child.stderr.on('data', (chunk) => (output.error += String(chunk)));
  return { child, output };
}

async function finish(args: readonly string[], environment: Record<string, string> = {}) {
  const { child, output } = start(args, environment);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...output };
}

/** Resolves when the program has written such a line to stderr. */
async function untilLogged({ child, output }: ReturnType<typeof start>, pattern: RegExp): Promise<RegExpExecArray> {
  for (;;) {
    const match = pattern.exec(output.error);
    if (match !== null) return match;
    await once(child.stderr, 'data');
  }
}

describe('one line and no stack trace', { timeout: patience }, () => {
  test.each<[string, readonly string[], Record<string, string>, number, RegExp]>([
    ['for a wrong flag', ['--sync-peroid', '2m'], {}, 2, /^nab-sync: unknown option '--sync-peroid' \(Did you mean/],
    ['for an unknown command', ['plna'], {}, 2, /^nab-sync: unknown command "plna"; there is run, /],
    [
      'for a duration that is none',
      ['plan'],
      { SYNC_PERIOD: '2 min' },
      2,
      /^nab-sync: environment variable SYNC_PERIOD: expected a duration .* got "2 min"\n$/,
    ],
    [
      'for a kubeconfig that is not there',
      ['plan', '--kubeconfig', join(directory, 'none')],
      {},
      2,
      /^nab-sync: .*none.*--kubeconfig/,
    ],
    ['for no kubeconfig at all', ['plan'], {}, 2, /^nab-sync: .*kubeconfig/],
    [
      'for a server that cannot be reached',
      ['plan', '--kubeconfig', unreachable],
      {},
      1,
      /^nab-sync: list .*ECONNREFUSED.*; check that the server runs/,
    ],
  ])('%s', async (_, args, environment, code, line) => {
    const result = await finish(args, environment);
    expect(result.error).toMatch(line);
    expect(result.error.trimEnd().split('\n')).toHaveLength(1);
    expect(result).toMatchObject({ code, out: '' });
  });
});

describe('the process', { timeout: patience }, () => {
  test('prints its version on stdout', async () => {
    const { code, out, error } = await finish(['--version']);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test('ends quietly when the reader of its output goes away', async () => {
    const { child, output } = start(['--help']);
    child.stdout.destroy();
    const [code] = (await once(child, 'close')) as [number | null];
    expect({ code, error: output.error }).toEqual({ code: 0, error: '' });
  });

  test('run with an address in use ends with one line that names the flag, and the reason in the termination log', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
    const log = join(directory, 'termination-log');
    const result = await finish(
      ['run', '--kubeconfig', unreachable, '--metrics-address', address, '--termination-log', log],
      {},
    );
    taken.close();
    expect(result.error).toBe(
      `nab-sync: cannot listen on ${address} (--metrics-address): the address is in use; choose another one, or port 0 for a free one\n`,
    );
    expect(result.code).toBe(2);
    expect(JSON.parse(readFileSync(log, 'utf8'))).toMatchObject({ command: 'run', exitCode: 2, code: 'Configuration' });
  });

  test('run lives on while the server is away, alive but not ready, and ends with 0 on SIGTERM', async () => {
    const program = start([
      ...['--kubeconfig', unreachable, '--no-leader-elect'],
      ...['--metrics-address', '0', '--health-address', '127.0.0.1:0'],
    ]);
    const [, address = ''] = await untilLogged(program, /"address":"([^"]+)"/);
    expect((await fetch(`http://${address}/livez`)).status).toBe(200);
    const ready = await fetch(`http://${address}/readyz`);
    expect(ready.status).toBe(503);
    expect(await ready.text()).toMatch(/^\[-\]synced failed: /m);
    program.child.kill('SIGTERM');
    const [code] = (await once(program.child, 'close')) as [number | null];
    expect({ code, out: program.output.out }).toEqual({ code: 0, out: '' });
    for (const line of program.output.error.trimEnd().split('\n'))
      expect(() => JSON.parse(line) as unknown).not.toThrow();
  });
});
