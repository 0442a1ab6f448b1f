import { setImmediate as turn } from 'node:timers/promises';
import { pino } from 'pino';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import { Reflector, type ReflectorOptions } from '../../../src/kube/reflector.ts';
import { backups } from './kinds.ts';

/** Over a ScriptedApi: keeps the `value` of each object by its name, and says nothing unless given a log. */
export function scriptedReflector(
  options: Pick<ReflectorOptions<unknown>, 'client' | 'store' | 'clock' | 'random'> &
    Partial<ReflectorOptions<unknown>>,
): Reflector<unknown> {
  return new Reflector<unknown>({
    resource: backups,
    key: (object) => stringAt(objectAt(object, 'metadata'), 'name'),
    project: (object) => object['value'],
    log: pino({ level: 'silent' }),
    ...options,
  });
}

/** Lets everything that is due have its turn. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 5; round += 1) await turn();
}
