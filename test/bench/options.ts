import { SetupError } from '../support/control-plane/setup-error.ts';

/** The parts of the benchmark, in the order in which they run. */
const parts = ['cold', 'restore', 'reappearance', 'scale', 'steady', 'peer'] as const;
export type Part = (typeof parts)[number];

export interface BenchOptions {
  readonly parts: readonly Part[];
  /** Measurements of which the median counts. */
  readonly runs: number;
  /** NABs to restore, and the namespaces that they are spread over. */
  readonly restore: { readonly backups: number; readonly namespaces: number };
  readonly reappearance: { readonly rounds: number; readonly backups: number };
  /** Numbers of Backups, growing. */
  readonly scaleSteps: readonly number[];
  readonly steadyBackups: number;
  readonly steadySeconds: number;
  /** Program of the non-admin controller; without it there is no peer. */
  readonly nacBinary: string | undefined;
  /** Environment for nab-sync, beside what every start gets. */
  readonly extraEnvironment: Readonly<Record<string, string>>;
}

/**
 * `BENCH` names parts (default all), `BENCH_SCALE` is a factor on every size, `BENCH_RUNS` the number of measurements,
 * `BENCH_ENV` gives nab-sync environment variables (`A=1,B=2`), to compare settings. Throws SetupError.
 */
export function benchOptions(env: Readonly<Record<string, string | undefined>>): BenchOptions {
  const scale = positive(env, 'BENCH_SCALE', 1);
  const size = (full: number, least: number): number => Math.max(least, Math.round(full * scale));
  const nacBinary = env['NAC_BINARY'] === '' ? undefined : env['NAC_BINARY'];
  return {
    parts: chosenParts(env['BENCH'], nacBinary !== undefined),
    runs: Math.max(1, Math.round(positive(env, 'BENCH_RUNS', 5))),
    restore: { backups: size(2000, 40), namespaces: size(50, 2) },
    reappearance: { rounds: size(200, 5), backups: 20 },
    scaleSteps: [1000, 10_000, 50_000].map((full) => size(full, 40)),
    steadyBackups: size(10_000, 40),
    steadySeconds: positive(env, 'BENCH_STEADY_SECONDS', 60),
    nacBinary,
    extraEnvironment: Object.fromEntries(
      (env['BENCH_ENV'] ?? '')
        .split(',')
        .filter((text) => text !== '')
        .map((text) => {
          const [name = '', ...value] = text.split('=');
          return [name, value.join('=')];
        }),
    ),
  };
}

function chosenParts(text: string | undefined, hasPeer: boolean): readonly Part[] {
  if (text === undefined || text === '') return parts.filter((part) => part !== 'peer' || hasPeer);
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !parts.some((part) => part === name));
  if (unknown !== undefined) throw new SetupError(`BENCH: there is no part '${unknown}', only ${parts.join(', ')}`);
  if (names.includes('peer') && !hasPeer) {
    throw new SetupError('BENCH: the part peer needs NAC_BINARY, the program of the non-admin controller');
  }
  return parts.filter((part) => names.includes(part));
}

function positive(env: Readonly<Record<string, string | undefined>>, name: string, usual: number): number {
  const text = env[name];
  if (text === undefined || text === '') return usual;
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new SetupError(`${name} must be a positive number, not '${text}'`);
}
