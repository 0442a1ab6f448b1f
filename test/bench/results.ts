import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, loadavg, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { styleText } from 'node:util';
import { median } from './statistics.ts';

/** One measured figure. Of several samples the median is the figure, unless it is a percentile of its own. */
export interface Figure {
  readonly part: string;
  readonly name: string;
  readonly unit: string;
  readonly value: number;
  readonly samples?: readonly number[];
  /** What no program could better on this machine, or what it is measured against; from the same run. */
  readonly limit?: { readonly name: string; readonly value: number };
  readonly target?: Target;
}

/** `ratio` is the value divided by the limit. */
type Target =
  | { readonly of: 'value' | 'ratio'; readonly atLeast: number }
  | { readonly of: 'value' | 'ratio'; readonly atMost: number };

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
  readonly commit: string;
  /** One-minute load averages: something else at work makes all times longer. */
  readonly loadBefore: number;
  readonly loadAfter: number;
}

/** Gathers figures; says each on stderr as it comes. */
export class Results {
  readonly #figures: Figure[] = [];
  readonly #began = new Date();
  readonly #loadBefore = loadavg()[0] ?? Number.NaN;

  add(figure: Figure): void {
    this.#figures.push(figure);
    console.error(`bench: ${figure.part}: ${figure.name}: ${show(figure.value)} ${figure.unit}`);
  }

  /** As `add`, with the median of the samples as the value. */
  addMedian(samples: readonly number[], figure: Omit<Figure, 'value' | 'samples'>): void {
    this.add({ ...figure, value: median(samples), samples });
  }

  /** Of all figures with a target, those that miss it. */
  get missed(): readonly Figure[] {
    return this.#figures.filter((figure) => isMet(figure) === false);
  }

  table(): string {
    const rows = this.#figures.map((figure) => [
      figure.part,
      figure.name,
      `${show(figure.value)} ${figure.unit}`,
      figure.limit === undefined ? '' : `${show(figure.limit.value)} (${figure.limit.name})`,
      figure.limit === undefined || figure.limit.value === 0 ? '' : (figure.value / figure.limit.value).toFixed(2),
      figure.target === undefined ? '' : showTarget(figure.target),
      isMet(figure) === undefined ? '' : isMet(figure) === true ? 'met' : 'MISSED',
    ]);
    return alignedTable([['PART', 'FIGURE', 'MEASURED', 'LIMIT', 'RATIO', 'TARGET', ''], ...rows]);
  }

  /** Writes `bench-results/DATE.json` and returns its path. */
  async save(directory: string): Promise<string> {
    const path = join(directory, `${this.#began.toISOString().replaceAll(':', '').replace(/\..*/, '')}.json`);
    await mkdir(directory, { recursive: true });
    const figures = this.#figures.map((figure) => {
      const ratio = figure.limit === undefined ? undefined : figure.value / figure.limit.value;
      return { ...figure, ratio, met: isMet(figure) };
    });
    const document = { date: this.#began.toISOString(), machine: this.machine(), figures };
    await writeFile(path, `${JSON.stringify(document, undefined, 2)}\n`);
    return path;
  }

  machine(): Machine {
    return {
      cpu: cpus()[0]?.model ?? 'unknown',
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 1024 ** 3),
      system: `${platform()} ${release()}`,
      node: process.versions.node,
      commit: commit(),
      loadBefore: this.#loadBefore,
      loadAfter: loadavg()[0] ?? Number.NaN,
    };
  }
}

function commit(): string {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim();
  } catch {
    return 'unknown'; // not a checkout
  }
}

/** Undefined where there is no target. */
function isMet({ value, limit, target }: Figure): boolean | undefined {
  if (target === undefined) return undefined;
  const judged = target.of === 'value' ? value : value / (limit?.value ?? Number.NaN);
  return 'atLeast' in target ? judged >= target.atLeast : judged <= target.atMost;
}

function showTarget(target: Target): string {
  const bound = 'atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`;
  return target.of === 'ratio' ? `ratio ${bound}` : bound;
}

function show(value: number): string {
  if (Number.isInteger(value)) return value.toLocaleString('en');
  return value.toLocaleString('en', { maximumSignificantDigits: Math.abs(value) >= 100 ? 4 : 3 });
}

function alignedTable(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row, index) => {
      const line = row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  ');
      return index === 0 ? styleText('bold', line.trimEnd()) : line.trimEnd();
    })
    .join('\n');
}
