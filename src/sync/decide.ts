import mapValues from 'lodash/mapValues.js';
import type { BackupRecord } from '../oadp/backup.ts';
import type { NonAdminBackupRecord, Origin } from '../oadp/non-admin-backup.ts';
import type { Decision } from './reasons.ts';
import type { TrailStep } from './report.ts';
import { claimRules, readinessRules, shown, targetRules, type Rule } from './rules.ts';
import type { ClusterView, SyncPolicy, World } from './world.ts';

/**
 * The decision about one backup: pure, and the same for the controller, `once`, `plan` and `explain`, so that an
 * explanation cannot differ from what is done.
 */

const allRules: readonly Rule[] = [...claimRules, ...readinessRules, ...targetRules];

function firstDecision(rules: readonly Rule[], backup: BackupRecord, world: World): Decision | undefined {
  for (const rule of rules) {
    const decision = rule.check(backup, world);
    if (decision !== undefined) return decision;
  }
  return undefined;
}

/** Why the claim is not genuine (rules 1 to 8), or undefined. Looks at the backup and its storage location only. */
export function refusalOf(backup: BackupRecord, world: World): Decision | undefined {
  return firstDecision(claimRules, backup, world);
}

/** What the backup deserves. */
export function decide(backup: BackupRecord, world: World): Decision {
  const decision = firstDecision(allRules, backup, world);
  if (decision === undefined) throw new Error('the last rule did not decide');
  return decision;
}

/** The trail of rules that led to the decision, for `explain`. */
export function trailOf(backup: BackupRecord, world: World): TrailStep[] {
  let reached = true;
  return allRules.map((rule, index) => {
    const step = { rule: index + 1, asks: rule.asks };
    if (!reached) return { ...step, outcome: 'notReached', values: {} };
    reached = rule.check(backup, world) === undefined;
    return {
      ...step,
      outcome: reached ? 'passed' : 'decided',
      values: mapValues(rule.looksAt(backup, world), (value) => shown(value)),
    };
  });
}

/** Where the backup's NAB belongs. Only for a backup that passed rule 1, which makes sure that the parts are there. */
export function originOf(backup: BackupRecord): Origin {
  const { nacuuid, namespace, name } = backup.claim;
  if (nacuuid === undefined || namespace === undefined || name === undefined) {
    throw new Error(`Backup ${backup.name} has no complete origin`);
  }
  return { nacuuid, namespace, name };
}

/** Whether `a` wins the name against `b`: it completed later, or at the same time and has the larger NACUUID. */
function completedLater(a: BackupRecord, b: BackupRecord): boolean {
  const [timeOfA, timeOfB] = [a.completionTime ?? 0, b.completionTime ?? 0];
  // A syncable backup is named like its NACUUID, so the names settle a tie.
  return timeOfA === timeOfB ? a.name > b.name : timeOfA > timeOfB;
}

/**
 * The world at one moment. Who wins a name is worked out once a name, since a tenant may have thousands of backups
 * that claim the same one.
 */
export function worldAt(policy: SyncPolicy, view: ClusterView, now: number): World {
  const winners = new Map<string, BackupRecord | undefined>();
  // Several rules in a row ask for the same backup's, and a look-up among all NABs is what costs a decision most.
  let asked: BackupRecord | undefined;
  let found: NonAdminBackupRecord | undefined;
  const world: World = {
    policy,
    view,
    now,
    claimedNab: (backup) => {
      if (asked !== backup) {
        const { namespace, name } = originOf(backup);
        found = view.nonAdminBackup(namespace, name);
        asked = backup;
      }
      return found;
    },
    newestSyncable: (namespace, name) => {
      const key = `${namespace}/${name}`;
      if (!winners.has(key)) {
        let newest: BackupRecord | undefined;
        for (const candidate of view.claimants(namespace, name)) {
          if (newest !== undefined && !completedLater(candidate, newest)) continue;
          if (firstDecision([...claimRules, ...readinessRules], candidate, world) === undefined) newest = candidate;
        }
        winners.set(key, newest);
      }
      return winners.get(key);
    },
  };
  return world;
}
