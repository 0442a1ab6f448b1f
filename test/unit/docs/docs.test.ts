import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { KubeError, type KubeErrorCode } from '../../../src/kube/errors.ts';
import { isJsonObject } from '../../../src/kube/json.ts';
import { syncedCondition } from '../../../src/oadp/non-admin-backup.ts';
import { flags, type FlagSpec } from '../../../src/settings/flags.ts';
import { toWriteFailure } from '../../../src/sync/failure.ts';
import {
  actionOf,
  decisionReasons,
  failureReasons,
  isDecisionReason,
  refusalReasons,
  type Reason,
} from '../../../src/sync/reasons.ts';
import { claimRules, readinessRules, targetRules } from '../../../src/sync/rules.ts';
import { codeSpans, pages, root, rows, section, text } from '../../support/markdown.ts';

/** The documentation says what the code says. Everything here reads the committed pages themselves. */

const reasonWord = /^(?:[A-Z][a-z]+)+$/;

/** Reasons of one rule, in the order in which it looks for them, read off its source: a rule does not list them. */
function reasonsIn(check: (...args: never[]) => unknown): Reason[] {
  const words = [...check.toString().matchAll(/["'`](\w+)["'`]/g)].flatMap(([, word]) => word ?? []);
  return [...refusalReasons, ...decisionReasons]
    .filter((reason) => words.includes(reason))
    .sort((a, b) => words.indexOf(a) - words.indexOf(b));
}

const byRule = [...claimRules, ...readinessRules, ...targetRules].flatMap(({ check }, index) =>
  reasonsIn(check).map((reason) => [String(index + 1), reason] as const),
);

/** An error that a write fails with for this reason. */
function exampleOf(reason: string | undefined): Error {
  const of = (code: KubeErrorCode, message = '', deniedBy?: 'admission'): KubeError =>
    new KubeError({ code, verb: 'create', resource: 'nonadminbackups.oadp.openshift.io', message, deniedBy });
  switch (reason) {
    case 'QuotaDenied':
      return of('Forbidden', 'exceeded quota: nabs', 'admission');
    case 'AdmissionDenied':
      return of('Forbidden', 'denied by a policy', 'admission');
    case 'Invalid':
    case 'TooLarge':
    case 'Forbidden':
    case 'Unauthorized':
    case 'KindNotInstalled':
    case 'Throttled':
    case 'Timeout':
    case 'Unreachable':
    case 'ServerError':
    case 'Aborted':
      return of(reason);
    default:
      return new TypeError('a fault of ours');
  }
}

describe('docs/reasons.md', () => {
  const decisions = ['Is the claim genuine?', 'Is the backup ready?', 'What is to be done in the namespace?'];
  const decisionRows = decisions.flatMap((heading) => rows(section('docs/reasons.md', heading)));

  test('the rules give every reason for a decision, each in one place', () => {
    expect(byRule.map(([, reason]) => reason).sort()).toEqual([...refusalReasons, ...decisionReasons].sort());
  });

  test('has one row for each reason for a decision, numbered and in the order of the rules', () => {
    expect(decisionRows.map(([rule, reason]) => [rule, ...codeSpans(reason ?? '')])).toEqual(byRule);
  });

  test('gives each its action', () => {
    const actions = decisionRows.map(([, reason, action]) => [codeSpans(reason ?? '')[0], action]);
    expect(Object.fromEntries(actions)).toEqual(actionOf);
  });

  test('has one row for each reason why a write failed, in the order of the list', () => {
    const failed = rows(section('docs/reasons.md', 'Why a write failed'));
    expect(failed.map(([reason]) => codeSpans(reason ?? ''))).toEqual(failureReasons.map((reason) => [reason]));
  });

  test('says of each what it means for the pass over its namespace', () => {
    const rest = { next: 'goes on', doubt: 'ends after five', stop: 'ends' } as const;
    const failed = rows(section('docs/reasons.md', 'Why a write failed'));
    for (const [reason = '', , pass, again] of failed) {
      const failure = toWriteFailure(exampleOf(codeSpans(reason)[0]));
      expect([`\`${failure.reason}\``, rest[failure.rest]]).toEqual([reason, pass]);
      expect(again === 'when the backup or the namespace changes', reason).toBe(failure.permanent);
    }
  });

  test('names no reason that there is not, for events neither', () => {
    const known = new Set<string>([...refusalReasons, ...decisionReasons, ...failureReasons, syncedCondition.reason]);
    const events = rows(section('docs/reasons.md', 'Events')).flatMap(([, , reason]) => codeSpans(reason ?? ''));
    expect(events.length).toBeGreaterThan(0);
    expect(events.filter((reason) => !known.has(reason))).toEqual([]);
  });
});

describe('README.md', () => {
  const settings = rows(section('README.md', 'Settings'));
  const all: readonly FlagSpec[] = flags;

  test('has exactly the flags that there are, in their order', () => {
    expect(settings.flatMap(([flag]) => codeSpans(flag ?? ''))).toEqual(
      all.flatMap(({ name, argument }) => (argument === undefined ? [`--${name}`, `--no-${name}`] : [`--${name}`])),
    );
  });

  test('gives each row the variables of its flags', () => {
    for (const [flagCell = '', variables = ''] of settings) {
      const named = codeSpans(flagCell);
      const expected = all
        .filter(({ name }) => named.includes(`--${name}`))
        .flatMap(({ environment }) => environment ?? []);
      expect(codeSpans(variables), flagCell).toEqual(expected);
    }
  });

  test('lists exactly the reasons that there are, in the order of the rules', () => {
    const listed = rows(section('README.md', 'Rules and reasons')).flatMap(([, reasons]) => codeSpans(reasons ?? ''));
    expect(listed).toEqual([...byRule.map(([, reason]) => reason), ...failureReasons]);
  });
});

describe('every page', () => {
  test.each(pages)('%s links only to files that exist', (page) => {
    const links = [...text(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target]) => target ?? []);
    const files = links.filter((target) => !/^[a-z]+:|^#/.test(target)).map((target) => target.replace(/#.*$/, ''));
    expect(files.filter((file) => !existsSync(join(root, dirname(page), file)))).toEqual([]);
  });

  test.each(pages)('%s names only files and folders of the project that exist', (page) => {
    const paths = codeSpans(text(page)).filter((span) => /^(?:src|test|docs|manifests)\/[\w./-]+$/.test(span));
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test.each(pages)('%s calls nothing a reason in its tables that looks like one and is none', (page) => {
    if (page !== 'README.md' && page !== 'docs/reasons.md') return;
    const reasonCells = rows(text(page)).flatMap((cells) => cells.flatMap(codeSpans).filter((s) => reasonWord.test(s)));
    const words = new Set<string>([
      ...refusalReasons,
      ...decisionReasons,
      ...failureReasons,
      syncedCondition.reason,
      // Phases, a condition and an access mode, which the explanations speak of.
      'Completed',
      'PartiallyFailed',
      'Failed',
      'Synced',
      'ReadOnly',
    ]);
    expect(reasonCells.filter((word) => !words.has(word))).toEqual([]);
  });
});

/** The cases from the field, parts A to D. Numbers that are missing were never given to a case. */
const fieldCases = {
  A: [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 25, 26, 27, 28],
  B: [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 27, 28, 29, 30, 31],
  C: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 19, 21, 23, 24, 26, 27],
  D: [1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 15, 16, 17],
} as const;

describe('docs/field-cases.md', () => {
  const cases = rows(text('docs/field-cases.md'));
  const cited = cases.map(([id = '', , evidence = '']) => ({
    id,
    evidence,
    citations: [...evidence.matchAll(/`(test\/[^`]+)` "([^"]+)"/g)].map(([, file = '', title = '']) => ({
      file,
      title,
    })),
  }));

  test('has each case exactly once, in order', () => {
    const ids = Object.entries(fieldCases).flatMap(([part, numbers]) => numbers.map((number) => `${part}${number}`));
    expect(cases.map(([id]) => id)).toEqual(ids);
  });

  test('says of each what nab-sync does, and cites a test or says why there is none', () => {
    for (const [id, what = ''] of cases) expect(what.length, id).toBeGreaterThan(20);
    const without = cited.filter(({ citations }) => citations.length === 0);
    const unexplained = without.filter(({ evidence }) => !/^(?:does not apply|not yet): \S/.test(evidence));
    expect(unexplained.map(({ id }) => id)).toEqual([]);
  });

  test.each(cited)('$id: what it cites is there', ({ evidence, citations }) => {
    // A file that is named without a title in the right form would go unchecked.
    expect(codeSpans(evidence).filter((span) => span.startsWith('test/'))).toHaveLength(citations.length);
    for (const { file, title } of citations) {
      expect(existsSync(join(root, file)), file).toBe(true);
      const source = text(file);
      for (const part of title.split(' › ')) {
        const written = [`'${part}'`, `"${part}"`, `\`${part}\``].some((literal) => source.includes(literal));
        expect(written, `${file}: ${part}`).toBe(true);
      }
    }
  });
});

describe('what is committed', () => {
  // Built from parts, so that this file does not find itself.
  const machinePath = new RegExp(`(?<![\\w.$~})-])/(?:${['work', 'root', 'Users'].join('|')})/`);
  const registryHost =
    /https?:\/\/[\w.-]*(?:registry|artifactory|nexus|goproxy|mirror)[\w.-]*|registry\.npmjs\.|proxy\.golang\./i;

  test.skipIf(!existsSync(join(root, '.git')))('holds no path of a machine and no host of a registry', () => {
    const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 });
    const found: string[] = [];
    for (const file of files.split('\0')) {
      // Deleted and not committed yet, or no text.
      if (file === '' || !existsSync(join(root, file)) || text(file).includes('\0')) continue;
      for (const [index, line] of text(file).split('\n').entries()) {
        if (file === 'package-lock.json' && /^\s*"integrity":/.test(line)) continue;
        if (machinePath.test(line) || registryHost.test(line)) found.push(`${file}:${index + 1}`);
      }
    }
    expect(found).toEqual([]);
  });
});

describe('package.json', () => {
  /** As numbers that compare; undefined for a range of another form. */
  function atLeast(range: unknown): readonly [number, number] | undefined {
    const [, major, minor = '0'] = (typeof range === 'string' ? /^>=\s*(\d+)(?:\.(\d+))?/.exec(range) : null) ?? [];
    return major === undefined ? undefined : [Number(major), Number(minor)];
  }

  function engine(path: string): readonly [number, number] | undefined {
    const content: unknown = JSON.parse(text(path));
    const engines = isJsonObject(content) ? content['engines'] : undefined;
    return atLeast(isJsonObject(engines) ? engines['node'] : undefined);
  }

  test('asks for a Node that all run-time dependencies run on (field case C24)', () => {
    const content: unknown = JSON.parse(text('package.json'));
    const dependencies = isJsonObject(content) ? content['dependencies'] : undefined;
    const ours = engine('package.json') ?? [0, 0];
    const tooNew = Object.keys(isJsonObject(dependencies) ? dependencies : {}).filter((name) => {
      const theirs = engine(`node_modules/${name}/package.json`);
      return theirs !== undefined && (theirs[0] > ours[0] || (theirs[0] === ours[0] && theirs[1] > ours[1]));
    });
    expect(engine('node_modules/undici/package.json')).toBeDefined();
    expect(tooNew).toEqual([]);
  });
});

test('every reason is a decision or a failure, as the pages take for granted', () => {
  expect([...refusalReasons, ...decisionReasons].every(isDecisionReason)).toBe(true);
  expect(failureReasons.some(isDecisionReason)).toBe(false);
});
