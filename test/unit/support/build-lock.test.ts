import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withBuildLock } from '../../support/control-plane/build-lock.ts';

let directory: string;
let lock: string;
const silent = (): void => undefined;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nab-sync-lock-'));
  lock = join(directory, 'cache', 'key.lock');
});

afterEach(() => {
  rmSync(directory, { recursive: true });
});

describe('the build lock', () => {
  it('lets one in at a time and is gone afterwards', async () => {
    let inside = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      inside += 1;
      most = Math.max(most, inside);
      await sleep(50);
      inside -= 1;
    };
    await Promise.all([1, 2, 3].map(() => withBuildLock(lock, silent, work)));
    expect(most).toBe(1);
    expect(existsSync(lock)).toBe(false);
  });

  it('is given back when the work fails', async () => {
    const failing = withBuildLock(lock, silent, () => Promise.reject(new Error('no space left')));
    await expect(failing).rejects.toThrow('no space left');
    expect(existsSync(lock)).toBe(false);
  });

  it('of a builder that died on this machine does not hold up the next', async () => {
    await withBuildLock(lock, silent, () => Promise.resolve());
    // No process has this number: it is above what Linux gives out.
    writeFileSync(lock, `4194305 ${hostname()}\n`);
    await expect(withBuildLock(lock, silent, () => Promise.resolve('built'))).resolves.toBe('built');
  });

  it('of another machine holds while it gives signs of life, and not for ever', async () => {
    await withBuildLock(lock, silent, () => Promise.resolve());
    writeFileSync(lock, '1 another-machine\n');
    const waiting = withBuildLock(lock, silent, () => Promise.resolve('built'));
    await expect(Promise.race([waiting, sleep(300, 'still waiting')])).resolves.toBe('still waiting');
    const twoMinutesAgo = Date.now() / 1000 - 120;
    utimesSync(lock, twoMinutesAgo, twoMinutesAgo);
    await expect(waiting).resolves.toBe('built');
  });
});
