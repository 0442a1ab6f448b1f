import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parseCommandLine } from '../../../src/commands/command-line.ts';
import { shells } from '../../../src/commands/completion.ts';
import { flags } from '../../../src/settings/flags.ts';

const directory = mkdtempSync(join(tmpdir(), 'nab-sync-completion-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

function scriptFor(shell: string): string {
  const parsed = parseCommandLine(['completion', shell]);
  if (parsed.kind !== 'text') throw new Error(JSON.stringify(parsed));
  return parsed.text;
}

/** Whether a shell is installed here. */
function has(shell: string): boolean {
  try {
    execFileSync(shell, ['-c', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe.each(shells)('the completion for %s', (shell) => {
  const script = scriptFor(shell);

  test('knows every command and every flag', () => {
    for (const command of ['run', 'once', 'plan', 'explain', 'status', 'check', 'request', 'completion']) {
      expect(script).toContain(command);
    }
    for (const { name } of flags) expect(script).toContain(shell === 'fish' ? `-l ${name}` : `--${name}`);
    expect(script).toContain('table wide json yaml');
  });

  test.skipIf(!has(shell))('is a script that the shell takes', () => {
    const path = join(directory, shell);
    writeFileSync(path, script);
    execFileSync(shell, shell === 'fish' ? ['--no-execute', path] : ['-n', path]);
  });
});

test('a shell that there is no script for is refused by name', () => {
  expect(parseCommandLine(['completion', 'tcsh'])).toMatchObject({
    kind: 'usageError',
    message: expect.stringContaining('Allowed choices are bash, zsh, fish') as unknown,
  });
});

describe.skipIf(!has('bash'))('in bash', () => {
  /** What it offers for the last word of a line. */
  function offered(...words: readonly string[]): string[] {
    const script = join(directory, 'sourced');
    writeFileSync(script, scriptFor('bash'));
    const asked = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nab_sync; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const out = execFileSync('bash', ['-c', asked, 'bash', script, ...words], { encoding: 'utf8', cwd: directory });
    return out.trim().split('\n');
  }

  test.each([
    [
      ['nab-sync', ''],
      ['run', 'once', 'plan', 'explain', 'status', 'check', 'request', 'completion'],
    ],
    [['nab-sync', 'pl'], ['plan']],
    [['kubectl-nab_sync', 'plan', '--out'], ['--output']],
    [
      ['nab-sync', 'plan', '-o', ''],
      ['table', 'wide', 'json', 'yaml'],
    ],
    [['nab-sync', '--sync-period', '5m', 'pl'], ['plan']],
    [['nab-sync', 'once', '--leader'], ['--leader-elect']],
    [['nab-sync', 'completion', 'z'], ['zsh']],
    [['nab-sync', 'plan', '--kubeconfig', 'sour'], ['sourced']],
    [['nab-sync', 'plan', '-n', 'x'], ['']],
  ])('%j is completed to %j', (words, expected) => {
    expect(offered(...words).filter((word) => word !== 'help')).toEqual(expect.arrayContaining(expected));
    if (expected.length === 1) expect(offered(...words)).toEqual(expected);
  });
});
