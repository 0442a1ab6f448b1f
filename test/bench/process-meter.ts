import { readdir, readFile, readlink } from 'node:fs/promises';

/** What a process uses, seen from outside (Linux's /proc), so that looking costs the process nothing. */
export class ProcessMeter {
  readonly #directory: string;

  constructor(pid: number) {
    this.#directory = `/proc/${pid}`;
  }

  /** Resident memory in bytes: now, and the most that it ever was. */
  async memory(): Promise<{ readonly resident: number; readonly peak: number }> {
    const status = await readFile(`${this.#directory}/status`, 'utf8');
    const kilobytes = (field: string): number =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN);
    return { resident: kilobytes('VmRSS') * 1024, peak: kilobytes('VmHWM') * 1024 };
  }

  /** CPU time of all its threads so far, in seconds; to the nanosecond, where /proc/PID/stat counts in hundredths. */
  async cpuSeconds(): Promise<number> {
    const threads = await readdir(`${this.#directory}/task`);
    const times = await Promise.all(
      threads.map(async (thread) => {
        const [nanoseconds = '0'] = (await readFile(`${this.#directory}/task/${thread}/schedstat`, 'utf8')).split(' ');
        return Number(nanoseconds);
      }),
    );
    return times.reduce((sum, time) => sum + time, 0) / 1e9;
  }

  /** Open file descriptors, and how many of them are sockets. */
  async descriptors(): Promise<{ readonly open: number; readonly sockets: number }> {
    const names = await readdir(`${this.#directory}/fd`);
    const targets = await Promise.all(
      // One that was closed meanwhile is not open.
      names.map((name) => readlink(`${this.#directory}/fd/${name}`).catch(() => undefined)),
    );
    const open = targets.filter((target) => target !== undefined);
    return { open: open.length, sockets: open.filter((target) => target.startsWith('socket:')).length };
  }
}

const MIB = 1024 * 1024;

export function toMiB(bytes: number): number {
  return bytes / MIB;
}
