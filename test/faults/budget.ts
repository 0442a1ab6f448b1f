/** How much a run of the fault suite does. Unset or empty variables leave the small share that `make test` takes. */
export interface FaultBudget {
  /** Only this seed, as often as `rounds` says. */
  readonly seed: number | undefined;
  readonly rounds: number;
  /** Rounds go on until so long has passed; 0 = as many as `rounds` says. */
  readonly minutes: number;
  /** The long forms of single cases. */
  readonly long: boolean;
}

const shortRounds = 3;

/**
 * How long something may take at most that is stated to take `ms`. The long form holds nab-sync to what is stated; in
 * `make test` the machine is anybody's, so a figure is printed there and only what is far off fails.
 */
export function stated(ms: number): number {
  return faultBudget().long ? ms : 6 * ms;
}

/** Reads FAULT_SEED, FAULT_ROUNDS and FAULT_MINUTES; throws a RangeError on what is no whole number. */
export function faultBudget(env: NodeJS.ProcessEnv = process.env): FaultBudget {
  const seed = wholeNumber(env, 'FAULT_SEED');
  const rounds = wholeNumber(env, 'FAULT_ROUNDS');
  const minutes = wholeNumber(env, 'FAULT_MINUTES');
  return {
    seed,
    rounds: rounds ?? (seed === undefined ? shortRounds : 1),
    minutes: minutes ?? 0,
    long: minutes !== undefined && minutes > 0,
  };
}

function wholeNumber(env: NodeJS.ProcessEnv, name: string): number | undefined {
  const text = env[name] ?? '';
  if (text === '') return undefined;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(`${name} must be a whole number, got "${text}"`);
}
