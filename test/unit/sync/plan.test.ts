import { describe, expect, test } from 'vitest';
import { explain, parseExplainTarget, plan } from '../../../src/sync/plan.ts';
import { at, hour, nonAdminBackup, noon, veleroBackup } from '../../support/gen/api-objects.ts';
import { scene } from './support/scene.ts';

const backups = [
  veleroBackup({ nacuuid: 'b-2', namespace: 'team-b' }),
  veleroBackup({ nacuuid: 'a-weekly', name: 'weekly' }),
  veleroBackup({ nacuuid: 'a-2', status: { completionTimestamp: at(-hour) } }),
  veleroBackup({ nacuuid: 'a-1' }),
  veleroBackup({ nacuuid: 'forged', spec: { includedNamespaces: ['*'] } }),
  veleroBackup({ nacuuid: 'nobody', metadata: { annotations: null } }),
];

describe('a plan', () => {
  const { state, policy } = scene({
    backups,
    nonAdminBackups: [nonAdminBackup({ name: 'weekly', nacuuid: 'a-weekly' })],
  });

  test('has a row for every labelled backup, by namespace, name and Backup', () => {
    expect(
      plan(state, policy, noon).map(({ namespace, name, backup, action, reason }) => [
        namespace,
        name,
        backup,
        action,
        reason,
      ]),
    ).toEqual([
      ['', '', 'nobody', 'skip', 'InvalidOrigin'],
      ['team-a', 'daily', 'a-1', 'skip', 'Superseded'],
      ['team-a', 'daily', 'a-2', 'create', 'Missing'],
      ['team-a', 'daily', 'forged', 'skip', 'ForeignContent'],
      ['team-a', 'weekly', 'a-weekly', 'none', 'Present'],
      ['team-b', 'daily', 'b-2', 'skip', 'NamespaceMissing'],
    ]);
  });

  test('has rows of these fields alone', () => {
    expect(plan(state, policy, noon)[2]).toEqual({
      backup: 'a-2',
      namespace: 'team-a',
      name: 'daily',
      nacuuid: 'a-2',
      action: 'create',
      reason: 'Missing',
      message: 'Its NonAdminBackup is missing and is created.',
    });
  });

  test('is the same whatever order the backups were seen in', () => {
    const turned = scene({
      backups: [...backups].reverse(),
      nonAdminBackups: [nonAdminBackup({ name: 'weekly', nacuuid: 'a-weekly' })],
    });
    expect(plan(turned.state, turned.policy, noon)).toEqual(plan(state, policy, noon));
  });

  test('of some namespaces has the backups that claim them, refused ones too', () => {
    const rows = plan(state, policy, noon, new Set(['team-a']));
    expect(rows.map(({ backup }) => backup)).toEqual(['a-1', 'a-2', 'forged', 'a-weekly']);
    expect(plan(state, policy, noon, new Set(['other']))).toEqual([]);
    expect(plan(state, policy, noon, new Set())).toEqual([]);
  });

  test('decides for the moment that it is asked about', () => {
    const later = plan(state, policy, noon + 24 * 30 * hour);
    expect(later.filter(({ reason }) => reason === 'Expired')).toHaveLength(4);
  });

  test('changes nothing in what is known', () => {
    const before = [...state.refused().keys()];
    plan(state, policy, noon);
    expect([...state.refused().keys()]).toEqual(before);
  });

  test('shows nothing of a forged name that is not printable', () => {
    const forged = scene({ backups: [veleroBackup({ namespace: '\u001b[31m', name: `\u202e${'x'.repeat(1000)}` })] });
    const [row] = plan(forged.state, forged.policy, noon);
    expect(row?.namespace).toBe('\\u{1b}[31m');
    expect(row?.name).toMatch(/^\\u\{202e\}x+…$/);
    expect(row?.name.length).toBeLessThan(270);
  });

  test('shows a legal name whole, however long', () => {
    const name = `${'x'.repeat(252)}y`;
    const { state: long, policy: usual } = scene({ backups: [veleroBackup({ name })] });
    expect(plan(long, usual, noon)[0]?.name).toBe(name);
  });
});

describe('what explain is asked about', () => {
  test.each([
    ['team-a/daily', { namespace: 'team-a', name: 'daily' }],
    ['team-a-daily-1', { backup: 'team-a-daily-1' }],
    ['a/b/c', { namespace: 'a', name: 'b/c' }],
    ['/daily', { namespace: '', name: 'daily' }],
    ['team-a/', { namespace: 'team-a', name: '' }],
    ['', { backup: '' }],
  ])('"%s"', (text, target) => {
    expect(parseExplainTarget(text)).toEqual(target);
  });
});

describe('an explanation', () => {
  const { state, policy, decision, trail } = scene({ backups });

  test('of a Backup has its decision and the trail that led there, as everybody else has it', () => {
    expect(explain(state, policy, noon, { backup: 'a-1' })).toEqual([
      {
        backup: 'a-1',
        namespace: 'team-a',
        name: 'daily',
        nacuuid: 'a-1',
        decision: decision('a-1'),
        trail: trail('a-1'),
      },
    ]);
  });

  test('of a NAB has all Backups that claim it, by name', () => {
    const explained = explain(state, policy, noon, { namespace: 'team-a', name: 'daily' });
    expect(explained.map(({ backup, decision: { reason } }) => [backup, reason])).toEqual([
      ['a-1', 'Superseded'],
      ['a-2', 'Missing'],
      ['forged', 'ForeignContent'],
    ]);
  });

  test.each([
    ['a Backup', { backup: 'gone' }],
    ['a NAB', { namespace: 'team-a', name: 'gone' }],
    ['a NAB of another namespace', { namespace: 'team-z', name: 'daily' }],
  ])('of %s that is not there is empty', (_, target) => {
    expect(explain(state, policy, noon, target)).toEqual([]);
  });
});
