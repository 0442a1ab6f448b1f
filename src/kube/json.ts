import type { JsonObject } from './resource.ts';

/** Whether a value out of a JSON text is an object, as opposed to an array, a scalar or null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object under `key`, or an empty one where something else or nothing stands: reads on never throw. */
export function objectAt(object: JsonObject, key: string): JsonObject {
  const value = Object.hasOwn(object, key) ? object[key] : undefined;
  return isJsonObject(value) ? value : {};
}

/** The non-empty string under `key`. */
export function stringAt(object: JsonObject, key: string): string | undefined {
  const value = Object.hasOwn(object, key) ? object[key] : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/**
 * A text from outside as it may stand in a log line, an event or an error: one line, no control characters, no
 * direction marks, at most `limit` characters.
 */
export function printable(text: string, limit: number): string {
  // A message can be megabytes; only the part that can still matter is looked at.
  const clean = text
    .slice(0, limit * 4)
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim();
  const characters = Array.from(clean);
  return characters.length <= limit ? clean : `${characters.slice(0, limit - 1).join('')}…`;
}
