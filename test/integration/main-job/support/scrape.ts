import { z } from 'zod';
import type { Controller } from './main-job.ts';

const listening = z.object({ address: z.string(), pages: z.array(z.string()) });

/** What a page of the controller answers. */
export interface Page {
  readonly status: number;
  readonly body: string;
}

/** Gets `/metrics`, `/livez` or `/readyz` from where the log says that it is served; waits for that line. */
export async function page(controller: Controller, path: string): Promise<Page> {
  const { address } = listening.parse(await controller.line('listening', { pages: [path] }));
  const answer = await fetch(`http://${address}${path}`, { signal: AbortSignal.timeout(5_000) });
  return { status: answer.status, body: await answer.text() };
}

/** The metrics of a controller at one moment. */
export interface Metrics {
  /** The value of one series, spelt as on the page: `name` or `name{label="value"}`. Throws if there is none. */
  value(series: string): number;
  readonly text: string;
}

export async function metricsOf(controller: Controller): Promise<Metrics> {
  const { body } = await page(controller, '/metrics');
  return {
    text: body,
    value(series) {
      const line = body.split('\n').find((candidate) => candidate.startsWith(`${series} `));
      if (line === undefined) throw new Error(`there is no series ${series} in:\n${body}`);
      return Number(line.slice(series.length + 1));
    },
  };
}
