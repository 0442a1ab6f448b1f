import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { chooseDpa, effectiveSyncPeriod, toDpaRecord, type DpaRecord } from '../../../src/settings/dpa.ts';

function dpa(name: string, spec: unknown): JsonObject {
  return { apiVersion: 'oadp.openshift.io/v1alpha1', kind: 'DataProtectionApplication', metadata: { name }, spec };
}

function record(name: string, spec: unknown): DpaRecord {
  const found = toDpaRecord(dpa(name, spec));
  if (found === undefined) throw new Error('no record');
  return found;
}

const fromDpa = { value: undefined, source: 'default' } as const;

describe('a DataProtectionApplication', () => {
  test('gives its periods in milliseconds', () => {
    expect(
      record('velero', {
        nonAdmin: { enable: true, backupSyncPeriod: '5m', garbageCollectionPeriod: '24h0m0s' },
        // The real CRD: a Go duration in JSON, in nanoseconds.
        configuration: { velero: { args: { 'backup-sync-period': 60_000_000_000 } } },
      }),
    ).toEqual({
      name: 'velero',
      enabled: true,
      syncPeriodMs: 300_000,
      collectionPeriodMs: 86_400_000,
      veleroSyncPeriodMs: 60_000,
      problems: [],
    });
  });

  test('may name Velero’s period as its Go struct does, as text', () => {
    const { veleroSyncPeriodMs } = record('velero', {
      configuration: { velero: { args: { backupSyncPeriod: '90s' } } },
    });
    expect(veleroSyncPeriodMs).toBe(90_000);
  });

  test('without nonAdmin has no say', () => {
    expect(record('velero', {})).toEqual({ name: 'velero', enabled: false, problems: [] });
  });

  test('that says false is the same as one that says nothing', () => {
    expect(record('velero', { nonAdmin: { enable: false } })).toEqual(record('velero', { nonAdmin: {} }));
  });

  test.each([
    ['-1m', 'expected a duration that is not negative, got "-1m"'],
    ['soon', 'expected a duration such as 90s, 2m or 1h30m (units: ms, s, m, h), got "soon"'],
    ['1ms', 'expected 0 or a duration from 100ms to 596h31m23.647s, got "1ms"'],
    [true, 'expected a duration such as 90s, 2m or 1h30m (units: ms, s, m, h), got true'],
    [{ a: 1 }, 'expected a duration such as 90s, 2m or 1h30m (units: ms, s, m, h), got {"a":1}'],
  ])('with the period %j is told by field, and the default is used', (backupSyncPeriod, problem) => {
    const bad = record('velero', { nonAdmin: { enable: true, backupSyncPeriod } });
    expect(bad.problems).toEqual([
      `DataProtectionApplication velero, spec.nonAdmin.backupSyncPeriod: ${problem}; the default is used`,
    ]);
    const chosen = chooseDpa([bad]);
    expect(chosen.warnings).toEqual(
      bad.problems.map((message) => expect.objectContaining({ code: 'DpaFieldUnusable', message }) as unknown),
    );
    expect(effectiveSyncPeriod(fromDpa, chosen)).toEqual({ periodMs: 120_000, source: 'default' });
  });

  test('is read without an error, whatever is in it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (spec, period) => {
        toDpaRecord({ metadata: { name: 'x' }, spec });
        toDpaRecord({
          metadata: spec,
          spec: { nonAdmin: { backupSyncPeriod: period, garbageCollectionPeriod: period } },
        });
        toDpaRecord({ metadata: { name: 'x' }, spec: { nonAdmin: period, configuration: { velero: { args: spec } } } });
      }),
    );
  });

  test('without a name is none', () => {
    expect(toDpaRecord({ spec: {} })).toBeUndefined();
  });
});

describe('the sync period in force', () => {
  const five = record('five', { nonAdmin: { enable: true, backupSyncPeriod: '5m' } });

  test('is the flag’s, whatever the DPA says', () => {
    expect(effectiveSyncPeriod({ value: 90_000, source: 'flag' }, chooseDpa([five]))).toEqual({
      periodMs: 90_000,
      source: 'flag',
    });
  });

  test('is none when the environment says 0, whatever the DPA says', () => {
    expect(effectiveSyncPeriod({ value: 0, source: 'environment' }, chooseDpa([five]))).toEqual({
      periodMs: 0,
      source: 'environment',
    });
  });

  test('else is the DPA’s', () => {
    expect(effectiveSyncPeriod(fromDpa, chooseDpa([five]))).toEqual({ periodMs: 300_000, source: 'dpa' });
  });

  test('is none when the DPA says 0', () => {
    const off = record('off', { nonAdmin: { enable: true, backupSyncPeriod: '0s' } });
    expect(effectiveSyncPeriod(fromDpa, chooseDpa([off]))).toEqual({ periodMs: 0, source: 'dpa' });
  });

  test.each([
    ['there is no DPA', []],
    ['the DPA has no nonAdmin', [record('plain', {})]],
    ['the DPA does not enable it', [record('off', { nonAdmin: { enable: false, backupSyncPeriod: '9m' } })]],
    ['the DPA gives none', [record('on', { nonAdmin: { enable: true } })]],
  ])('is two minutes when %s', (_, records) => {
    expect(effectiveSyncPeriod(fromDpa, chooseDpa(records))).toEqual({ periodMs: 120_000, source: 'default' });
    expect(chooseDpa(records).warnings).toEqual([]);
  });
});

describe('of two DPAs', () => {
  const a = record('a', { nonAdmin: { enable: true, backupSyncPeriod: '3m' } });
  const b = record('b', { nonAdmin: { enable: true, backupSyncPeriod: '4m', garbageCollectionPeriod: 'x' } });
  const off = record('0-first', { nonAdmin: { enable: false, backupSyncPeriod: '-5m' } });

  test('the enabled one counts, and the other’s mistakes are its own', () => {
    expect(chooseDpa([off, a])).toEqual({ name: 'a', syncPeriodMs: 180_000, warnings: [] });
  });

  test('that are both enabled the first by name counts, in whatever order they come, and it is told', () => {
    const warning = {
      code: 'SeveralDpas',
      message: 'several DataProtectionApplications enable non-admin backups (a, b); a is used',
      next: 'disable them in the others',
    };
    expect(chooseDpa([b, a])).toEqual({ name: 'a', syncPeriodMs: 180_000, warnings: [warning] });
    expect(chooseDpa([a, b])).toEqual(chooseDpa([b, a]));
  });

  test('with none enabled, Velero’s period still counts, since Velero runs', () => {
    const plain = record('plain', { configuration: { velero: { args: { 'backup-sync-period': 30e9 } } } });
    expect(chooseDpa([plain])).toEqual({ veleroSyncPeriodMs: 30_000, warnings: [] });
  });
});
