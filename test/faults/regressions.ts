import { readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Scenario } from './rounds/scenario.ts';

/** A round that once failed, whole: what a seed stands for changes with the code that draws from it. */
export interface Regression {
  readonly seed: number;
  /** What was wrong, for people; to be put into better words by whoever finds the reason. */
  readonly why: string;
  readonly scenario: Scenario;
}

const file = new URL('regressions.json', import.meta.url);

const shape: z.ZodType<Regression[]> = z.array(
  z.object({ seed: z.number(), why: z.string(), scenario: z.custom<Scenario>((value) => typeof value === 'object') }),
);

export async function loadRegressions(): Promise<Regression[]> {
  return shape.parse(JSON.parse(await readFile(file, 'utf8')));
}

/** Keeps a round that has just failed, to be replayed from now on; in CI, where nobody would commit it, does nothing. */
export async function keepRegression(regression: Regression): Promise<void> {
  if (process.env['CI'] !== undefined) return;
  const known = await loadRegressions();
  if (known.some(({ seed }) => seed === regression.seed)) return;
  await writeFile(file, `${JSON.stringify([...known, regression], undefined, 2)}\n`);
}
