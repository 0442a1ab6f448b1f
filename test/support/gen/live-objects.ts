import { randomUUID } from 'node:crypto';
import type { JsonObject } from '../../../src/kube/resource.ts';
import * as usual from './api-objects.ts';
import { day, hour, minute } from './api-objects.ts';
import type { NonAdminBackupShape, ObjectShape, VeleroBackupShape } from './api-objects.ts';

/**
 * The builders of api-objects.ts for a real server: in the given OADP namespace, with times that lie around now, without the
 * fields that only a server gives. `Objects.create` takes what they make, status included.
 */
export interface LiveObjects {
  /** A completed Backup of `namespace`, as the NAC made it and Velero finished it yesterday. */
  backup(shape: VeleroBackupShape & { readonly namespace: string }): JsonObject;
  /** The admin's default location. Velero has read it since any test began, so that its backups need not wait. */
  storageLocation(shape?: ObjectShape): JsonObject;
  /** The location that the NAC made for NABSL `bucket` of `namespace`. */
  ownedStorageLocation(shape: Parameters<typeof usual.ownedStorageLocation>[0] & { namespace: string }): JsonObject;
  /** That NABSL. */
  nonAdminStorageLocation(
    shape: Parameters<typeof usual.nonAdminStorageLocation>[0] & { namespace: string },
  ): JsonObject;
  /** A NAB as the NAC leaves it; made by its user unless `syncedFrom` says otherwise. */
  nonAdminBackup(shape: NonAdminBackupShape & { readonly namespace: string }): JsonObject;
  deleteRequest(shape: Parameters<typeof usual.deleteRequest>[0]): JsonObject;
  /** A DataProtectionApplication; `nonAdmin` becomes spec.nonAdmin. */
  dataProtectionApplication(nonAdmin?: JsonObject, spec?: JsonObject): JsonObject;
}

const accepted = { type: 'Accepted', status: 'True', reason: 'BackupAccepted', message: 'backup accepted' };

export function liveObjects(oadpNamespace: string): LiveObjects {
  const bucket = { provider: 'aws', objectStorage: { bucket: 'backups' } };
  // Metadata is laid over that of the usual builders: undefined takes away what the server sets itself.
  const inOadp = { namespace: oadpNamespace, uid: undefined, resourceVersion: undefined, creationTimestamp: undefined };
  const asCreated = { uid: undefined, resourceVersion: undefined };
  return {
    backup(shape) {
      const { namespace, name = 'daily' } = shape;
      return usual.veleroBackup({
        ...shape,
        nacuuid: shape.nacuuid ?? nacuuid(namespace, name),
        metadata: { ...inOadp, ...shape.metadata },
        status: {
          startTimestamp: fromNow(-day - minute),
          completionTimestamp: fromNow(-day),
          expiration: fromNow(29 * day),
          ...shape.status,
        },
      });
    },
    storageLocation: (shape = {}) =>
      usual.storageLocation({
        ...shape,
        metadata: { ...inOadp, ...shape.metadata },
        spec: { ...bucket, ...shape.spec },
        status: { lastSyncedTime: fromNow(hour), ...shape.status },
      }),
    ownedStorageLocation: (shape) =>
      usual.ownedStorageLocation({
        name: `${shape.namespace}-bucket-1`,
        ...shape,
        metadata: { ...inOadp, ...shape.metadata },
        spec: { ...bucket, ...shape.spec },
        status: { lastSyncedTime: fromNow(hour), ...shape.status },
      }),
    nonAdminStorageLocation(shape) {
      const id = shape.nacuuid ?? `${shape.namespace}-bucket-1`;
      return usual.nonAdminStorageLocation({
        ...shape,
        nacuuid: id,
        metadata: { ...asCreated, ...shape.metadata },
        spec: { backupStorageLocationSpec: bucket, ...shape.spec },
        status: {
          veleroBackupStorageLocation: { nacuuid: id, name: id, namespace: oadpNamespace },
          ...shape.status,
        },
      });
    },
    nonAdminBackup(shape) {
      const { namespace, name = 'daily' } = shape;
      const id = 'nacuuid' in shape ? shape.nacuuid : nacuuid(namespace, name);
      return usual.nonAdminBackup({
        ...shape,
        nacuuid: id,
        metadata: { ...asCreated, ...shape.metadata },
        status: {
          // The server insists on the time of a transition.
          conditions: [{ ...accepted, lastTransitionTime: fromNow(-hour) }],
          ...(id === undefined ? {} : { veleroBackup: { nacuuid: id, name: id, namespace: oadpNamespace } }),
          ...shape.status,
        },
      });
    },
    deleteRequest: (shape = {}) => usual.deleteRequest({ ...shape, metadata: { ...inOadp, ...shape.metadata } }),
    dataProtectionApplication: (nonAdmin = {}, spec = {}) => ({
      apiVersion: 'oadp.openshift.io/v1alpha1',
      kind: 'DataProtectionApplication',
      metadata: { name: 'dpa', namespace: oadpNamespace },
      spec: {
        configuration: { velero: { defaultPlugins: ['openshift', 'aws'] } },
        nonAdmin: { enable: true, ...nonAdmin },
        ...spec,
      },
    }),
  };
}

/** RFC 3339 of a moment so many milliseconds from now. */
export function fromNow(offsetMs: number): string {
  return new Date(Date.now() + offsetMs).toISOString().replace(/\.\d+Z$/, 'Z');
}

/**
 * An identity as the NAC makes it: namespace, name and a UUID, of which the name is cut so that all of it fits into 63
 * characters, and the namespace when even that is too long.
 */
export function nacuuid(namespace: string, name: string): string {
  const uuid = randomUUID();
  const room = 63 - uuid.length - 2;
  const cutNamespace = namespace.slice(0, room);
  const cutName = name.slice(0, Math.max(0, room - cutNamespace.length));
  return [cutNamespace, cutName, uuid].filter((part) => part !== '').join('-');
}
