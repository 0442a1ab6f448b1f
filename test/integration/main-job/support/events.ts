import { z } from 'zod';
import { eventResource } from '../../../../src/kube/event-object.ts';
import type { Objects } from '../../../support/objects.ts';

const event = z.object({
  type: z.string(),
  reason: z.string(),
  message: z.string(),
  count: z.int(),
  involvedObject: z.object({ kind: z.string(), name: z.string(), uid: z.string().optional() }),
  reportingComponent: z.string(),
});

export type SeenEvent = z.infer<typeof event>;

/** What nab-sync told in a namespace, sorted by object and reason. */
export async function eventsIn(objects: Objects, namespace: string): Promise<SeenEvent[]> {
  const events = (await objects.list(eventResource, { namespace })).map((object) => event.parse(object));
  const key = ({ involvedObject, reason }: SeenEvent): string => `${involvedObject.name} ${reason}`;
  return events
    .filter(({ reportingComponent }) => reportingComponent === 'nab-sync')
    .sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

/** `NAME REASON xCOUNT` for each of those events. */
export async function eventLines(objects: Objects, namespace: string): Promise<string[]> {
  const events = await eventsIn(objects, namespace);
  return events.map(({ involvedObject, reason, count }) => `${involvedObject.name} ${reason} x${count}`);
}
