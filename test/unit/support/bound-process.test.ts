import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { programNotFound, spawnBound } from '../../support/control-plane/bound-process.ts';
import { eventually } from '../../support/eventually.ts';

const module = new URL('../../support/control-plane/bound-process.ts', import.meta.url).href;
const directories: string[] = [];

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

function directory(): string {
  const made = mkdtempSync(join(tmpdir(), 'nab-sync-bound-'));
  directories.push(made);
  return made;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** A parent process that starts a bound `sleep` and prints its process id. */
async function parentOfSleep(
  removeWhenOrphaned: string,
): Promise<{ kill: (signal: NodeJS.Signals) => void; pid: number }> {
  const script = `
    import { spawnBound } from ${JSON.stringify(module)};
    const child = spawnBound('sleep', ['300'], { cwd: '/', output: 'pipe', removeWhenOrphaned: ${JSON.stringify(removeWhenOrphaned)} });
    child.once('spawn', () => console.log(child.pid));
  `;
  const parent = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  return { kill: (signal) => parent.kill(signal), pid: Number(line.toString()) };
}

describe('a bound process', () => {
  it('is the program itself: its process id, its output and its exit code', async () => {
    const child = spawnBound('sh', ['-c', 'echo $$; exit 7'], { cwd: '/', output: 'pipe' });
    if (child.stdout === null) throw new Error('no output');
    const [output] = await Promise.all([text(child.stdout), once(child, 'close')]);
    expect(output).toBe(`${child.pid}\n`);
    expect(child.exitCode).toBe(7);
  });

  it('leaves its directory alone when it ends while its parent lives', async () => {
    const kept = directory();
    const child = spawnBound('true', [], { cwd: '/', output: 'pipe', removeWhenOrphaned: kept });
    await once(child, 'exit');
    // Longer than an orphan's directory lives.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(existsSync(kept)).toBe(true);
  });

  it('tells by the exit code that there is no such program', async () => {
    const child = spawnBound('no-such-program', [], { cwd: '/', output: 'pipe' });
    await once(child, 'exit');
    expect(child.exitCode).toBe(programNotFound);
  });

  it.each<NodeJS.Signals>(['SIGKILL', 'SIGTERM', 'SIGINT'])(
    'dies with its parent, directory and all, when that is ended by %s',
    async (signal) => {
      const orphaned = directory();
      const parent = await parentOfSleep(orphaned);
      expect(isRunning(parent.pid)).toBe(true);
      parent.kill(signal);
      await eventually(() => {
        expect(isRunning(parent.pid)).toBe(false);
        expect(existsSync(orphaned)).toBe(false);
      });
    },
  );

  it('dies with its parent even while it is frozen', async () => {
    const parent = await parentOfSleep(directory());
    process.kill(parent.pid, 'SIGSTOP');
    parent.kill('SIGKILL');
    await eventually(() => {
      expect(isRunning(parent.pid)).toBe(false);
    });
  });
});
