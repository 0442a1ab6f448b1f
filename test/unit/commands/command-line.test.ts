import { describe, expect, test } from 'vitest';
import { parseCommandLine, programName, type Invocation } from '../../../src/commands/command-line.ts';
import { flags } from '../../../src/settings/flags.ts';

function parsed(...args: readonly string[]): Invocation {
  const result = parseCommandLine(args);
  if (result.kind !== 'invocation') throw new Error(JSON.stringify(result));
  return result.invocation;
}

function refused(...args: readonly string[]): string {
  const result = parseCommandLine(args);
  if (result.kind !== 'usageError') throw new Error(JSON.stringify(result));
  return result.message;
}

function printed(...args: readonly string[]): string {
  const result = parseCommandLine(args);
  if (result.kind !== 'text') throw new Error(JSON.stringify(result));
  return result.text;
}

describe('the command line', () => {
  test('without a command is run', () => {
    expect(parsed()).toEqual({ command: 'run', flags: {} });
    expect(parsed('--sync-period', '5m')).toEqual({ command: 'run', flags: { 'sync-period': '5m' } });
  });

  test.each([
    [['--oadp-namespace', 'adp', 'plan']],
    [['plan', '--oadp-namespace', 'adp']],
    [['plan', '--oadp-namespace=adp']],
  ])('%j: global flags may stand before and after the command', (args) => {
    expect(parsed(...args)).toEqual({
      command: 'plan',
      flags: { 'oadp-namespace': 'adp' },
      namespaces: [],
      output: 'table',
    });
  });

  test('takes every flag of the table', () => {
    const args = flags.flatMap((flag) => ('argument' in flag ? [`--${flag.name}`, 'x'] : [`--no-${flag.name}`]));
    const given = parsed('once', ...args).flags;
    expect(Object.keys(given)).toEqual(flags.map(({ name }) => name));
    expect(given['leader-elect']).toBe(false);
    expect(given['protected-namespace']).toEqual(['x']);
  });

  test('collects repeated flags, and takes the last of the others', () => {
    const { flags: given } = parsed(
      ...['--storage-location', 'a', 'plan', '--storage-location', 'b,c', '--concurrency', '1', '--concurrency', '2'],
    );
    expect(given).toEqual({ 'storage-location': ['a', 'b,c'], concurrency: '2' });
  });

  test('takes --leader-elect without a value, whatever comes next', () => {
    expect(parsed('--leader-elect', 'once')).toMatchObject({ command: 'once', flags: { 'leader-elect': true } });
  });

  test('takes a value that begins with a dash for a value', () => {
    expect(parsed('--sync-period', '-1s').flags).toEqual({ 'sync-period': '-1s' });
  });

  test('request takes a namespace, whether to wait for the answer, and for how long', () => {
    expect(parsed('request', '-n', 'a', '--wait', '--timeout', '5m', '-o', 'json')).toEqual({
      command: 'request',
      flags: {},
      namespaces: ['a'],
      wait: true,
      timeout: '5m',
      output: 'json',
    });
    expect(parsed('request')).toMatchObject({ namespaces: [], wait: false, timeout: '2m', output: 'table' });
  });

  test.each(['once', 'plan'] as const)('%s takes namespaces and an output format', (command) => {
    expect(parsed(command, '-n', 'a', '--namespace', 'b', '-o', 'json')).toEqual({
      command,
      flags: {},
      namespaces: ['a', 'b'],
      output: 'json',
    });
  });

  test.each(['status', 'check'] as const)('%s takes an output format', (command) => {
    expect(parsed(command, '-o', 'wide')).toEqual({ command, flags: {}, output: 'wide' });
  });

  test('explain takes one backup', () => {
    expect(parsed('explain', 'team-a/nightly', '-o', 'yaml')).toEqual({
      command: 'explain',
      flags: {},
      target: 'team-a/nightly',
      output: 'yaml',
    });
  });
});

describe('a wrong command line is told in one line', () => {
  test.each<[readonly string[], string]>([
    [['--sync-peroid', '2m'], "unknown option '--sync-peroid' (Did you mean --sync-period?); see nab-sync --help"],
    [
      ['plna'],
      'unknown command "plna"; there is run, once, plan, explain, status, check, request, completion; see nab-sync --help',
    ],
    [['help', 'plna'], 'unknown command; see nab-sync --help'],
    [['run', '-o', 'json'], "unknown option '-o'; see nab-sync --help"],
    [['explain'], "missing required argument 'backup'; see nab-sync --help"],
    [
      ['explain', 'a', 'b'],
      "too many arguments for 'explain'. Expected 1 argument but got 2: a, b; see nab-sync --help",
    ],
    [['plan', 'x'], "too many arguments for 'plan'. Expected 0 arguments but got 1: x; see nab-sync --help"],
    [
      ['plan', '-o', 'xml'],
      "option '-o, --output <format>' argument 'xml' is invalid. Allowed choices are table, wide, json, yaml; see nab-sync --help",
    ],
    [['--concurrency'], "option '--concurrency <number>' argument missing; see nab-sync --help"],
  ])('%j', (args, message) => {
    expect(refused(...args)).toBe(message);
  });
});

describe('--help', () => {
  test.each([[], ['run'], ['once'], ['plan'], ['explain'], ['status'], ['check'], ['request'], ['completion']])(
    '%s has an example and every flag of the table',
    (...command) => {
      const text = printed(...command, '--help');
      expect(text).toMatch(/Examples?:\n {2}nab-sync/);
      for (const flag of flags) {
        expect(text).toContain(`--${flag.name}`);
        if ('environment' in flag) expect(text).toContain(flag.environment);
      }
    },
  );

  test('lists the commands and the exit codes', () => {
    const text = printed('--help');
    for (const command of [
      'run',
      'once',
      'plan',
      'explain <backup>',
      'status',
      'check',
      'request',
      'completion <shell>',
    ])
      expect(text).toContain(`\n  ${command} [options]`);
    expect(text).toContain('Exit codes:');
    expect(text).not.toContain('excess');
  });

  test('is also what help prints', () => {
    expect(printed('help', 'plan')).toBe(printed('plan', '--help'));
  });
});

describe('as a plugin of kubectl', () => {
  test.each([
    ['/usr/local/bin/kubectl-nab_sync', 'kubectl nab-sync'],
    ['/app/nab-sync.mjs', 'nab-sync'],
    [undefined, 'nab-sync'],
  ])('%s is called %s', (path, name) => {
    expect(programName(path)).toBe(name);
  });

  test('it speaks of itself as people call it', () => {
    const help = parseCommandLine(['plan', '--help'], 'kubectl nab-sync');
    expect(help).toMatchObject({
      kind: 'text',
      text: expect.stringContaining('Usage: kubectl nab-sync plan') as unknown,
    });
    expect(help).toMatchObject({ text: expect.stringContaining('\n  kubectl nab-sync plan -n team-a') as unknown });
    expect(parseCommandLine(['plna'], 'kubectl nab-sync')).toMatchObject({
      message: expect.stringMatching(/; see kubectl nab-sync --help$/) as unknown,
    });
  });
});

test('--version prints the version of package.json', async () => {
  const { default: manifest } = await import('../../../package.json', { with: { type: 'json' } });
  expect(printed('--version')).toBe(`${manifest.version}\n`);
});
