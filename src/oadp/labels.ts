import type { JsonObject } from '../kube/resource.ts';
import { textAt } from './read.ts';

/**
 * The labels and annotations by which the non-admin controller (NAC) marks what it makes.
 * Source: migtools/oadp-non-admin, internal/common/constant/constant.go.
 */

/** On a Backup: the NACUUID, the identity of a non-admin backup. The NAC names the Backup like it. */
export const nabOriginNacuuidLabel = 'openshift.io/oadp-nab-origin-nacuuid';
/** On a Backup: the NAB that it was made from. */
export const nabOriginNameAnnotation = 'openshift.io/oadp-nab-origin-name';
export const nabOriginNamespaceAnnotation = 'openshift.io/oadp-nab-origin-namespace';

/** On a BackupStorageLocation: the tenant's NABSL that it was made from. */
export const nabslOriginNacuuidLabel = 'openshift.io/oadp-nabsl-origin-nacuuid';
export const nabslOriginNameAnnotation = 'openshift.io/oadp-nabsl-origin-name';
export const nabslOriginNamespaceAnnotation = 'openshift.io/oadp-nabsl-origin-namespace';

/** On a NAB: it was re-created from the Backup with this NACUUID; selects the NAC's sync path. */
export const nabSyncLabel = 'openshift.io/oadp-nab-synced-from-nacuuid';

/** On everything that the NAC makes in the OADP namespace. */
export const nacLabels: Readonly<Record<string, string>> = {
  'openshift.io/oadp': 'True',
  'app.kubernetes.io/managed-by': 'oadp-nac-controller',
};

/** Whether the NAC made the object, as far as its labels tell. */
export function bearsNacLabels(object: JsonObject): boolean {
  return Object.entries(nacLabels).every(([key, value]) => textAt(object, 'metadata', 'labels', key) === value);
}

/** `nacLabels` as a label selector: the one way in which Backups are chosen. */
export const nacLabelSelector = Object.entries(nacLabels)
  .map(([key, value]) => `${key}=${value}`)
  .join(',');
