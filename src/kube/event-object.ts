import { createHash } from 'node:crypto';
import { printable } from './json.ts';
import { apiVersion } from './resource.ts';
import type { JsonObject, Resource } from './resource.ts';

export const eventResource: Resource = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

/** The object that an event is about. */
export interface Regarding {
  readonly apiVersion: string;
  readonly kind: string;
  /** Left out for cluster-scoped kinds. */
  readonly namespace?: string | undefined;
  readonly name: string;
  /** `kubectl describe` shows an event only where this is the object's own. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** Something worth telling the owner of an object. */
export interface EventFact {
  readonly regarding: Regarding;
  readonly type: 'Normal' | 'Warning';
  /** CamelCase, for programs; at most 128 characters are sent. */
  readonly reason: string;
  /** One sentence for people; at most 1,024 bytes are sent. */
  readonly message: string;
  /** Tells two facts of one reason about one object apart. The same key told again makes no second event. */
  readonly dedupeKey?: string | undefined;
}

/** Who speaks. */
export interface EventSource {
  readonly component: string;
  readonly instance: string;
}

/** How often a fact was seen, and when; times in milliseconds since the epoch. */
export interface Sightings {
  readonly count: number;
  readonly first: number;
  readonly last: number;
}

/** The API's own limits: pkg/apis/core/validation/events.go (stricter for events.k8s.io than for core, kept for both). */
const maxReason = 128;
const maxInstance = 128;
const maxMessageBytes = 1_024;
/** Names may have 253 characters; this much is the object's own, the rest is the hash. */
const maxStem = 200;

const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const dnsSubdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * The namespace that an event belongs in; undefined when the object claims one that cannot exist.
 *
 * The API server wants `involvedObject.namespace` to equal the event's namespace, and puts events about cluster-scoped
 * objects into `default`. An event about a Namespace is for the people in it, who cannot read `default`; so it goes
 * into that very namespace, and its involvedObject says so, which the API server accepts. It shows in `kubectl get events -n NS`
 * and `kubectl events -n NS --for namespace/NS`. `kubectl describe namespace` shows no events wherever they are.
 */
export function eventNamespace({ apiVersion, kind, namespace, name }: Regarding): string | undefined {
  const home = namespace ?? (apiVersion === 'v1' && kind === 'Namespace' ? name : 'default');
  return dnsLabel.test(home) ? home : undefined;
}

/**
 * A name that the same fact always has, so that a restart, a retry and a second writer find the event instead of making
 * another. Starts with the object's name for people who list events; the hash alone makes it unique.
 */
export function eventName({ regarding, reason, dedupeKey = '' }: EventFact): string {
  const { apiVersion, kind, namespace = '', name } = regarding;
  const hash = createHash('sha256')
    .update(JSON.stringify([apiVersion, kind, namespace, name, reason, dedupeKey]))
    .digest('hex')
    .slice(0, 20);
  const stem = dnsSubdomain.test(name) ? name.slice(0, maxStem).replace(/[-.]+$/, '') : 'event';
  return `${stem}.${hash}`;
}

/** The body that makes the event. */
export function newEvent(
  name: string,
  namespace: string,
  fact: EventFact,
  seen: Sightings,
  by: EventSource,
): JsonObject {
  const { regarding } = fact;
  return {
    apiVersion: apiVersion(eventResource),
    kind: eventResource.kind,
    metadata: { name, namespace },
    involvedObject: {
      apiVersion: regarding.apiVersion,
      kind: regarding.kind,
      ...(namespace === 'default' && regarding.namespace === undefined ? {} : { namespace }),
      name: regarding.name,
      ...version(regarding),
    },
    reason: fact.reason.slice(0, maxReason),
    ...whatChanges(fact, seen, by),
    firstTimestamp: seconds(seen.first),
    count: seen.count,
    reportingComponent: by.component,
    source: { component: by.component },
  };
}

/**
 * The merge patch for a fact that was told before. The object may have been made anew since, so the event is pointed at
 * the one that is there now: its count then tells how often that happened. Without `count` the count stays as it is.
 */
export function repeatedEvent(fact: EventFact, seen: Sightings, by: EventSource, count?: number): JsonObject {
  const about = version(fact.regarding);
  return {
    ...whatChanges(fact, seen, by),
    ...(Object.keys(about).length === 0 ? {} : { involvedObject: about }),
    ...(count === undefined ? {} : { count }),
  };
}

/** How often the API server says that the fact was told; at least once, or there would be no event. */
export function countOf(event: JsonObject): number {
  const count = event['count'];
  return typeof count === 'number' && Number.isSafeInteger(count) && count > 0 ? count : 1;
}

function whatChanges({ type, message }: EventFact, seen: Sightings, by: EventSource): JsonObject {
  return {
    type,
    message: fitted(message),
    lastTimestamp: seconds(seen.last),
    reportingInstance: by.instance.slice(0, maxInstance),
  };
}

function version({ uid, resourceVersion }: Regarding): JsonObject {
  return { ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }) };
}

/** One printable line of at most 1,024 bytes; a character is never cut in two. */
function fitted(message: string): string {
  const line = printable(message, maxMessageBytes);
  if (Buffer.byteLength(line) <= maxMessageBytes) return line;
  const { read } = new TextEncoder().encodeInto(line, new Uint8Array(maxMessageBytes - Buffer.byteLength('…')));
  return `${line.slice(0, read)}…`;
}

/** RFC 3339 with whole seconds, as a metav1.Time is stored. */
function seconds(time: number): string {
  return new Date(time).toISOString().replace(/\.\d+Z$/, 'Z');
}
