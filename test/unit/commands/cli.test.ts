import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { cli } from '../../../src/commands/cli.ts';
import { check } from '../../../src/commands/check.ts';
import type { Dispatch } from '../../../src/commands/execute.ts';
import { explain } from '../../../src/commands/explain.ts';
import { once } from '../../../src/commands/once.ts';
import { plan } from '../../../src/commands/plan.ts';
import { status } from '../../../src/commands/status.ts';
import { Interruption } from '../../../src/commands/surroundings.ts';
import type { CheckResult } from '../../../src/controller/check/verdict.ts';
import type { CommandContext } from '../../../src/controller/context.ts';
import type { SyncStatus } from '../../../src/controller/sync-status.ts';
import { KubeError } from '../../../src/kube/errors.ts';
import type { ExplainTarget } from '../../../src/sync/plan.ts';
import type { Explanation, PassReport, PlannedDecision } from '../../../src/sync/report.ts';
import { fakeSurroundings, Sink, writeKubeconfig } from './support.ts';

const directory = mkdtempSync(join(tmpdir(), 'nab-sync-'));
const KUBECONFIG = writeKubeconfig(directory, 'http://127.0.0.1:1');
afterAll(() => {
  rmSync(directory, { recursive: true });
});

const decision: PlannedDecision = {
  backup: 'b1',
  namespace: 'team-a',
  name: 'nightly',
  nacuuid: 'b1',
  action: 'conflict',
  reason: 'NameTaken',
  message: 'the name is taken',
};

const report: PassReport = {
  outcome: 'Succeeded',
  startTime: '2026-01-01T00:00:00.000Z',
  completionTime: '2026-01-01T00:00:00.500Z',
  counts: { seen: 2, created: 1, repaired: 0, present: 0, skipped: 0, waiting: 0, conflict: 1, failed: 0 },
  reasons: { Missing: 1, NameTaken: 1 },
  failures: [],
};

const explanation: Explanation = {
  backup: 'b1',
  namespace: 'team-a',
  name: 'nightly',
  nacuuid: 'b1',
  decision: { action: 'create', reason: 'Missing', message: 'it is due' },
  trail: [],
};

interface Work {
  readonly decisions?: readonly PlannedDecision[];
  readonly report?: PassReport;
  readonly explanations?: readonly Explanation[];
  readonly checks?: readonly CheckResult[];
  readonly kept?: { readonly status: SyncStatus; readonly unreadable: readonly string[] };
  readonly seen?: (context: CommandContext, target?: ExplainTarget) => void;
}

/** The real bodies over work that is already done. */
function done({
  decisions = [],
  report: passReport = report,
  explanations = [],
  kept,
  checks = [],
  seen,
}: Work): Dispatch {
  return (invocation, context, { streams }) => {
    switch (invocation.command) {
      case 'run':
        seen?.(context);
        return Promise.resolve({ exitCode: 0 });
      case 'once':
        return once(context, invocation.output, streams, (given) => {
          seen?.(given);
          return Promise.resolve(passReport);
        });
      case 'plan':
        return plan(context, invocation.output, streams, (given) => {
          seen?.(given);
          return Promise.resolve(decisions);
        });
      case 'explain':
        return explain(context, invocation.target, invocation.output, streams, (given, target) => {
          seen?.(given, target);
          return Promise.resolve(explanations);
        });
      case 'status':
        return status(context, invocation.output, streams, () => Promise.resolve(kept));
      case 'check':
        return check(context, invocation.output, streams, () => Promise.resolve(checks));
      case 'request':
        return Promise.reject(new Error('has an API server of its own to ask'));
    }
  };
}

function failing(error: unknown): Dispatch {
  return () => {
    throw error;
  };
}

const never: Dispatch = () => {
  throw new Error('the command was run');
};

describe('plan', () => {
  test('ends with 0 whatever it finds, its data on stdout and nothing else', async () => {
    const process = fakeSurroundings({ KUBECONFIG });
    expect(await cli(['plan', '-o', 'json'], process, done({ decisions: [decision] }))).toBe(0);
    expect(JSON.parse(process.out.text)).toMatchObject({ decisions: [decision], counts: { conflict: 1, create: 0 } });
    expect(process.error.text).toBe('');
  });

  test('that finds nothing tells people so on stderr, and a program by an empty list', async () => {
    const process = fakeSurroundings({ KUBECONFIG });
    expect(await cli(['plan'], process, done({}))).toBe(0);
    expect(process.out.text).toBe('');
    expect(process.error.text).toBe('No labelled Velero Backups found in namespace openshift-adp.\n');
    const json = fakeSurroundings({ KUBECONFIG });
    await cli(['plan', '-o', 'json'], json, done({}));
    expect(JSON.parse(json.out.text)).toMatchObject({ decisions: [] });
  });

  test('whose reader goes away ends quietly', async () => {
    const gone = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    const process = fakeSurroundings({ KUBECONFIG }, new Sink(gone));
    expect(await cli(['plan', '-o', 'json'], process, done({ decisions: [decision] }))).toBe(0);
    expect(process.error.text).toBe('');
  });

  test('whose output cannot be written fails, in the system’s words', async () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    const process = fakeSurroundings({ KUBECONFIG }, new Sink(full));
    expect(await cli(['plan', '-o', 'json'], process, done({}))).toBe(1);
    expect(process.error.text).toBe('nab-sync: ENOSPC: no space left on device, write\n');
  });

  test('hands on the namespaces it was given, lists taken apart', async () => {
    let namespaces: readonly string[] = [];
    const seen = (context: CommandContext) => {
      namespaces = context.namespaces;
    };
    await cli(['plan', '-n', 'team-a,team-b', '-n', 'team-c'], fakeSurroundings({ KUBECONFIG }), done({ seen }));
    expect(namespaces).toEqual(['team-a', 'team-b', 'team-c']);
  });

  test.each(['Team', '', 'a/b', 'team-a,'])('refuses the namespace %j', async (namespace) => {
    const process = fakeSurroundings({ KUBECONFIG });
    expect(await cli(['plan', '-n', namespace], process, never)).toBe(2);
    expect(process.error.text).toMatch(/^nab-sync: --namespace: expected a namespace, got ".*"\n$/);
  });
});

describe('once', () => {
  test('ends with 0 when conflicts were all that it met', async () => {
    const process = fakeSurroundings({ KUBECONFIG });
    expect(await cli(['once', '-o', 'json'], process, done({}))).toBe(0);
    expect(JSON.parse(process.out.text)).toEqual(report);
  });

  test('ends with 0 when another nab-sync is at it', async () => {
    const counts = { seen: 0, created: 0, repaired: 0, present: 0, skipped: 0, waiting: 0, conflict: 0, failed: 0 };
    const skipped = { ...report, outcome: 'Skipped', counts, reasons: {}, holder: 'pod-1' } as const;
    expect(await cli(['once'], fakeSurroundings({ KUBECONFIG }), done({ report: skipped }))).toBe(0);
  });

  test('ends with 1 when something failed, and the termination log says what', async () => {
    const path = join(directory, 'once-log');
    const failures = [{ namespace: 'team-a', name: 'x', reason: 'QuotaDenied', message: 'exceeded quota' }] as const;
    const failed = { ...report, outcome: 'Partial', counts: { ...report.counts, failed: 1 }, failures } as const;
    const process = fakeSurroundings({ KUBECONFIG, TERMINATION_LOG: path });
    expect(await cli(['once'], process, done({ report: failed }))).toBe(1);
    expect(process.out.text).toContain('QuotaDenied');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      command: 'once',
      exitCode: 1,
      code: 'Partial',
      message: '1 of 2 backups could not be brought back',
      failures,
    });
  });
});

describe('explain', () => {
  test.each<[string, ExplainTarget]>([
    ['team-a/nightly', { namespace: 'team-a', name: 'nightly' }],
    ['team-a-nightly-1234', { backup: 'team-a-nightly-1234' }],
  ])('%s names its target', async (text, target) => {
    let asked: ExplainTarget | undefined;
    const process = fakeSurroundings({ KUBECONFIG });
    const seen = (_: CommandContext, given?: ExplainTarget) => {
      asked = given;
    };
    expect(await cli(['explain', text, '-o', 'json'], process, done({ explanations: [explanation], seen }))).toBe(0);
    expect(asked).toEqual(target);
    expect(JSON.parse(process.out.text)).toEqual({ explanations: [explanation] });
  });

  test('ends with 1 and one line when nothing matches', async () => {
    const process = fakeSurroundings({ KUBECONFIG });
    expect(await cli(['explain', 'team-a/none'], process, done({}))).toBe(1);
    expect(process.out.text).toBe('');
    expect(process.error.text).toBe(
      'nab-sync: no labelled Velero Backup in namespace openshift-adp matches "team-a/none"; nab-sync plan lists them\n',
    );
  });

  test.each(['/nightly', 'team-a/', '/'])('refuses %s', async (target) => {
    const process = fakeSurroundings({ KUBECONFIG });
    expect(await cli(['explain', target], process, done({}))).toBe(2);
    expect(process.error.text).toMatch(/^nab-sync: explain: expected NAMESPACE\/NAME or the name/);
  });
});

describe('status', () => {
  const kept = {
    status: {
      lastAttempt: Date.UTC(2026, 0, 1),
      lastFailure: Date.UTC(2026, 0, 1, 0, 1),
      lastFailureMessage: '1 backup could not be brought back',
      consecutiveFailures: 3,
      reasons: { Present: 5, Expired: 1 },
    },
    unreadable: [],
  };

  test('prints what was kept, and ends with 0 though the last pass failed', async () => {
    const process = fakeSurroundings({ KUBECONFIG });
    expect(await cli(['status', '-o', 'json'], process, done({ kept }))).toBe(0);
    expect(JSON.parse(process.out.text)).toEqual({
      lastAttemptTime: '2026-01-01T00:00:00Z',
      lastFailureTime: '2026-01-01T00:01:00Z',
      lastFailureMessage: '1 backup could not be brought back',
      consecutiveFailures: 3,
      reasons: { Present: 5, Expired: 1 },
    });
    expect(process.error.text).toBe('');
  });

  test('as a table says when each thing was, and how long ago', async () => {
    const process = fakeSurroundings({ KUBECONFIG });
    await cli(['status'], process, done({ kept }));
    expect(process.out.text.replace(/\d+d ago/g, 'Nd ago')).toBe(
      `Last attempt:           2026-01-01T00:00:00Z (Nd ago)
Last successful sync:   never
Last failure:           2026-01-01T00:01:00Z (Nd ago)
Last failure message:   1 backup could not be brought back
Consecutive failures:   3

REASON    BACKUPS
Expired   1
Present   5
`,
    );
  });

  test('says so where nothing was kept yet, or what was kept cannot be read', async () => {
    const nothing = fakeSurroundings({ KUBECONFIG });
    expect(await cli(['status', '-o', 'json'], nothing, done({}))).toBe(0);
    expect(JSON.parse(nothing.out.text)).toEqual({ consecutiveFailures: 0, reasons: {} });
    expect(nothing.error.text).toBe(
      'nab-sync: nothing was synced yet: there is no ConfigMap nab-sync-status in namespace openshift-adp\n',
    );
    const broken = fakeSurroundings({ KUBECONFIG });
    expect(await cli(['status'], broken, done({ kept: { ...kept, unreadable: ['reasons'] } }))).toBe(0);
    expect(broken.error.text).toMatch(/^nab-sync: ConfigMap nab-sync-status .* was edited .*: reasons\n$/);
  });
});

describe('check', () => {
  const ok: CheckResult = { check: 'kinds', status: 'OK', message: 'all 7 kinds are served' };
  const warn: CheckResult = { check: 'clock', status: 'WARN', message: 'an hour behind', next: 'set it' };
  const fail: CheckResult = { check: 'rights', status: 'FAIL', message: 'may not list namespaces', next: 'grant list' };

  test.each([
    [[ok], 0],
    [[ok, warn], 0],
    [[ok, warn, fail], 1],
  ])('%# ends with 1 only if something failed, whatever the format', async (checks, exitCode) => {
    const path = join(directory, 'check-log');
    for (const output of ['table', 'json']) {
      const process = fakeSurroundings({ KUBECONFIG, TERMINATION_LOG: path });
      expect(await cli(['check', '-o', output], process, done({ checks }))).toBe(exitCode);
      expect(process.error.text).toBe('');
    }
    // In a pod that is the controller's.
    expect(existsSync(path)).toBe(false);
  });

  test('as JSON has every result, and how many there are of each status', async () => {
    const process = fakeSurroundings({ KUBECONFIG });
    await cli(['check', '-o', 'json'], process, done({ checks: [ok, fail] }));
    expect(JSON.parse(process.out.text)).toEqual({ checks: [ok, fail], counts: { OK: 1, WARN: 0, FAIL: 1 } });
  });

  test('as a table has the next step below what is wrong', async () => {
    const process = fakeSurroundings({ KUBECONFIG });
    await cli(['check'], process, done({ checks: [ok, fail] }));
    expect(process.out.text).toBe(`CHECK    STATUS   MESSAGE
kinds    OK       all 7 kinds are served
rights   FAIL     may not list namespaces
                  → grant list
`);
  });
});

describe('a failure', () => {
  test('of the command line is one line, exit code 2, and stands in the termination log', async () => {
    const path = join(directory, 'usage-log');
    const process = fakeSurroundings({ TERMINATION_LOG: path });
    expect(await cli(['run', '--bogus'], process, never)).toBe(2);
    expect(process.error.text).toBe("nab-sync: unknown option '--bogus'; see nab-sync --help\n");
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ exitCode: 2, code: 'Configuration' });
  });

  test('of the settings is one line for each, exit code 2, and stands in the termination log', async () => {
    const path = join(directory, 'settings-log');
    const process = fakeSurroundings({ KUBECONFIG, SYNC_PERIOD: 'x', CONCURRENCY: '0' });
    expect(await cli(['run', '--termination-log', path], process, never)).toBe(2);
    expect(process.error.text.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^nab-sync: environment variable SYNC_PERIOD: /),
      expect.stringMatching(/^nab-sync: environment variable CONCURRENCY: /),
    ]);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      command: 'run',
      exitCode: 2,
      message: expect.stringContaining('SYNC_PERIOD') as string,
    });
  });

  test('of the cluster is one line with the server’s address, and exit code 1', async () => {
    const process = fakeSurroundings({ KUBECONFIG });
    const error = new KubeError({
      code: 'Unauthorized',
      verb: 'list',
      resource: 'backups.velero.io',
      message: 'list backups.velero.io: credentials refused: Unauthorized',
    });
    expect(await cli(['plan'], process, failing(error))).toBe(1);
    expect(process.error.text).toMatch(
      /^nab-sync: list backups\.velero\.io: credentials refused: Unauthorized \(http:\/\/127\.0\.0\.1:1\); renew .*\n$/,
    );
  });

  test('of our own is one line without a stack', async () => {
    const process = fakeSurroundings({ KUBECONFIG });
    expect(await cli(['plan'], process, failing(new TypeError('x is undefined')))).toBe(1);
    expect(process.error.text).toBe(
      'nab-sync: internal error: x is undefined; a fault of nab-sync, --log-level debug shows where\n',
    );
  });

  test('that nobody caught ends the command like any other', async () => {
    const path = join(directory, 'crash-log');
    const process = fakeSurroundings({ KUBECONFIG, TERMINATION_LOG: path });
    const hanging: Dispatch = () => {
      process.crash(new Error('lost promise'));
      return new Promise(() => undefined);
    };
    expect(await cli(['once'], process, hanging)).toBe(1);
    expect(process.error.text).toMatch(/^nab-sync: internal error: lost promise; .*\n$/);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ code: 'InternalError', command: 'once' });
  });
});

describe('a signal', () => {
  const aborted = new KubeError({ code: 'Aborted', verb: 'list', resource: 'backups.velero.io', message: 'aborted' });

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends a command with %d and without a word', async (signalName, exitCode) => {
    const process = fakeSurroundings({ KUBECONFIG });
    const stopped: Dispatch = () => {
      process.stop.abort(new Interruption(signalName));
      throw aborted;
    };
    expect(await cli(['once'], process, stopped)).toBe(exitCode);
    expect(process.error.text).toBe('');
  });

  test('ends a command with its code that had not begun its work, or not come through with it', async () => {
    const path = join(directory, 'interrupted');
    const process = fakeSurroundings({ KUBECONFIG, TERMINATION_LOG: path });
    const waiting: Dispatch = () => {
      process.stop.abort(new Interruption('SIGTERM'));
      process.signal.throwIfAborted();
      return Promise.resolve({ exitCode: 0 });
    };
    expect(await cli(['once'], process, waiting)).toBe(143);
    expect(process.error.text).toBe('');

    const halfway = fakeSurroundings({ KUBECONFIG, TERMINATION_LOG: path });
    const seen = () => {
      halfway.stop.abort(new Interruption('SIGINT'));
    };
    const aborted: PassReport = { ...report, outcome: 'Failed', counts: { ...report.counts, failed: 2 } };
    expect(await cli(['once'], halfway, done({ report: aborted, seen }))).toBe(130);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ exitCode: 130, code: 'Failed' });
  });

  test('ends run with 0: it is never done, so it did what it was told', async () => {
    const process = fakeSurroundings({ KUBECONFIG });
    const stopped: Dispatch = () => {
      process.stop.abort(new Interruption('SIGTERM'));
      throw aborted;
    };
    expect(await cli(['run'], process, stopped)).toBe(0);
  });

  test('before it was done stands in the termination log of a command that has something to do, and of no other', async () => {
    const path = join(directory, 'interrupted-log');
    const stopped = async (command: string): Promise<void> => {
      const process = fakeSurroundings({ KUBECONFIG, TERMINATION_LOG: path });
      await cli([command], process, () => {
        process.stop.abort(new Interruption('SIGTERM'));
        throw aborted;
      });
    };
    await stopped('run');
    expect(existsSync(path)).toBe(false);
    await stopped('once');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      command: 'once',
      exitCode: 143,
      code: 'Interrupted',
      message: 'ended by SIGTERM before it was done',
    });
  });

  test.each(['plan', 'status', 'check'])('of %s goes to a termination log that is named', async (command) => {
    const path = join(directory, `log-of-${command}`);
    const broken: Dispatch = () => {
      throw new TypeError('x is undefined');
    };
    expect(await cli([command, '--termination-log', path], fakeSurroundings({ KUBECONFIG }), broken)).toBe(1);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ command, exitCode: 1 });
  });

  test('does not hide a fault of ours', async () => {
    const process = fakeSurroundings({ KUBECONFIG, LOG_LEVEL: 'fatal' });
    const broken: Dispatch = () => {
      process.stop.abort(new Interruption('SIGTERM'));
      throw new TypeError('x is undefined');
    };
    expect(await cli(['plan'], process, broken)).toBe(1);
    expect(process.error.text).toContain('internal error');
  });

  test('after the work is done changes nothing', async () => {
    const process = fakeSurroundings({ KUBECONFIG });
    const seen = () => {
      process.stop.abort(new Interruption('SIGTERM'));
    };
    expect(await cli(['once'], process, done({ seen }))).toBe(0);
  });
});

test('on a terminal the log is for people, and colours are where the reader wants them', async () => {
  const terminal = { columns: 120, color: true };
  const logging: Dispatch = (invocation, context, surroundings) => {
    context.log.warn('something is odd');
    context.progress(1, 2, 'kinds read');
    return done({ decisions: [decision] })(invocation, context, surroundings);
  };
  const { streams, host, ...others } = fakeSurroundings({ KUBECONFIG });
  const onTerminal = {
    ...others,
    host: { ...host, stderrIsTerminal: true },
    streams: { ...streams, terminal, errorTerminal: terminal },
  };
  expect(await cli(['plan'], onTerminal, logging)).toBe(0);
  expect(others.error.text).toContain('something is odd');
  expect(others.error.text).not.toContain('"level"');
  expect(others.out.text).toContain('\u001b[31mconflict\u001b[39m');
  expect(others.out.text).toMatch(/\n\n1 backup: 1 conflict\n$/);
});

test('help and version are data', async () => {
  const process = fakeSurroundings();
  expect(await cli(['--version'], process, never)).toBe(0);
  expect(process.out.text).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(process.error.text).toBe('');
});
