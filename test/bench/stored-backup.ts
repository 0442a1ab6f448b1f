import type { JsonObject } from '../../src/kube/resource.ts';
import { liveObjects } from '../support/gen/live-objects.ts';

export const oadpNamespace = 'openshift-adp';

const gen = liveObjects(oadpNamespace);

/** Where a Backup's NAB belongs. */
export interface Place {
  readonly namespace: string;
  readonly name: string;
}

/**
 * A Backup as the NAC makes it and Velero 1.18 finishes it, with the fields that they fill in: about 4 KB as the API server
 * keeps it, which is what lists, watches and creates cost by.
 */
export function storedBackup({ namespace, name }: Place): JsonObject {
  return gen.backup({
    namespace,
    name,
    labels: { 'velero.io/storage-location': 'default' },
    annotations: {
      'openshift.io/oadp-nab-origin-name': name,
      'openshift.io/oadp-nab-origin-namespace': namespace,
      'velero.io/resource-timeout': '10m0s',
      'velero.io/source-cluster-k8s-gitversion': 'v1.33.4',
      'velero.io/source-cluster-k8s-major-version': '1',
      'velero.io/source-cluster-k8s-minor-version': '33',
    },
    spec: {
      csiSnapshotTimeout: '10m0s',
      defaultVolumesToFsBackup: false,
      excludedClusterScopedResources: [
        'securitycontextconstraints',
        'clusterroles',
        'clusterrolebindings',
        'priorityclasses',
        'customresourcedefinitions',
        'virtualmachineclusterinstancetypes',
        'virtualmachineclusterpreferences',
      ],
      excludedNamespaceScopedResources: [
        'nonadminbackups',
        'nonadminrestores',
        'nonadminbackupstoragelocations',
        'nonadmindownloadrequests',
      ],
      hooks: {},
      itemOperationTimeout: '4h0m0s',
      metadata: {},
      snapshotMoveData: false,
      ttl: '720h0m0s',
    },
    status: {
      formatVersion: '1.1.0',
      hookStatus: {},
      progress: { itemsBackedUp: 184, totalItems: 184 },
      version: 1,
    },
  });
}

/** `count` places, spread evenly over namespaces called `PREFIX-0000` and so on. */
export function places(prefix: string, count: number, namespaces: number): Place[] {
  return Array.from({ length: count }, (_, index) => ({
    namespace: `${prefix}-${(index % namespaces).toString().padStart(4, '0')}`,
    name: `backup-${Math.floor(index / namespaces)
      .toString()
      .padStart(4, '0')}`,
  }));
}
