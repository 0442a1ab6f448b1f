import sortBy from 'lodash/sortBy.js';
import type { BackupRecord } from '../oadp/backup.ts';
import { printable } from '../oadp/printable.ts';
import type { ClusterState } from './cluster-state.ts';
import { decide, trailOf, worldAt } from './decide.ts';
import type { Decision } from './reasons.ts';
import type { Explanation, PlannedDecision } from './report.ts';
import type { SyncPolicy } from './world.ts';

function identified(backup: BackupRecord): Pick<PlannedDecision, 'backup' | 'namespace' | 'name' | 'nacuuid'> {
  const { claim } = backup;
  return {
    backup: printable(backup.name, 253),
    namespace: printable(claim.namespace),
    name: printable(claim.name, 253),
    nacuuid: printable(claim.nacuuid),
  };
}

/**
 * What a pass would do now, for every labelled backup, sorted by namespace, name and Backup.
 *
 * @param namespaces only backups that claim one of these; undefined for all
 */
export function plan(
  state: ClusterState,
  policy: SyncPolicy,
  now: number,
  namespaces?: ReadonlySet<string>,
): PlannedDecision[] {
  const world = worldAt(policy, state, now);
  const planned = [...state.allBackups()]
    .filter(({ claim }) => namespaces === undefined || namespaces.has(claim.namespace ?? ''))
    .map((backup) => ({ ...identified(backup), ...decide(backup, world) }));
  return sortBy(planned, ['namespace', 'name', 'backup']);
}

/** What `explain` is asked about: the name of a Velero Backup, or where a NAB is or should be. */
export type ExplainTarget = { readonly backup: string } | { readonly namespace: string; readonly name: string };

/** `NAMESPACE/NAME` or `VELERO-BACKUP`. */
export function parseExplainTarget(text: string): ExplainTarget {
  const slash = text.indexOf('/');
  return slash === -1 ? { backup: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}

/** Why each matching backup is or is not brought back: the same rules, with what each of them looked at. */
export function explain(state: ClusterState, policy: SyncPolicy, now: number, target: ExplainTarget): Explanation[] {
  const world = worldAt(policy, state, now);
  const matches = ({ name, claim }: BackupRecord): boolean =>
    'backup' in target ? name === target.backup : claim.namespace === target.namespace && claim.name === target.name;
  return sortBy([...state.allBackups()].filter(matches), 'name').map((backup) => {
    const decision: Decision = decide(backup, world);
    return { ...identified(backup), decision, trail: trailOf(backup, world) };
  });
}
