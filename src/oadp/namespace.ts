import type { JsonObject } from '../kube/resource.ts';
import { objectAt, textAt } from './read.ts';

/** What is kept of a Namespace. */
export interface NamespaceRecord {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly terminating: boolean;
  /** The admin's namespace selector matches its labels. */
  readonly selected: boolean;
}

/** Says whether a set of labels is selected. */
export type LabelPredicate = (labels: Readonly<Record<string, string>>) => boolean;

function labelsOf(object: JsonObject): Record<string, string> {
  const labels = Object.entries(objectAt(object, 'metadata', 'labels') ?? {});
  return Object.fromEntries(labels.flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])));
}

export function toNamespaceRecord(namespace: JsonObject, selector: LabelPredicate): NamespaceRecord {
  return {
    uid: textAt(namespace, 'metadata', 'uid') ?? '',
    resourceVersion: textAt(namespace, 'metadata', 'resourceVersion') ?? '',
    terminating:
      textAt(namespace, 'metadata', 'deletionTimestamp') !== undefined ||
      textAt(namespace, 'status', 'phase') === 'Terminating',
    selected: selector(labelsOf(namespace)),
  };
}
