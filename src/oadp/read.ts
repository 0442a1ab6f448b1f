import get from 'lodash/get.js';
import isPlainObject from 'lodash/isPlainObject.js';

/**
 * Defensive reads of objects from the API. Nulls and wrong types anywhere on the way read as absent, never as an error:
 * one broken object may not end a pass for the others (field case B24).
 */

/** The value at a path, or undefined. */
export function valueAt(object: unknown, ...path: string[]): unknown {
  return get(object, path);
}

/** The string at a path; anything else there reads as absent. */
export function textAt(object: unknown, ...path: string[]): string | undefined {
  const value = valueAt(object, ...path);
  return typeof value === 'string' ? value : undefined;
}

/** As `textAt`, with the empty string absent too. */
export function nameAt(object: unknown, ...path: string[]): string | undefined {
  const text = textAt(object, ...path);
  return text === '' ? undefined : text;
}

/** RFC 3339, the only form in which Kubernetes writes times; Date.parse alone would take "2026 (about)" for one. */
const rfc3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

/** The time at a path in milliseconds since the epoch; anything but an RFC 3339 time reads as absent. */
export function timeAt(object: unknown, ...path: string[]): number | undefined {
  const text = textAt(object, ...path) ?? '';
  const milliseconds = rfc3339.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(milliseconds) ? undefined : milliseconds;
}

/** A time as Kubernetes writes it: RFC 3339, UTC, whole seconds. */
export function rfc3339Seconds(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The array at a path, or an empty one. */
export function listAt(object: unknown, ...path: string[]): readonly unknown[] {
  const value: unknown = valueAt(object, ...path);
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

/** The JSON object at a path; null, arrays and scalars read as absent. */
export function objectAt(object: unknown, ...path: string[]): Readonly<Record<string, unknown>> | undefined {
  const value = valueAt(object, ...path);
  return isPlainObject(value) ? (value as Readonly<Record<string, unknown>>) : undefined;
}
