import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { explainText } from '../../../src/commands/explain-output.ts';
import { onceTable } from '../../../src/commands/once-output.ts';
import { render } from '../../../src/commands/output.ts';
import { planDocument, planTable } from '../../../src/commands/plan-output.ts';
import { displayWidth, pairs, table } from '../../../src/commands/table.ts';
import type { Explanation, PassReport, PlannedDecision } from '../../../src/sync/report.ts';

function planned(part: Partial<PlannedDecision>): PlannedDecision {
  return {
    backup: 'b1',
    namespace: 'team-a',
    name: 'nightly',
    nacuuid: 'b1',
    action: 'create',
    reason: 'Missing',
    message: 'it is due',
    ...part,
  };
}

describe('a table', () => {
  test('looks like kubectl’s: upper-case headers, three spaces, nothing after the last column', () => {
    expect(
      table(
        ['NAME', 'AGE'],
        [
          ['nightly-backup', '5m'],
          ['x', ''],
        ],
      ),
    ).toBe('NAME             AGE\nnightly-backup   5m\nx\n');
  });

  test('keeps its columns whatever the script of a text', () => {
    const [, first = '', second = ''] = table(
      ['NAME', 'X'],
      [
        ['夜間', '1'],
        ['e\u0301t', '2'],
      ],
    ).split('\n');
    expect(displayWidth(first.split('1')[0] ?? '')).toBe(displayWidth(second.split('2')[0] ?? ''));
  });

  test.each([
    ['abc', 3],
    ['夜間', 4],
    ['e\u0301', 1],
    ['🚀', 2],
    ['', 0],
  ])('%j is %d cells wide', (text, width) => {
    expect(displayWidth(text)).toBe(width);
  });

  test('of pairs lines the values up', () => {
    expect(
      pairs([
        ['Name', 'a'],
        ['Namespace', 'b'],
        ['Empty', ''],
      ]),
    ).toBe('Name:        a\nNamespace:   b\nEmpty:\n');
  });
});

describe('the plan', () => {
  const decisions = [
    planned({ namespace: 'team-b', backup: 'b9' }),
    planned({ name: 'weekly', backup: 'b3', action: 'wait', reason: 'LocationSyncing' }),
    planned({ backup: 'b2', action: 'skip', reason: 'Superseded' }),
    planned({ backup: 'b1' }),
    planned({ namespace: '', name: '', backup: 'b0', action: 'skip', reason: 'InvalidOrigin' }),
    planned({ namespace: 'Zulu', backup: 'b5', action: 'skip', reason: 'InvalidOrigin' }),
  ];

  test('is sorted by namespace, name and backup, byte by byte, in whatever order it comes', () => {
    const order = ['b0', 'b5', 'b1', 'b2', 'b3', 'b9'];
    expect(planDocument(decisions).decisions.map(({ backup }) => backup)).toEqual(order);
    expect(planDocument(decisions.toReversed())).toEqual(planDocument(decisions));
  });

  test('counts every action, wait as waiting, and those that did not come as 0', () => {
    expect(planDocument(decisions).counts).toEqual({ create: 2, repair: 0, none: 0, skip: 3, waiting: 1, conflict: 0 });
    expect(Object.keys(planDocument([]).counts)).toEqual(['create', 'repair', 'none', 'skip', 'waiting', 'conflict']);
  });

  test('as JSON has the documented fields in the documented order, and no others', async () => {
    const extra = { ...planned({}), secret: 'x' };
    const text = await render('json', planDocument([extra]), () => '');
    expect(text).toBe(`{
  "decisions": [
    {
      "backup": "b1",
      "namespace": "team-a",
      "name": "nightly",
      "nacuuid": "b1",
      "action": "create",
      "reason": "Missing",
      "message": "it is due"
    }
  ],
  "counts": {
    "create": 1,
    "repair": 0,
    "none": 0,
    "skip": 0,
    "waiting": 0,
    "conflict": 0
  }
}
`);
  });

  test('as YAML says the same as JSON', async () => {
    const document = planDocument(decisions);
    expect(parse(await render('yaml', document, () => ''))).toEqual(document);
  });

  test('as YAML keeps what looks like another type as text', async () => {
    const document = planDocument([planned({ name: '1e3', namespace: 'no', nacuuid: '0123' })]);
    expect(parse(await render('yaml', document, () => ''), { version: '1.1' })).toEqual(document);
  });

  test('as a table shows nothing that a terminal would act on, and does not break out of its row', () => {
    const text = planTable(planDocument([planned({ name: '\u001b[2Jx\nteam-z   evil', message: '\u202egnp' })]));
    expect(text.split('\n')).toHaveLength(3);
    expect(text).toContain('\\u{1b}[2Jx\\u{a}team-z');
    expect(text).not.toMatch(/[\u001b\u202e]/);
  });
});

describe('the report of a pass', () => {
  const report: PassReport = {
    outcome: 'Partial',
    startTime: '2026-01-01T00:00:00.000Z',
    completionTime: '2026-01-01T00:00:01.500Z',
    counts: { seen: 5, created: 1, repaired: 0, present: 1, skipped: 1, waiting: 0, conflict: 1, failed: 1 },
    reasons: { Expired: 1, QuotaDenied: 1 },
    failures: [{ namespace: 'team-a', name: 'nightly', reason: 'QuotaDenied', message: 'exceeded quota' }],
  };

  test('as tables gives the counts, the reasons and each failure', () => {
    expect(onceTable(report))
      .toBe(`OUTCOME   SEEN   CREATED   REPAIRED   PRESENT   SKIPPED   WAITING   CONFLICT   FAILED   TOOK
Partial   5      1         0          1         1         0         1          1        1.5s

REASON        BACKUPS
Expired       1
QuotaDenied   1

NAMESPACE   NAME      FAILURE       MESSAGE
team-a      nightly   QuotaDenied   exceeded quota
`);
  });

  test('with nothing to do is one table', () => {
    const nothing = { ...report, outcome: 'Succeeded', reasons: {}, failures: [] } as const;
    expect(onceTable(nothing).trimEnd().split('\n')).toHaveLength(2);
  });

  test('that another holder of the Lease is at names the holder', () => {
    const text = onceTable({ ...report, outcome: 'Skipped', holder: 'nab-sync-6f9_abc' });
    expect(text).toContain('Skipped');
    expect(text).toContain('nab-sync-6f9_abc');
  });
});

test('an explanation shows the decision, and every rule with what it looked at', () => {
  const explanation: Explanation = {
    backup: 'b1',
    namespace: 'team-a',
    name: 'nightly',
    nacuuid: 'b1',
    decision: { action: 'skip', reason: 'Expired', message: 'the backup expired yesterday' },
    trail: [
      {
        rule: 1,
        asks: 'It says where it belongs',
        outcome: 'passed',
        values: { namespace: 'team-a', name: 'nightly' },
      },
      { rule: 2, asks: 'It has not expired', outcome: 'decided', values: { expiration: '2026-01-01T00:00:00Z' } },
      { rule: 3, asks: 'It is not there yet', outcome: 'notReached', values: {} },
    ],
  };
  expect(explainText([explanation])).toBe(`Backup:      b1
Namespace:   team-a
Name:        nightly
NACUUID:     b1
Action:      skip
Reason:      Expired
Message:     the backup expired yesterday

#   OUTCOME       RULE                       VALUES
1   passed        It says where it belongs   namespace=team-a; name=nightly
2   decided       It has not expired         expiration=2026-01-01T00:00:00Z
3   not reached   It is not there yet
`);
});
