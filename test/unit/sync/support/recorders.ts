import pino, { type Logger } from 'pino';
import { isJsonObject } from '../../../../src/kube/json.ts';
import type { JsonObject } from '../../../../src/kube/resource.ts';
import type { EventSink } from '../../../../src/sync/notices.ts';

export type Told = Parameters<EventSink['record']>[0];

/** Keeps the events that are told. */
export function eventRecorder(): EventSink & { readonly told: Told[] } {
  const told: Told[] = [];
  return {
    told,
    record: (event) => {
      told.push(event);
    },
  };
}

/** A log whose lines a test can read. */
export function logRecorder(): { readonly log: Logger; readonly lines: JsonObject[] } {
  const lines: JsonObject[] = [];
  const log = pino(
    { level: 'debug', base: null, timestamp: false },
    {
      write: (text: string) => {
        const line: unknown = JSON.parse(text);
        if (isJsonObject(line)) lines.push(line);
      },
    },
  );
  return { log, lines };
}
