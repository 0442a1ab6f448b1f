import type { JsonObject } from '../kube/resource.ts';
import { nameAt, objectAt, textAt, timeAt, valueAt } from '../oadp/read.ts';
import { readHistory, type History } from './history.ts';
import { labelSelectorText } from './namespace-selector.ts';

/** Characters. */
const longestSelector = 4096;

const phases = ['Pending', 'Running', 'Succeeded', 'Partial', 'Failed'] as const;
export type Phase = (typeof phases)[number];

/** What is kept of a NonAdminBackupSyncRequest. Times in milliseconds since the epoch. */
export interface SyncRequestRecord {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly creationTime: number;
  /**
   * `none`: no selector. Else the selector as a list takes it, or `invalid` for one that no list takes or that is too long:
   * anybody may make requests, and all of them are kept.
   */
  readonly selector: 'none' | 'invalid' | { readonly text: string };
  readonly phase: Phase;
  readonly startTime: number | undefined;
  readonly completionTime: number | undefined;
  /** Namespace of the OADP whose nab-sync took it up. */
  readonly takenUpBy: string | undefined;
  /** Only once it was answered. */
  readonly history: History | undefined;
}

/** Never throws; undefined for what is not an object with a name. */
export function toSyncRequestRecord(request: JsonObject): SyncRequestRecord | undefined {
  const namespace = nameAt(request, 'metadata', 'namespace');
  const name = nameAt(request, 'metadata', 'name');
  if (namespace === undefined || name === undefined) return undefined;
  const generation = valueAt(request, 'metadata', 'generation');
  const phase = textAt(request, 'status', 'phase');
  return {
    namespace,
    name,
    uid: textAt(request, 'metadata', 'uid') ?? '',
    resourceVersion: textAt(request, 'metadata', 'resourceVersion') ?? '',
    generation: typeof generation === 'number' ? generation : 1,
    creationTime: timeAt(request, 'metadata', 'creationTimestamp') ?? 0,
    selector: selectorOf(request),
    phase: phases.find((known) => known === phase) ?? 'Pending',
    startTime: timeAt(request, 'status', 'startTime'),
    completionTime: timeAt(request, 'status', 'completionTime'),
    takenUpBy: nameAt(request, 'status', 'oadpNamespace'),
    history: readHistory(request),
  };
}

function selectorOf(request: JsonObject): SyncRequestRecord['selector'] {
  const selector = objectAt(request, 'spec', 'namespaceSelector');
  if (selector === undefined) return 'none';
  const text = labelSelectorText(selector);
  return text === undefined || text.length > longestSelector ? 'invalid' : { text };
}

/** The phases of an answer. */
export const finalPhases = ['Succeeded', 'Partial', 'Failed'] as const;
export type FinalPhase = (typeof finalPhases)[number];

/** Answered, for good. */
export function isFinal({ phase }: Pick<SyncRequestRecord, 'phase'>): boolean {
  return phase !== 'Pending' && phase !== 'Running';
}

/** The order in which requests are taken up. */
export function earlierFirst(a: SyncRequestRecord, b: SyncRequestRecord): number {
  return a.creationTime - b.creationTime || (a.name < b.name ? -1 : 1);
}

/** The order of answers, the newest first: by the count of syncs, since clocks differ and are set, and only then by time. */
export function newestFirst(a: SyncRequestRecord, b: SyncRequestRecord): number {
  return (
    (b.history?.attempts ?? 0) - (a.history?.attempts ?? 0) ||
    (b.completionTime ?? 0) - (a.completionTime ?? 0) ||
    b.creationTime - a.creationTime ||
    (a.name < b.name ? 1 : -1)
  );
}

/** The history that the next answer in a namespace carries on: that of its latest sync. */
export function latestHistory(requests: Iterable<SyncRequestRecord>): History | undefined {
  const [latest] = [...requests].filter(({ history }) => history !== undefined).sort(newestFirst);
  return latest?.history;
}
