/**
 * A process with an elector, for tests that kill and stop it for real. Arguments: kubeconfig, identity, and the times as JSON.
 * While it leads it acts every 20 ms, asking isLeading before each act as a writer would. Tells in JSON lines what happens and when.
 * SIGTERM stops it in good order.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { z } from 'zod';
import { KubeClient } from '../../src/kube/client.ts';
import { loadConnection } from '../../src/kube/connection.ts';
import { LeaderElector } from '../../src/kube/leader-elector.ts';

const [kubeconfig = '', identity = '', timesText = ''] = process.argv.slice(2);
const times = z
  .object({
    leaseDurationMs: z.number(),
    renewDeadlineMs: z.number(),
    retryPeriodMs: z.number(),
    requestTimeoutMs: z.number(),
  })
  .parse(JSON.parse(timesText));

const stop = new AbortController();
process.once('SIGTERM', () => {
  stop.abort();
});

function tell(what: string): void {
  console.log(JSON.stringify({ what, at: Date.now() }));
}

const client = new KubeClient(loadConnection({ kubeconfig }));
const elector = new LeaderElector({
  client,
  namespace: 'openshift-adp',
  name: 'nab-sync',
  identity,
  log: pino({ level: 'silent' }),
  ...times,
});
elector.onState(({ leader, holder }) => {
  if (!leader && holder !== undefined && holder !== identity) tell('sees a leader');
});

const { ended } = await elector.run({
  signal: stop.signal,
  lead: async (signal) => {
    tell('leads');
    while (!signal.aborted) {
      if (elector.isLeading()) tell('acts');
      await sleep(20);
    }
  },
});
tell(ended);
await client.close();
