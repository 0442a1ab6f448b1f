import { request } from 'undici';
import { z } from 'zod';
import { eventually } from '../support/eventually.ts';
import type { NabSyncProcess } from '../support/nab-sync.ts';

/** One sample of a metrics page. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The metrics of a process at one moment. */
export class MetricsPage {
  readonly #samples: readonly Sample[];

  constructor(text: string) {
    this.#samples = text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map(toSample);
  }

  /** Sum over all samples of that name whose labels pass; 0 where there is none. */
  sum(name: string, accept: (labels: Readonly<Record<string, string>>) => boolean = () => true): number {
    return this.#samples
      .filter((sample) => sample.name === name && accept(sample.labels))
      .reduce((sum, { value }) => sum + value, 0);
  }

  /** Requests to the API server that are over. */
  requests(accept: (labels: Readonly<Record<string, string>>) => boolean = () => true): number {
    return this.sum('nab_sync_requests_total', accept);
  }
}

function toSample(line: string): Sample {
  const [, name = '', labels = '', value = ''] = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line) ?? [];
  return {
    name,
    labels: Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = '', text = '']) => [key, text])),
    value: Number(value),
  };
}

const logLine = z.object({ msg: z.string(), pages: z.array(z.string()).optional(), address: z.string().optional() });

/** Both addresses are told in the first lines of a log that may have become long. */
const startOfLog = 10_000;

/** Where the process serves a page, as its log says. Waits until it does. */
async function addressOf(process: NabSyncProcess, page: string): Promise<string> {
  return await eventually(() => {
    for (const line of process.stderr.slice(0, startOfLog).split('\n')) {
      if (!line.includes('"listening"')) continue;
      const { pages, address } = logLine.parse(JSON.parse(line));
      if (address !== undefined && pages?.includes(page) === true) return address;
    }
    throw new Error(`nab-sync serves no ${page}`);
  }, 20_000);
}

export async function metricsOf(process: NabSyncProcess): Promise<MetricsPage> {
  const { body } = await request(`http://${await addressOf(process, '/metrics')}/metrics`);
  return new MetricsPage(await body.text());
}

/** Resolves when /readyz says so: every kind has been listed. */
export async function untilReady(process: NabSyncProcess, timeoutMs: number): Promise<void> {
  const address = await addressOf(process, '/readyz');
  await eventually(
    async () => {
      const { statusCode, body } = await request(`http://${address}/readyz`);
      const text = await body.text();
      if (statusCode !== 200) throw new Error(text);
    },
    timeoutMs,
    20,
  );
}
