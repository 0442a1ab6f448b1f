import { mkdir, open, readFile, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { withHeartbeat } from './progress.ts';
import type { Progress } from './progress.ts';

const beatMs = 5_000;
/** A lock that was not touched for this long belongs to nobody: twelve missed beats. */
const staleMs = 60_000;

/**
 * Runs `work` while holding a lock file, so that two builders do not do the same six minutes of work on the same cores.
 *
 * It saves work and is not needed for correctness: results are put in place by an atomic rename, so when a stale lock is
 * broken by two at once, the worst outcome is a build done twice.
 */
export async function withBuildLock<T>(path: string, progress: Progress, work: () => Promise<T>): Promise<T> {
  await mkdir(dirname(path), { recursive: true });
  await withHeartbeat(
    progress,
    () => 'waiting for another build of the same thing to finish',
    async () => {
      while (!(await tryLock(path))) {
        if (await isStale(path)) await rm(path, { force: true });
        else await sleep(500);
      }
    },
  );
  const beat = setInterval(() => {
    const now = new Date();
    // If the file is gone, somebody has cleaned the cache while we build: the build is still good.
    utimes(path, now, now).catch(() => undefined);
  }, beatMs);
  try {
    return await work();
  } finally {
    clearInterval(beat);
    await rm(path, { force: true });
  }
}

async function tryLock(path: string): Promise<boolean> {
  try {
    const file = await open(path, 'wx');
    await file.writeFile(`${process.pid} ${hostname()}\n`);
    await file.close();
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  }
}

/** The holder died on this machine, or has not given a sign of life (the cache may be shared between machines). */
async function isStale(path: string): Promise<boolean> {
  try {
    if (Date.now() - (await stat(path)).mtimeMs > staleMs) return true;
    const [pid, host] = (await readFile(path, 'utf8')).trim().split(' ');
    return host === hostname() && pid !== undefined && !isRunning(Number(pid));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return hasCode(error, 'EPERM');
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
