import { objectAt, stringAt } from './json.ts';
import { apiVersion } from './resource.ts';
import type { JsonObject, Resource } from './resource.ts';

export const leaseResource: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};

/** The largest value that leaseTransitions (an int32) can take. */
const maxTransitions = 2 ** 31 - 1;

/** What an elector needs of a Lease. Times stay texts: they are compared, never computed with. */
export interface LeaseRecord {
  /** Empty: nobody holds it. */
  readonly holder: string;
  /** For how long the holder says that the Lease holds without being renewed; undefined where it says nothing usable. */
  readonly durationMs: number | undefined;
  readonly renewTime: string;
  readonly acquireTime: string;
  readonly transitions: number;
  readonly resourceVersion: string;
}

/** A Lease as the API server sent it. Never throws: missing and malformed fields read as empty, zero or undefined. */
export function readLease(lease: JsonObject): LeaseRecord {
  const spec = objectAt(lease, 'spec');
  const { leaseDurationSeconds: seconds, leaseTransitions: transitions } = spec;
  return {
    holder: stringAt(spec, 'holderIdentity') ?? '',
    durationMs: isCount(seconds) && seconds > 0 ? seconds * 1_000 : undefined,
    renewTime: stringAt(spec, 'renewTime') ?? '',
    acquireTime: stringAt(spec, 'acquireTime') ?? '',
    transitions: isCount(transitions) ? transitions : 0,
    resourceVersion: stringAt(objectAt(lease, 'metadata'), 'resourceVersion') ?? '',
  };
}

/**
 * Whether two looks at a Lease show that somebody wrote it in between. The resourceVersion alone would do on a server
 * that never loses a write; the rest covers one that was put back to an older etcd and counts through the same numbers.
 */
export function sameVersion(one: LeaseRecord, other: LeaseRecord): boolean {
  return (
    one.resourceVersion === other.resourceVersion &&
    one.holder === other.holder &&
    one.renewTime === other.renewTime &&
    one.acquireTime === other.acquireTime &&
    one.transitions === other.transitions
  );
}

/** What a holder writes about itself. */
export interface LeaseClaim {
  readonly identity: string;
  readonly durationMs: number;
  /** The time of day in milliseconds since the epoch, for people who read the Lease; no elector judges by it. */
  readonly now: number;
}

/** The body that creates the Lease with its first holder. */
export function newLease(name: string, namespace: string, claim: LeaseClaim): JsonObject {
  return {
    apiVersion: apiVersion(leaseResource),
    kind: leaseResource.kind,
    metadata: { name, namespace },
    spec: {
      holderIdentity: claim.identity,
      leaseDurationSeconds: claim.durationMs / 1_000,
      acquireTime: microTime(claim.now),
      renewTime: microTime(claim.now),
      leaseTransitions: 0,
    },
  };
}

/**
 * The body that takes or renews the Lease. It carries the resourceVersion that was read, so that the API server
 * refuses it if anybody wrote in between; labels, annotations and fields unknown to us go back as they came.
 */
export function heldLease(lease: JsonObject, claim: LeaseClaim): JsonObject {
  const { holder, acquireTime, transitions } = readLease(lease);
  const renewed = holder === claim.identity;
  return withSpec(lease, {
    holderIdentity: claim.identity,
    leaseDurationSeconds: claim.durationMs / 1_000,
    acquireTime: renewed && acquireTime !== '' ? acquireTime : microTime(claim.now),
    renewTime: microTime(claim.now),
    leaseTransitions: renewed ? transitions : Math.min(transitions + 1, maxTransitions),
  });
}

/** The body that gives the Lease back: free at once for us, and after a second for electors that wait in any case. */
export function releasedLease(lease: JsonObject, now: number): JsonObject {
  return withSpec(lease, { holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(now) });
}

/** Milliseconds since the epoch as a V1MicroTime: the API server wants six digits of fraction and answers 400 to the three of a Date (field case C17). */
function microTime(time: number): string {
  return new Date(time).toISOString().replace(/Z$/, '000Z');
}

function withSpec(lease: JsonObject, spec: JsonObject): JsonObject {
  return { ...lease, spec: { ...objectAt(lease, 'spec'), ...spec } };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
