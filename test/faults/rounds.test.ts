import { randomInt } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { faultBudget } from './budget.ts';
import { keepRegression, loadRegressions } from './regressions.ts';
import { playRound } from './rounds/round.ts';
import { scenarioOf, shortly } from './rounds/scenario.ts';
import type { Scenario } from './rounds/scenario.ts';
import { Stage } from './stage.ts';

const budget = faultBudget();
const regressions = await loadRegressions();
const hourMs = 3_600_000;

let stage: Stage | undefined;

afterAll(async () => {
  await stage?.close();
});

/** The same stage for all rounds, as long as it can be made again what it was. */
async function freshStage(): Promise<Stage> {
  if (stage !== undefined) {
    try {
      await stage.reset();
      return stage;
    } catch {
      await stage.close();
    }
  }
  stage = await Stage.open();
  return stage;
}

/** Plays it, prints a line about it, and returns what was wrong. */
async function play(title: string, scenario: Scenario): Promise<readonly string[]> {
  const ready = await freshStage();
  const began = performance.now();
  const { problems, convergedMs, nabs, outageRate, evidence } = await playRound(ready, scenario);
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  const right = convergedMs === undefined ? 'never' : `${(convergedMs / 1_000).toFixed(1)} s after mending`;
  const outage = outageRate === 0 ? '' : `, ${outageRate.toFixed(1)} requests/s in outages`;
  const outcome = problems.length === 0 ? 'ok' : 'FAILED';
  process.stdout.write(
    `${title} ${outcome} in ${seconds} s, ${nabs} NABs right ${right}${outage}: ${shortly(scenario)}\n`,
  );
  if (problems.length === 0) return [];
  const directory = await mkdtemp(join(tmpdir(), 'nab-sync-fault-round-'));
  const files = {
    ...evidence,
    'scenario.json': JSON.stringify(scenario, undefined, 1),
    'problems.txt': problems.join('\n'),
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content);
  process.stdout.write(`  ${problems.join('\n  ')}\n  evidence: ${directory}\n`);
  return problems;
}

beforeAll(async () => {
  await freshStage();
});

it.each(regressions.map((regression) => [regression.seed, regression.why, regression.scenario] as const))(
  'seed %d, which once failed since %s, ends in the one right state',
  async (seed, _, scenario) => {
    expect(await play(`regression, seed ${seed}:`, scenario)).toEqual([]);
  },
);

it(
  'ends every random round in the one right state (field cases C2 to C16, D1, D10, D13, D15 to D17)',
  async () => {
    const began = performance.now();
    const failed: string[] = [];
    const goesOn = (round: number): boolean =>
      budget.minutes > 0 ? performance.now() - began < budget.minutes * 60_000 : round <= budget.rounds;
    for (let round = 1; goesOn(round); round += 1) {
      const seed = budget.seed ?? randomInt(2 ** 31);
      const scenario = scenarioOf(seed);
      const [problem] = await play(`round ${round}, seed ${seed}:`, scenario);
      if (problem === undefined) continue;
      failed.push(`FAULT_SEED=${seed}: ${problem}`);
      await keepRegression({ seed, why: problem, scenario });
    }
    expect(failed).toEqual([]);
  },
  24 * hourMs,
);
