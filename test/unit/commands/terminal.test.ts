import { describe, expect, test } from 'vitest';
import { checkTable } from '../../../src/commands/check-output.ts';
import { planDocument, planTable } from '../../../src/commands/plan-output.ts';
import { displayWidth, table } from '../../../src/commands/table.ts';
import { paint, terminalOf, wantsColor } from '../../../src/commands/terminal.ts';
import type { PlannedDecision } from '../../../src/sync/report.ts';

const plain = { columns: 40, color: false };
const colored = { columns: 40, color: true };

describe('a terminal', () => {
  test('is what says so; a pipe has none', () => {
    expect(terminalOf({ isTTY: true, columns: 120 }, {})).toEqual({ columns: 120, color: true });
    expect(terminalOf({ isTTY: true }, {})?.columns).toBe(80);
    expect(terminalOf({}, { FORCE_COLOR: '1' })).toBeUndefined();
  });

  test.each<[Record<string, string>, boolean]>([
    [{}, true],
    [{ NO_COLOR: '' }, true],
    [{ NO_COLOR: '1' }, false],
    [{ TERM: 'dumb' }, false],
    [{ TERM: 'xterm' }, true],
  ])('with %j has colours: %j', (environment, color) => {
    expect(wantsColor(environment)).toBe(color);
  });
});

describe('colours', () => {
  test('are for the words that matter, and only with a terminal that has them', () => {
    expect(paint('conflict', colored)).toBe('\u001b[31mconflict\u001b[39m');
    expect(paint('nightly', colored)).toBe('nightly');
    expect([paint('conflict', plain), paint('conflict', undefined)]).toEqual(['conflict', 'conflict']);
    expect(paint('constructor', colored)).toBe('constructor');
  });

  test('do not move a table’s columns', () => {
    const rows = [
      ['create', 'a'],
      ['none', 'b'],
    ];
    const [, first = '', second = ''] = table(['ACTION', 'X'], rows, { terminal: colored }).split('\n');
    expect(first.replace('\u001b[32m', '').replace('\u001b[39m', '')).toBe('create   a');
    expect(second).toBe('none     b');
  });
});

const decision: PlannedDecision = {
  backup: 'team-a-nightly-1',
  namespace: 'team-a',
  name: 'nightly',
  nacuuid: 'another-1',
  action: 'create',
  reason: 'Missing',
  message: 'A message that is longer than what is left of a line on any terminal, however wide that may be.',
};

describe('a plan on a terminal', () => {
  const document = planDocument([decision, { ...decision, action: 'conflict', reason: 'NameTaken' }]);

  test('keeps each row on its line by cutting the message, and ends with a sum', () => {
    const text = planTable(document, { terminal: { columns: 90, color: false } });
    const [header, row = '', , empty, sum] = text.split('\n');
    expect(header).toMatch(/^NAMESPACE +NAME +ACTION +REASON +BACKUP +MESSAGE$/);
    expect(displayWidth(row)).toBe(90);
    expect(row.endsWith('…')).toBe(true);
    expect([empty, sum]).toEqual(['', '2 backups: 1 create, 1 conflict']);
  });

  test('wide has every column and cuts nothing', () => {
    const text = planTable(document, { terminal: { columns: 90, color: false }, wide: true });
    expect(text).toMatch(/^NAMESPACE +NAME +ACTION +REASON +BACKUP +NACUUID +MESSAGE$/m);
    expect(text).toContain('another-1');
    expect(text).toContain(decision.message);
  });

  test('in a pipe is the rows alone, each whole', () => {
    const text = planTable(document);
    expect(text.trimEnd().split('\n')).toHaveLength(3);
    expect(text).toContain(decision.message);
    expect(planTable(document, { wide: true })).toContain('NACUUID');
  });
});

test('a check on a terminal cuts nothing, since both lines of a result matter to the end, and ends with a sum', () => {
  const long = 'x'.repeat(100);
  const text = checkTable(
    {
      checks: [{ check: 'clock', status: 'WARN', message: long, next: long }],
      counts: { OK: 0, WARN: 1, FAIL: 0 },
    },
    { terminal: colored },
  );
  expect(text.split(long)).toHaveLength(3);
  expect(text).toContain('\u001b[33mWARN\u001b[39m');
  expect(text.endsWith('\n\n1 result: 1 WARN\n')).toBe(true);
});
