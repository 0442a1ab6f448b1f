import { setInterval, clearInterval } from 'node:timers';

/** Takes one line for a person who waits. */
export type Progress = (line: string) => void;

/** Progress goes to stderr: stdout belongs to results, such as the directory that `make control-plane` prints. */
export const stderrProgress: Progress = (line) => {
  process.stderr.write(`control-plane: ${line}\n`);
};

const tickMs = 15_000;

/**
 * Runs long work and says every 15 seconds that it goes on, so that neither a person nor a CI system that watches for
 * silence takes it for stuck. `describe` is asked for the state each time.
 */
export async function withHeartbeat<T>(progress: Progress, describe: () => string, work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const timer = setInterval(() => {
    progress(`${describe()} (${elapsed(performance.now() - started)})`);
  }, tickMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** `45s` or `2m 05s`. */
export function elapsed(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${seconds}s` : `${minutes}m ${String(seconds % 60).padStart(2, '0')}s`;
}
