import { constants } from 'node:fs';
import { copyFile, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ControlPlane, ServerName } from '../support/control-plane/control-plane.ts';

/**
 * Copies of etcd's data as it was at some moment, put back later: what an admin does who restores a cluster from a backup
 * of its etcd. Everything counts from an earlier number again, resourceVersions included.
 */
export class EtcdCopies {
  readonly #controlPlane: ControlPlane;

  constructor(controlPlane: ControlPlane) {
    this.#controlPlane = controlPlane;
  }

  /** Copies the data while etcd is frozen, so that it is that of one moment; etcd must be running. */
  async take(name: string): Promise<void> {
    this.#controlPlane.pause('etcd');
    try {
      await copyDirectory(this.#data, this.#copy(name));
    } finally {
      this.#controlPlane.resume('etcd');
    }
  }

  /**
   * Stops both servers, puts the copy back, starts both and waits until the API is ready.
   *
   * @param signal how the API server is stopped: SIGTERM ends its watches in good order
   */
  async putBack(name: string, signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    await endServer(this.#controlPlane, 'kube-apiserver', signal);
    await this.#controlPlane.kill('etcd');
    await copyDirectory(this.#copy(name), this.#data);
    await this.#controlPlane.startAgain('etcd');
    await this.#controlPlane.startAgain('kube-apiserver');
    await this.#controlPlane.untilReady();
  }

  get #data(): string {
    return join(this.#controlPlane.directory, 'etcd');
  }

  #copy(name: string): string {
    return join(this.#controlPlane.directory, 'copies', name);
  }
}

/** As a kubelet ends a server: one that takes long over SIGTERM, as an API server does with requests under way, is killed. */
export async function endServer(
  controlPlane: ControlPlane,
  name: ServerName,
  signal: 'SIGKILL' | 'SIGTERM',
): Promise<void> {
  const impatience = setTimeout(() => void controlPlane.kill(name, 'SIGKILL'), graceMs);
  try {
    await controlPlane.kill(name, signal);
  } finally {
    clearTimeout(impatience);
  }
}

const graceMs = 3_000;

/** Makes `to` what `from` is. */
async function copyDirectory(from: string, to: string): Promise<void> {
  await rm(to, { recursive: true, force: true });
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyDirectory(source, target);
    else await copySparse(source, target);
  }
}

const blockBytes = 1024 * 1024;

/** etcd's files are mostly zeros that it has reserved: they are left out as holes. */
async function copySparse(source: string, target: string): Promise<void> {
  // Makes the target with the source's mode; where the file system can, without copying a byte.
  if (await cloned(source, target)) return;
  await using from = await open(source, 'r');
  await using to = await open(target, 'w', (await from.stat()).mode);
  const block = Buffer.alloc(blockBytes);
  const zeros = Buffer.alloc(blockBytes);
  let position = 0;
  for (;;) {
    const { bytesRead } = await from.read(block, 0, blockBytes, position);
    if (bytesRead === 0) break;
    const data = block.subarray(0, bytesRead);
    if (!data.equals(zeros.subarray(0, bytesRead))) await to.write(data, 0, bytesRead, position);
    position += bytesRead;
  }
  await to.truncate(position);
}

async function cloned(source: string, target: string): Promise<boolean> {
  try {
    await copyFile(source, target, constants.COPYFILE_FICLONE_FORCE);
    return true;
  } catch {
    return false;
  }
}
