import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { spawnBound } from '../support/control-plane/bound-process.ts';

/** What the bare loop is to write. */
export const bareLoopTask = z.object({
  /** Path. */
  kubeconfig: z.string(),
  /** Items worked on at once, each on a connection of its own. */
  concurrency: z.number(),
  /** `create`: live GET and create. `all`: the status as well, right after. `statusesLast`: when all are created. */
  writes: z.enum(['create', 'all', 'statusesLast']),
  /** HTTP/2 over so many connections, instead of HTTP/1.1. */
  http2Connections: z.number().optional(),
});
export type BareLoopTask = z.infer<typeof bareLoopTask>;

/** `seconds` from the first request to the last answer. */
const bareLoopResult = z.object({ seconds: z.number() });
export type BareLoopResult = z.infer<typeof bareLoopResult>;

const program = fileURLToPath(new URL('bare-loop-process.ts', import.meta.url));

/** Runs the bare loop over all Backups, in a process of its own as nab-sync is. */
export async function bareLoop(task: BareLoopTask): Promise<BareLoopResult> {
  const child = spawnBound(process.execPath, [program, JSON.stringify(task)], { cwd: process.cwd(), output: 'pipe' });
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('node gave no pipes');
  const [output, errors] = await Promise.all([text(stdout), text(stderr), once(child, 'close')]);
  if (child.exitCode !== 0) throw new Error(`the bare loop failed: ${errors}`);
  return bareLoopResult.parse(JSON.parse(output));
}
