import { qualifiedName, type Resource } from '../../kube/resource.ts';
import {
  backups,
  backupStorageLocations,
  deleteBackupRequests,
  namespaces,
  nonAdminBackups,
  nonAdminBackupStorageLocations,
  syncRequests,
} from '../../oadp/kinds.ts';
import { printable, quoted } from '../../oadp/printable.ts';
import { rfc3339Seconds } from '../../oadp/read.ts';
import { isAdmins, type StorageLocationRecord } from '../../oadp/storage-location.ts';
import { chooseDpa, effectiveSyncPeriod } from '../../settings/dpa.ts';
import { formatDuration } from '../../settings/duration.ts';
import { judgePeriods, periodsOf } from '../../settings/period-order.ts';
import { rights, type Right } from '../rights.ts';
import { leaseName } from '../sync-setup.ts';
import type { Findings } from './findings.ts';
import { about, type CheckResult } from './verdict.ts';

/** Judges what was found: each check is a function that does no I/O and says at least one thing, in the order of `checkNames`. */
export function judge(findings: Findings): CheckResult[] {
  return checks.flatMap((check) => check(findings));
}

const checks: readonly ((findings: Findings) => CheckResult[])[] = [
  checkRights,
  checkKinds,
  checkOadpNamespace,
  checkDpa,
  checkNacSynchronizer,
  checkPeriods,
  checkLocations,
  checkLocationOwners,
  checkSelector,
  checkClock,
  checkLease,
  checkLastSync,
];

/** What depends on a kind that could not be read is not known, and that is said where the kind is. */
function unknown(check: Parameters<typeof about>[0], resource: Resource): CheckResult[] {
  const what = qualifiedName(resource);
  return [about(check).warn(`not known, since ${what} could not be read`, 'see the results above, and check again')];
}

function spelled({ verb, resource, subresource, objectName }: Right): string {
  const kind = qualifiedName(resource) + (subresource === undefined ? '' : `/${subresource}`);
  return `${verb} ${kind}${objectName === undefined ? '' : ` ${objectName}`}`;
}

function checkRights({ user, denied, settings }: Findings): CheckResult[] {
  const { ok, fail } = about('rights');
  const who = user === undefined ? 'the user of this connection' : printable(user, 253);
  const controllers = user?.startsWith('system:serviceaccount:') === true;
  const whose = controllers ? '' : '; run check in the pod to see the rights of the controller itself';
  if (denied.length === 0) return [ok(`${who} may do all ${rights.length} things that nab-sync does${whose}`)];
  return denied.map((right) => {
    const role =
      right.scope === 'cluster'
        ? 'the ClusterRole nab-sync'
        : `the Role nab-sync of namespace ${settings.oadpNamespace.value}`;
    return fail(
      `${who} may not ${spelled(right)}, which is needed for: ${right.whatFor}`,
      `grant ${right.verb} as ${role} in manifests/base does`,
    );
  });
}

/** Without these nothing can be decided. */
const neededKinds: readonly Resource[] = [
  namespaces,
  backups,
  backupStorageLocations,
  deleteBackupRequests,
  nonAdminBackups,
  nonAdminBackupStorageLocations,
];

/** What brings a kind. */
function installing(resource: Resource): string {
  if (resource === syncRequests) return 'apply manifests/crd, if tenants are to ask for syncs';
  return resource.group === backups.group ? 'install OADP' : 'install OADP with non-admin backups enabled';
}

function checkKinds({ unread }: Findings): CheckResult[] {
  const { ok, warn, fail } = about('kinds');
  const listed = rights.filter(({ verb }) => verb === 'list');
  const results = listed.flatMap(({ resource, whatFor }): CheckResult[] => {
    const error = unread.get(qualifiedName(resource));
    // A missing right is told where the rights are.
    if (error === undefined || error.code === 'Forbidden') return [];
    const name = `${qualifiedName(resource)} ${resource.version}`;
    if (error.code !== 'KindNotInstalled') {
      return [fail(`${name} cannot be listed: ${error.message}`, 'try again; if it stays, look at the API server')];
    }
    const message = `the API server does not serve ${name}, which is needed for: ${whatFor}`;
    return [(neededKinds.includes(resource) ? fail : warn)(message, installing(resource))];
  });
  return results.length > 0 ? results : [ok(`all ${listed.length} kinds are served in the version that is needed`)];
}

function checkOadpNamespace({ settings, namespaces: all }: Findings): CheckResult[] {
  const { ok, fail } = about('oadp-namespace');
  const { value, source } = settings.oadpNamespace;
  if (all === undefined) return unknown('oadp-namespace', namespaces);
  if (all.has(value)) return [ok(`namespace ${value} is there (${source})`)];
  return [fail(`there is no namespace ${value} (${source})`, 'name the namespace of OADP with --oadp-namespace')];
}

function checkDpa({ dpas, settings }: Findings): CheckResult[] {
  const { ok, warn } = about('dpa');
  if (dpas === undefined) {
    return [
      warn('the DataProtectionApplication cannot be read, so its periods are not known', 'see the results above'),
    ];
  }
  const place = settings.oadpNamespace.value;
  const { name, warnings } = chooseDpa(dpas);
  const results = warnings.map(({ message, next }) => warn(message, next));
  if (dpas.length === 0) {
    results.push(
      warn(
        `there is no DataProtectionApplication in namespace ${place}`,
        'check --oadp-namespace; without OADP’s operator this is as it should be',
      ),
    );
  } else if (name === undefined) {
    const names = dpas.map((dpa) => printable(dpa.name)).join(', ');
    results.push(
      warn(
        `non-admin backups are not enabled in DataProtectionApplication ${names}, so tenants cannot use what comes back`,
        'set spec.nonAdmin.enable to true',
      ),
    );
  }
  return results.length > 0 ? results : [ok(`DataProtectionApplication ${name ?? ''} enables non-admin backups`)];
}

function checkNacSynchronizer({ dpas }: Findings): CheckResult[] {
  const { ok } = about('nac-synchronizer');
  const { name, syncPeriodMs } = chooseDpa(dpas ?? []);
  if (name === undefined) return [ok('not known, since no DataProtectionApplication enables non-admin backups')];
  if (syncPeriodMs === 0) return [ok('the non-admin controller’s own synchronizer is off')];
  const every = syncPeriodMs === undefined ? 'at its own interval' : `every ${formatDuration(syncPeriodMs)}`;
  return [
    ok(`the non-admin controller’s own synchronizer runs too, ${every}: whoever comes first creates a NonAdminBackup`),
  ];
}

function checkPeriods({ settings, dpas, locations }: Findings): CheckResult[] {
  const { ok, warn } = about('periods');
  const dpa = chooseDpa(dpas ?? []);
  const period = effectiveSyncPeriod(settings.syncPeriod, dpa);
  const others = periodsOf(dpa, adminLocations({ settings, locations }));
  const wrong = judgePeriods(period, dpa, others);
  if (wrong.length > 0) return wrong.map(({ message, next }) => warn(message, next));
  const ours = `${formatDuration(period.periodMs)} (${period.source})`;
  if (period.periodMs === 0) return [ok(`no interval (${period.source}): syncing at start and when something happens`)];
  const location = others.location === undefined ? '' : `${formatDuration(others.location.periodMs)} of Velero < `;
  const collection = others.collectionMs === 0 ? '' : ` < ${formatDuration(others.collectionMs)} of garbage collection`;
  return [ok(`${location}${ours}${collection}`)];
}

/** The admin's locations whose backups count. */
function adminLocations({
  settings,
  locations = [],
}: Pick<Findings, 'settings' | 'locations'>): StorageLocationRecord[] {
  return locations.filter((location) => isAdmins(location, settings.storageLocations.value));
}

function checkLocations(findings: Findings): CheckResult[] {
  const { ok, warn, fail } = about('storage-locations');
  const { locations, settings } = findings;
  if (locations === undefined) return unknown('storage-locations', backupStorageLocations);
  const results: CheckResult[] = [];
  if (!locations.some(({ isDefault }) => isDefault)) {
    results.push(
      warn(
        'no BackupStorageLocation is the default, so only backups in tenants’ own locations come back',
        'set spec.default of one, or name one with --storage-location',
      ),
    );
  }
  for (const name of settings.storageLocations.value) {
    if (locations.some((location) => location.name === name)) continue;
    results.push(
      fail(`there is no BackupStorageLocation ${quoted(name)}`, 'correct --storage-location, or create the location'),
    );
  }
  const admins = adminLocations(findings);
  const dpa = chooseDpa(findings.dpas ?? []);
  for (const { name, available, syncPeriod } of admins) {
    if (!available) {
      results.push(
        warn(
          `BackupStorageLocation ${quoted(name)} is not Available, so Velero does not read its backups`,
          'see its status: kubectl describe backupstoragelocation',
        ),
      );
    } else if (periodsOf(dpa, [{ name, syncPeriod }]).location?.periodMs === 0) {
      results.push(
        warn(
          `BackupStorageLocation ${quoted(name)} has a sync period of 0, so Velero never reads what is in its bucket`,
          'give it a spec.backupSyncPeriod, at least while backups are to come back',
        ),
      );
    }
  }
  if (results.length > 0) return results;
  return [ok(`of the admin, Available: ${admins.map(({ name }) => printable(name)).join(', ')}`)];
}

function checkLocationOwners({ locations, owners }: Findings): CheckResult[] {
  const { ok, warn } = about('location-owners');
  if (locations === undefined) return unknown('location-owners', backupStorageLocations);
  if (owners === undefined) return unknown('location-owners', nonAdminBackupStorageLocations);
  const tenants = locations.filter(({ owner }) => owner !== 'admin');
  const results = tenants.flatMap(({ name, owner }): CheckResult[] => {
    const shown = `BackupStorageLocation ${quoted(name)}`;
    if (owner === 'admin') return [];
    if (owner === 'unclear') {
      return [
        warn(
          `${shown} bears only some of the marks of a tenant’s location, so its backups count for nobody`,
          'restore its labels and annotations, or take them all away if it is the admin’s',
        ),
      ];
    }
    const nabsl = `NonAdminBackupStorageLocation ${printable(owner.namespace)}/${printable(owner.name)}`;
    const found = owners.get(`${owner.namespace}/${owner.name}`);
    if (found === undefined || found.deleting) {
      return [
        warn(
          `${nabsl}, which ${shown} was made for, is ${found === undefined ? 'not there' : 'being deleted'}: its backups do not come back`,
          'the tenant creates it again, or the location can go',
        ),
      ];
    }
    if (found.nacuuid !== undefined && found.nacuuid !== owner.nacuuid) {
      return [
        warn(
          `${nabsl} is a new one of an old name, and ${shown} was not made for it: its backups do not come back`,
          'remove the location if nobody needs it; the new one has a location of its own',
        ),
      ];
    }
    return [];
  });
  if (results.length > 0) return results;
  if (tenants.length === 0) return [ok('no tenant has a location of its own')];
  return [ok(`each of the ${tenants.length} locations of tenants has its owner`)];
}

function checkSelector({ settings, namespaces: all }: Findings): CheckResult[] {
  const { ok, warn } = about('namespace-selector');
  const { text } = settings.namespaceSelector.value;
  if (text === '') {
    return [
      warn(
        'backups come back into every namespace of the right name, whoever created it',
        'where names are used again by others, label the namespaces that may have theirs and set NAMESPACE_SELECTOR',
      ),
    ];
  }
  if (all === undefined) return unknown('namespace-selector', namespaces);
  const selected = [...all.values()].filter((namespace) => namespace.selected).length;
  if (selected > 0) return [ok(`${selected} of ${all.size} namespaces have the labels ${quoted(text)}`)];
  return [
    warn(
      `no namespace has the labels ${quoted(text)}, so nothing comes back`,
      'label namespaces, or correct NAMESPACE_SELECTOR',
    ),
  ];
}

/** Rules that look at the time are off by as much; beyond this it shows. */
const clockWarnMs = 10_000;
/** Beyond this, credentials and certificates begin to fail as well. */
const clockFailMs = 5 * 60_000;

function checkClock({ serverAheadMs }: Findings): CheckResult[] {
  const { ok, warn, fail } = about('clock');
  if (serverAheadMs === undefined) return [ok('not known, since the server’s answers have no date')];
  const offMs = Math.abs(serverAheadMs);
  // The server tells whole seconds.
  const off = formatDuration(Math.round(offMs / 1000) * 1000);
  const message = `this machine’s clock is ${off} ${serverAheadMs > 0 ? 'behind' : 'ahead of'} the API server’s`;
  const next = 'set the clocks by NTP: when a backup expires and whether Velero has read a bucket is judged by them';
  if (offMs > clockFailMs) return [fail(message, next)];
  return offMs > clockWarnMs ? [warn(message, next)] : [ok('this machine’s clock and the API server’s agree')];
}

/** As `processIdentity` makes it: a pod or host, and a UUID. */
const ourIdentity = /_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function checkLease({ lease, now, serverAheadMs, settings }: Findings): CheckResult[] {
  const { ok, warn } = about('lease');
  if (!settings.leaderElect.value) return [ok('not looked at, since leader election is off')];
  const place = `Lease ${leaseName} in namespace ${settings.oadpNamespace.value}`;
  if (lease === undefined) return [warn(`${place} cannot be read`, 'see the results above')];
  if (lease === 'none' || lease.holder === '') {
    return [warn(`nobody holds the ${place}: no nab-sync works`, 'start the controller, if it is to run')];
  }
  const holder = quoted(lease.holder, 253);
  if (!ourIdentity.test(lease.holder)) {
    return [
      warn(
        `${holder}, which is no nab-sync, holds the ${place}`,
        'find out who it is: nab-sync waits for as long as it holds it',
      ),
    ];
  }
  const ageMs = now + (serverAheadMs ?? 0) - Date.parse(lease.renewTime);
  if (lease.durationMs !== undefined && ageMs > lease.durationMs + clockWarnMs) {
    return [
      warn(
        `${holder} holds the ${place} and has not renewed it for ${formatDuration(Math.round(ageMs / 1000) * 1000)}`,
        'it has stopped or is stuck, and another takes over as soon as one runs: look at the pods',
      ),
    ];
  }
  return [ok(`held by ${holder}`)];
}

function checkLastSync({ status }: Findings): CheckResult[] {
  const { ok, warn } = about('last-sync');
  if (status === undefined) return [warn('the status of the passes cannot be read', 'see the results above')];
  if (status === 'none') return [warn('nothing was synced yet', 'start the controller, or run nab-sync once')];
  const { lastSuccess, consecutiveFailures, lastFailureMessage = '' } = status;
  const success = lastSuccess === undefined ? 'never' : rfc3339Seconds(lastSuccess);
  if (consecutiveFailures === 0) return [ok(`last success: ${success}`)];
  return [
    warn(
      `the last ${consecutiveFailures} passes had failures (last success: ${success}): ${lastFailureMessage}`,
      'look the reason up in docs/reasons.md',
    ),
  ];
}
