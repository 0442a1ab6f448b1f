import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import * as z from 'zod';
import { parseCommandLine } from '../../../src/commands/command-line.ts';
import { exitCodes } from '../../../src/commands/exit-codes.ts';
import { rights } from '../../../src/controller/rights.ts';
import { qualifiedName } from '../../../src/kube/resource.ts';
import { createPrometheusMetrics } from '../../../src/observability/prometheus.ts';
import { flags, type FlagSpec } from '../../../src/settings/flags.ts';
import { settingsWarnings } from '../../../src/settings/settings-warning.ts';
import { failureReasons } from '../../../src/sync/reasons.ts';
import { codeBlocks, codeSpans, headings, pages, root, rows, section, text } from '../../support/markdown.ts';

/**
 * Metrics, alerts, commands, flags, variables and exit codes: each that there is stands in the docs, and the docs name none
 * that there is not. What is compared comes from the code, so that a new one fails here until it is written about.
 */

const allPages = pages.map((page) => text(page)).join('\n');

/** For `expect`: where to write what is missing, or what to take away. */
function todo(missing: readonly string[], invented: readonly string[], where: string): string {
  return [
    ...(missing.length > 0 ? [`write about ${missing.join(', ')} in ${where}`] : []),
    ...(invented.length > 0 ? [`take out of ${where} what there is not: ${invented.join(', ')}`] : []),
  ].join('; ');
}

/** Both lists have the same members, in any order. */
function expectSame(documented: readonly string[], real: readonly string[], where: string): void {
  const missing = real.filter((name) => !documented.includes(name));
  const invented = documented.filter((name) => !real.includes(name));
  expect([...documented].sort(), todo(missing, invented, where)).toEqual([...real].sort());
}

const list = { verb: 'list', resource: 'backups.velero.io' };
const prometheus = createPrometheusMetrics({ version: '0.0.0', watched: [list.resource], requests: [list] });
const exposition = await prometheus.render();

interface Metric {
  readonly name: string;
  readonly type: string;
  /** Sorted; undefined where no series shows them. */
  readonly labels: readonly string[] | undefined;
}

const realMetrics: readonly Metric[] = [...exposition.matchAll(/^# TYPE (nab_sync_\w+) (\w+)$/gm)].map(
  ([, name = '', type = '']) => {
    const series = new RegExp(`^${name}(?:_count)?(?:\\{(.*)\\})? `, 'm').exec(exposition);
    const labels = [...(series?.[1] ?? '').matchAll(/(\w+)="/g)].flatMap(([, label]) => label ?? []);
    return { name, type, labels: series === null ? undefined : labels.sort() };
  },
);

/** Names as they stand in PromQL. */
const seriesNames = new Set(
  realMetrics.flatMap(({ name, type }) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  ),
);

describe('metrics', () => {
  const where = 'docs/operate.md, section Metrics';
  const documented = rows(section('docs/operate.md', 'Metrics'));

  test('the table has exactly those that there are, with type and labels', () => {
    const names = documented.flatMap(([name]) => codeSpans(name ?? ''));
    expectSame(
      names,
      realMetrics.map(({ name }) => name),
      where,
    );
    for (const [nameCell = '', type, labelCell = '', meaning = ''] of documented) {
      const real = realMetrics.find(({ name }) => codeSpans(nameCell)[0] === name);
      expect(type, nameCell).toBe(real?.type);
      if (real?.labels !== undefined) expect(codeSpans(labelCell).sort(), nameCell).toEqual(real.labels);
      expect(meaning.length, nameCell).toBeGreaterThan(10);
    }
  });

  test.each(pages)('%s names none that there is not', (page) => {
    const named = [...text(page).matchAll(/\bnab_sync_\w+/g)].map(([name]) => name);
    const known = new Set([...seriesNames, ...realMetrics.map(({ name }) => name)]);
    // `nab_sync_request_…` and the like, for a group.
    expect(named.filter((name) => !known.has(name) && !name.endsWith('_'))).toEqual([]);
  });
});

const alerting = z.object({ alert: z.string(), expr: z.string(), annotations: z.record(z.string(), z.string()) });
const prometheusRule = z.object({ spec: z.object({ groups: z.array(z.object({ rules: z.array(alerting) })) }) });
const alerts = prometheusRule
  .parse(parse(text('manifests/monitoring/prometheus-rule.yaml')))
  .spec.groups.flatMap(({ rules }) => rules);

describe('alerts', () => {
  const runbook = section('docs/operate.md', 'Alerts');

  test('the runbook has one entry for each, and no other', () => {
    expectSame(
      headings(runbook, 3),
      alerts.map(({ alert }) => alert),
      'docs/operate.md, section Alerts (one heading of the third level for each)',
    );
  });

  test.each(alerts)('$alert: its entry says what it means and what to do, and the alert points at it', (rule) => {
    const entry = section('docs/operate.md', rule.alert);
    expect(entry).toMatch(/^\*\*It means:\*\* \S/m);
    expect(entry).toMatch(/^\*\*What to do:\*\* \S/m);
    expect(rule.annotations['runbook']).toBe(`docs/operate.md#${rule.alert.toLowerCase()}`);
  });

  test.each(alerts)('$alert looks at metrics that there are', ({ expr }) => {
    const named = [...expr.matchAll(/\bnab_sync_\w+/g)].map(([name]) => name).filter((name) => !name.endsWith('_'));
    expect(named.filter((name) => !seriesNames.has(name))).toEqual([]);
  });

  test('no page names another', () => {
    const known = new Set(alerts.map(({ alert }) => alert));
    const named = [...allPages.matchAll(/\bNabSync[A-Z]\w+/g)].map(([name]) => name);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });
});

/** The help text of `nab-sync ARGS`. */
function help(...args: readonly string[]): string {
  const parsed = parseCommandLine([...args, '--help']);
  if (parsed.kind !== 'text') throw new Error(`no help for ${args.join(' ')}`);
  return parsed.text;
}

/** Options as `--help` lists them: the long form, and the short one where there is one. */
function optionsIn(helpText: string): [long: string, short: string | undefined][] {
  return [...helpText.matchAll(/^ {2}(?:(-\w), )?(--[a-z][a-z-]*)/gm)].map(([, short, long = '']) => [long, short]);
}

const commandList =
  help()
    .split(/^Commands:\n/m)[1]
    ?.split('\n\n')[0] ?? '';
const commands = [...commandList.matchAll(/^ {2}([a-z-]+)/gm)]
  .flatMap(([, name]) => name ?? [])
  .filter((name) => name !== 'help');
const settings: readonly FlagSpec[] = flags;
const options = new Map([...optionsIn(help()), ...commands.flatMap((command) => optionsIn(help(command)))]);

/** Everything on the pages that a reader would type, one line each. */
const typed = pages
  .map((page) => text(page))
  .flatMap((page) => [...codeBlocks(page).flatMap(({ body }) => body.split('\n')), ...codeSpans(page)]);
/** The arguments of each nab-sync that they type. */
const calls = typed.flatMap((line) => /^(?:\$ )?(?:.*\bkubectl )?nab-sync ([^#]*)/.exec(line)?.[1] ?? []);

describe('commands', () => {
  test('each is shown in README.md', () => {
    const missing = commands.filter((command) => !new RegExp(`\\bnab-sync ${command}\\b`).test(text('README.md')));
    expect(commands).toContain('plan');
    expect(missing, todo(missing, [], 'README.md, section Ask it')).toEqual([]);
  });

  test('the pages show none that there is not', () => {
    const named = calls.flatMap((call) => /^[a-z]+/.exec(call)?.[0] ?? []);
    expect(named).toContain('explain');
    expect(named.filter((name) => !commands.includes(name) && name !== 'help')).toEqual([]);
  });
});

describe('flags', () => {
  test('each option of a command is named in a page', () => {
    const words = new Set(typed.flatMap((line) => line.split(/[\s=,]+/)));
    const missing = [...options].filter(([long, short = '']) => !words.has(long) && !words.has(short));
    const names = missing.map(([long]) => long);
    expect(names, todo(names, [], 'README.md, sections Ask it and Settings')).toEqual([]);
  });

  test('what the pages run as nab-sync has only options that there are', () => {
    const used = calls.flatMap((call) => call.split(/[\s=]+/).filter((word) => word.startsWith('-')));
    const known = new Set([...options].flat());
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((option) => !known.has(option))).toEqual([]);
  });

  test('what the user’s pages name as a flag on its own is one', () => {
    const users = pages.filter((page) => /^(?:README|docs\/[\w-]+)\.md$/.test(page) && page !== 'docs/field-cases.md');
    const alone = users.flatMap((page) => codeSpans(text(page))).filter((span) => /^--[a-z][a-z-]*$/.test(span));
    expect(alone.filter((option) => !options.has(option))).toEqual([]);
  });
});

describe('environment variables', () => {
  const known = new Set(settings.flatMap(({ environment }) => environment ?? []));

  test('what the manifests set is read', () => {
    const manifests = readdirSync(join(root, 'manifests'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.yaml'))
      .map((name) => text(`manifests/${name}`))
      .join('\n');
    const set = [...manifests.matchAll(/name: ([A-Z][A-Z_]+)$/gm)].flatMap(([, name]) => name ?? []);
    // Read by the C library.
    const others = ['MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'MALLOC_TRIM_THRESHOLD_'];
    expect(set).toContain('WATCH_NAMESPACE');
    expect(set.filter((name) => !known.has(name) && !others.includes(name))).toEqual([]);
  });

  test('what the pages set for nab-sync is read', () => {
    const set = typed
      .filter((line) => /kubectl set env\b.*\bdeployment\/nab-sync\b/.test(line))
      .flatMap((line) => [...line.matchAll(/ ([A-Z][A-Z_]+)[=-]/g)].flatMap(([, name]) => name ?? []));
    expect(set.filter((name) => !known.has(name))).toEqual([]);
  });
});

describe('exit codes', () => {
  const where = 'docs/operate.md, section Exit codes';
  const real = [...new Set(Object.values(exitCodes))].map(String);

  test('the table has exactly those that there are', () => {
    const documented = rows(section('docs/operate.md', 'Exit codes')).flatMap(([code]) => codeSpans(code ?? ''));
    expectSame(documented, real, where);
  });

  test('so has --help', () => {
    const [, listed = ''] = help().split(/^Exit codes:$/m);
    const [table = ''] = listed.split('\n\n');
    const codes = [...table.matchAll(/^ {2}(\d+) |\((\d+): /gm)].flatMap(([, first, second]) => first ?? second ?? []);
    expectSame(codes, real, '--help (src/commands/command-line.ts)');
  });
});

describe('reasons', () => {
  test('for each failure docs/reasons.md says what to do', () => {
    for (const [reason = '', , , , advice = ''] of rows(section('docs/reasons.md', 'Why a write failed'))) {
      expect(advice.length, reason).toBeGreaterThan(5);
    }
    expect(rows(section('docs/reasons.md', 'Why a write failed'))).toHaveLength(failureReasons.length);
  });
});

describe('warnings of the settings', () => {
  test('the runbook has each, and no other', () => {
    const entry = section('docs/operate.md', 'NabSyncPeriodOrder');
    const listed = [...entry.matchAll(/^- `(\w+)`: /gm)].flatMap(([, code]) => code ?? []);
    expectSame(listed, settingsWarnings, 'docs/operate.md, section NabSyncPeriodOrder');
  });
});

describe('rights', () => {
  test('docs/security.md lists exactly those that there are', () => {
    const real = rights.map(({ verb, resource, subresource, objectName, scope }) => {
      const kind = [qualifiedName(resource), ...(subresource === undefined ? [] : [subresource])].join('/');
      const where = scope === 'cluster' ? 'every namespace' : 'the OADP namespace';
      return `${verb} ${[kind, ...(objectName === undefined ? [] : [objectName])].join(' ')} in ${where}`;
    });
    const documented = rows(section('docs/security.md', 'What it may do')).flatMap(
      ([where = '', kind = '', verbs = '']) =>
        codeSpans(verbs).map((verb) => `${verb} ${codeSpans(kind)[0] ?? ''} in ${where}`),
    );
    expectSame(documented, real, 'docs/security.md, section What it may do');
  });
});

describe('overlays', () => {
  test('docs/install.md lists exactly those that there are', () => {
    const documented = rows(section('docs/install.md', 'The overlay')).flatMap(([name]) => codeSpans(name ?? ''));
    expectSame(documented, readdirSync(join(root, 'manifests/overlays')), 'docs/install.md, section The overlay');
  });
});

describe('log', () => {
  test('each message of the table in docs/operate.md is logged', () => {
    const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => text(`src/${name}`))
      .join('\n');
    const documented = rows(section('docs/operate.md', 'Log')).flatMap(([message]) => codeSpans(message ?? ''));
    expect(documented.length).toBeGreaterThan(5);
    expect(documented.filter((message) => !sources.includes(`'${message}'`))).toEqual([]);
  });
});

describe('the dashboard', () => {
  test('shows metrics that there are', () => {
    const named = [...text('manifests/monitoring/dashboard.json').matchAll(/\bnab_sync_\w+/g)].map(([name]) => name);
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((name) => !seriesNames.has(name) && !name.endsWith('_'))).toEqual([]);
  });
});

describe('links within the pages', () => {
  /** As GitHub makes them from headings. */
  const anchors = (page: string): string[] =>
    [...text(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    );

  test.each(pages)('%s links only to headings that exist', (page) => {
    const links = [...text(page).matchAll(/\]\(([^)\s#:]*)#([^)\s]+)\)/g)];
    const broken = links.filter(([, file = '', anchor = '']) => {
      const target = file === '' ? page : join(page, '..', file);
      return existsSync(join(root, target)) && !anchors(target).includes(anchor);
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  });
});
