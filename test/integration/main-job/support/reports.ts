import { z } from 'zod';
import { count, outcomeCounts } from '../../../support/documented-json.ts';

/** The documented JSON of the commands, strict: an additional field is a change of the interface. */

const actions = ['create', 'repair', 'none', 'skip', 'waiting', 'conflict'] as const;

const decision = z.strictObject({
  backup: z.string(),
  namespace: z.string(),
  name: z.string(),
  nacuuid: z.string(),
  action: z.string(),
  reason: z.string(),
  message: z.string().min(1),
});

export const planReport = z.strictObject({
  decisions: z.array(decision),
  counts: z.strictObject(Object.fromEntries(actions.map((action) => [action, count]))),
});

const time = z.iso.datetime();

export const onceReport = z.strictObject({
  outcome: z.enum(['Succeeded', 'Partial', 'Failed', 'Skipped']),
  startTime: time,
  completionTime: time,
  counts: outcomeCounts,
  reasons: z.record(z.string(), z.int().positive()),
  failures: z.array(
    z.strictObject({ namespace: z.string(), name: z.string(), reason: z.string(), message: z.string() }),
  ),
  holder: z.string().optional(),
});

export const explainReport = z.strictObject({
  explanations: z.array(
    z.strictObject({
      backup: z.string(),
      namespace: z.string(),
      name: z.string(),
      nacuuid: z.string(),
      decision: decision.pick({ action: true, reason: true, message: true }),
      trail: z.array(
        z.strictObject({
          rule: z.int().positive(),
          asks: z.string().min(1),
          outcome: z.enum(['passed', 'decided', 'notReached']),
          values: z.record(z.string(), z.string()),
        }),
      ),
    }),
  ),
});
