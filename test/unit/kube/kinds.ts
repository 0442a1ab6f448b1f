import type { Resource } from '../../../src/kube/resource.ts';

export const backups: Resource = {
  group: 'velero.io',
  version: 'v1',
  plural: 'backups',
  kind: 'Backup',
  namespaced: true,
};

export const namespaces: Resource = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  namespaced: false,
};
