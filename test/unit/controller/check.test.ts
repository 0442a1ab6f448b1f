import { describe, expect, test } from 'vitest';
import type { Findings } from '../../../src/controller/check/findings.ts';
import { judge } from '../../../src/controller/check/judge.ts';
import { checkNames, type CheckResult } from '../../../src/controller/check/verdict.ts';
import { rights } from '../../../src/controller/rights.ts';
import { processIdentity } from '../../../src/kube/leader-elector.ts';
import { KubeError } from '../../../src/kube/errors.ts';
import { newLease, readLease } from '../../../src/kube/lease-record.ts';
import { qualifiedName, type Resource } from '../../../src/kube/resource.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { toNamespaceRecord } from '../../../src/oadp/namespace.ts';
import { toLocationOwnerRecord, toStorageLocationRecord } from '../../../src/oadp/storage-location.ts';
import { toDpaRecord } from '../../../src/settings/dpa.ts';
import type { FlagValues } from '../../../src/settings/flags.ts';
import { resolveSettings, type Settings } from '../../../src/settings/settings.ts';
import {
  namespaceObject,
  nonAdminStorageLocation,
  noon,
  ownedStorageLocation,
  storageLocation,
} from '../../support/gen/api-objects.ts';

const second = 1_000;
const account = 'system:serviceaccount:openshift-adp:nab-sync';

function settingsOf(flags: FlagValues = {}): Settings {
  const host = { environment: {}, stderrIsTerminal: false, exists: () => false, read: () => undefined };
  return resolveSettings({ 'namespace-selector': 'backups=on', ...flags }, host);
}

function dpa(spec: unknown, name = 'velero') {
  const record = toDpaRecord({ metadata: { name }, spec });
  if (record === undefined) throw new Error('no DPA');
  return record;
}

function lease(holder: string, renewedMsAgo: number) {
  return readLease(
    newLease('nab-sync', 'openshift-adp', { identity: holder, durationMs: 15_000, now: noon - renewedMsAgo }),
  );
}

const selected = namespaceObject({ labels: { backups: 'on' } });

/** A cluster in which all is well, but for what is laid over it. */
function found(over: Partial<Findings> = {}): Findings {
  const { settings = settingsOf() } = over;
  return {
    settings,
    now: noon,
    user: account,
    denied: [],
    unread: new Map(),
    namespaces: new Map([
      ['openshift-adp', toNamespaceRecord(namespaceObject({ name: 'openshift-adp' }), () => false)],
      ['team-a', toNamespaceRecord(selected, settings.namespaceSelector.value.matches)],
    ]),
    dpas: [dpa({ nonAdmin: { enable: true } })],
    locations: [toStorageLocationRecord(storageLocation()), toStorageLocationRecord(ownedStorageLocation())],
    owners: new Map([['team-a/bucket', toLocationOwnerRecord(nonAdminStorageLocation())]]),
    lease: lease(processIdentity('pod-1'), 2 * second),
    status: { lastSuccess: noon - 60 * second, consecutiveFailures: 0, reasons: {} },
    serverAheadMs: 200,
    ...over,
  };
}

/** What does not pass, as `check STATUS: message → next`. */
function complaints(findings: Findings): string[] {
  return judge(findings)
    .filter(({ status }) => status !== 'OK')
    .map(({ check, status, message, next = '' }: CheckResult) => `${check} ${status}: ${message} → ${next}`);
}

function unread(resource: Resource, code: 'KindNotInstalled' | 'Forbidden'): Findings['unread'] {
  const name = qualifiedName(resource);
  return new Map([[name, new KubeError({ code, verb: 'list', resource: name, message: 'so says the server' })]]);
}

test('where all is well each thing is said to be so, once and in order', () => {
  const results = judge(found());
  expect(results.map(({ check }) => check)).toEqual(checkNames);
  expect(results.filter(({ status, next }) => status !== 'OK' || next !== undefined)).toEqual([]);
});

test('whatever does not pass has a next step', () => {
  const nothing = found({
    denied: rights,
    namespaces: undefined,
    dpas: undefined,
    locations: undefined,
    owners: undefined,
    lease: undefined,
    status: undefined,
    serverAheadMs: undefined,
    unread: unread(kinds.backups, 'KindNotInstalled'),
  });
  for (const { status, message, next } of judge(nothing)) {
    expect(message).toMatch(/\w/);
    expect(next === undefined).toBe(status === 'OK');
  }
  expect(new Set(judge(nothing).map(({ check }) => check))).toEqual(new Set(checkNames));
});

describe('check finds', () => {
  const missing = rights.filter(({ verb, resource }) => verb === 'create' && resource === kinds.nonAdminBackups);
  const twoHours = { nonAdmin: { enable: true, garbageCollectionPeriod: '1m' } };
  const noDefault = [toStorageLocationRecord(storageLocation({ spec: { default: false } }))];
  const owned = (shape: Parameters<typeof ownedStorageLocation>[0]) => [
    toStorageLocationRecord(storageLocation()),
    toStorageLocationRecord(ownedStorageLocation(shape)),
  ];

  test.each<[string, Partial<Findings>, RegExp[]]>([
    [
      'a right that is missing',
      { denied: missing },
      [/^rights FAIL: \S+ may not create nonadminbackups\.oadp\.openshift\.io, .*→ grant create as the ClusterRole/],
    ],
    [
      'a kind without which nothing can be decided',
      { unread: unread(kinds.backups, 'KindNotInstalled') },
      [/^kinds FAIL: .*does not serve backups\.velero\.io v1, .*→ install OADP$/],
    ],
    [
      'a kind that can be done without',
      { unread: unread(kinds.dataProtectionApplications, 'KindNotInstalled'), dpas: undefined },
      [/^kinds WARN: .*dataprotectionapplications/, /^dpa WARN: /],
    ],
    [
      'an OADP namespace that is not there',
      { settings: settingsOf({ 'oadp-namespace': 'nowhere' }) },
      [/^oadp-namespace FAIL: there is no namespace nowhere \(flag\) → .*--oadp-namespace/],
    ],
    ['no DPA', { dpas: [] }, [/^dpa WARN: there is no DataProtectionApplication in namespace openshift-adp/]],
    ['a DPA without non-admin backups', { dpas: [dpa({})] }, [/^dpa WARN: .*velero.* → set spec\.nonAdmin\.enable/]],
    [
      'two DPAs that enable them',
      { dpas: [dpa({ nonAdmin: { enable: true } }, 'a'), dpa({ nonAdmin: { enable: true } }, 'b')] },
      [/^dpa WARN: several .*\(a, b\); a is used → disable/],
    ],
    [
      'an interval that Velero does not keep up with',
      { settings: settingsOf({ 'sync-period': '30s' }) },
      [/^periods WARN: the sync period of 30s is not longer than the 1m0s .* → raise --sync-period/],
    ],
    [
      'an interval that the garbage collector undercuts',
      { dpas: [dpa(twoHours)] },
      [/^periods WARN: .*is not shorter than the 1m0s .* → lower SYNC_PERIOD/],
    ],
    [
      'an interval that a DPA meant for the NAC switches off',
      { dpas: [dpa({ nonAdmin: { enable: true, backupSyncPeriod: '0s' } })] },
      [/^periods WARN: there is no interval, .* → set SYNC_PERIOD/],
    ],
    ['no default location', { locations: noDefault }, [/^storage-locations WARN: .*--storage-location$/]],
    [
      'a location that is named and is not there',
      { settings: settingsOf({ 'storage-location': ['old'] }) },
      [/^storage-locations FAIL: there is no BackupStorageLocation "old"/],
    ],
    [
      'a location that Velero cannot read',
      { locations: [toStorageLocationRecord(storageLocation({ status: { phase: 'Unavailable' } }))] },
      [/^storage-locations WARN: .*"default" is not Available/],
    ],
    [
      'a location that Velero never reads',
      { locations: [toStorageLocationRecord(storageLocation({ spec: { backupSyncPeriod: '0s' } }))] },
      [/^storage-locations WARN: .*never reads/],
    ],
    [
      'a tenant’s location whose owner is gone',
      { owners: new Map() },
      [/^location-owners WARN: NonAdminBackupStorageLocation team-a\/bucket, .* is not there/],
    ],
    [
      'a tenant’s location whose owner is a new one of the old name',
      { locations: owned({ ownerNacuuid: 'of-the-old-one' }) },
      [/^location-owners WARN: .*team-a\/bucket is a new one of an old name/],
    ],
    [
      'a location with some of the marks of a tenant’s',
      { locations: owned({ annotations: { 'openshift.io/oadp-nabsl-origin-namespace': undefined } }) },
      [/^location-owners WARN: .* only some of the marks/],
    ],
    [
      'that any namespace of the right name gets the backups',
      { settings: settingsOf({ 'namespace-selector': '' }) },
      [/^namespace-selector WARN: .*set NAMESPACE_SELECTOR$/],
    ],
    [
      'a selector that selects nothing',
      { settings: settingsOf({ 'namespace-selector': 'nobody=has' }) },
      [/^namespace-selector WARN: no namespace has the labels "nobody=has"/],
    ],
    [
      'a clock that is off',
      // The holder's clock is that of the server.
      { serverAheadMs: 3_600 * second, lease: lease(processIdentity(), -3_600 * second) },
      [/^clock FAIL: .*1h0m0s behind .* → set the clocks/],
    ],
    ['a clock that is off by less', { serverAheadMs: -30 * second }, [/^clock WARN: .*30s ahead of /]],
    ['that nobody works', { lease: 'none' }, [/^lease WARN: nobody holds/]],
    [
      'a Lease that a stranger holds',
      { lease: lease('velero', second) },
      [/^lease WARN: "velero", which is no nab-sync, holds/],
    ],
    [
      'a holder of the Lease that has stopped',
      { lease: lease(processIdentity('pod-1'), 3_600 * second) },
      [/^lease WARN: "pod-1_.*has not renewed it for 1h0m0s/],
    ],
    [
      'passes that fail',
      { status: { consecutiveFailures: 4, lastFailureMessage: 'exceeded quota', reasons: {} } },
      [/^last-sync WARN: the last 4 passes had failures \(last success: never\): exceeded quota/],
    ],
  ])('%s', (_, over, expected) => {
    const said = complaints(found(over));
    expect(said).toHaveLength(expected.length);
    for (const [index, pattern] of expected.entries()) expect(said[index]).toMatch(pattern);
  });

  test('nothing wrong with a Lease that is not used', () => {
    const alone = found({ settings: settingsOf({ 'leader-elect': false }), lease: 'none' });
    expect(complaints(alone)).toEqual([]);
  });
});

test('whoever is no ServiceAccount is told that the controller has rights of its own', () => {
  const [first] = judge(found({ user: 'alice' }));
  expect(first?.message).toMatch(/^alice may do all \d+ things .*run check in the pod/);
});

test('what is shown of the cluster is nothing that a terminal would act on', () => {
  const location = toStorageLocationRecord(
    ownedStorageLocation({
      name: '\u001b[2J',
      annotations: {
        'openshift.io/oadp-nabsl-origin-namespace': 'x\u202e',
        'openshift.io/oadp-nabsl-origin-name': '\u001b]0;',
      },
    }),
  );
  const results = judge(found({ locations: [location], lease: lease('\u001b[31m', second), user: '\u001b[1m' }));
  expect(JSON.stringify(results.map(({ message }) => message))).not.toMatch(/\\u001b|\u202e/);
});
