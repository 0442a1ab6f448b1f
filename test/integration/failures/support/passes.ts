import type { z } from 'zod';
import { runNabSync } from '../../../support/nab-sync.ts';
import type { MainJob } from '../../main-job/support/main-job.ts';
import { onceReport } from '../../main-job/support/reports.ts';

export interface Pass {
  readonly exitCode: number | null;
  readonly report: z.infer<typeof onceReport>;
  readonly stderr: string;
}

/** Runs `once` over some namespaces and reads its report, whatever the exit code. */
export async function passOver(
  job: MainJob,
  namespaces: readonly string[],
  kubeconfig = job.kubeconfig,
): Promise<Pass> {
  const { exitCode, stdout, stderr } = await runNabSync(
    ['once', '-o', 'json', '--no-leader-elect', '-n', namespaces.join(',')],
    { kubeconfig, oadpNamespace: job.oadpNamespace },
  );
  try {
    return { exitCode, report: onceReport.parse(JSON.parse(stdout)), stderr };
  } catch (error) {
    throw new Error(`once printed no report:\n${stdout}\n${stderr}`, { cause: error });
  }
}
