import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { runNabSync, type NabSyncExit } from '../../support/nab-sync.ts';
import { kubeconfig } from './support/kubeconfigs.ts';
import { mainJob } from './support/main-job.ts';

const job = await mainJob();
const { oadpNamespace } = job;

/** A server that is no API server: a proxy's sign-in page, say. */
const website = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Please sign in</html>');
});
let websiteAddress: string;
let server: string;
let ca: string;

beforeAll(async () => {
  website.listen(0, '127.0.0.1');
  await once(website, 'listening');
  websiteAddress = `http://127.0.0.1:${(website.address() as AddressInfo).port}`;
  const admin = z.object({
    clusters: z.tuple([
      z.object({ cluster: z.object({ server: z.string(), 'certificate-authority-data': z.string() }) }),
    ]),
  });
  const { cluster } = admin.parse(parse(await readFile(job.adminKubeconfig, 'utf8'))).clusters[0];
  server = cluster.server;
  ca = cluster['certificate-authority-data'];
});

afterAll(() => {
  website.closeAllConnections();
  website.close();
});

/** That the command failed with one line for people, in which all of these occur, and with nothing else. */
function saysInOneLine({ exitCode, stdout, stderr }: NabSyncExit, code: number, ...parts: readonly string[]): void {
  expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: '' });
  expect(stderr).toMatch(/^nab-sync: [^\n]+\n$/);
  expect(stderr).not.toMatch(/ at \S+ \(|\bError:|not-a-token/);
  for (const part of parts) expect(stderr).toContain(part);
}

describe('a command line that makes no sense', () => {
  // What each flag takes is tested in process; these are the ways in which a command line as a whole can be wrong.
  it.each([
    [['plan', '--concurency', '4'], 'unknown option', '--concurrency'],
    [['plam'], 'unknown command', 'plam'],
    [['explain'], 'missing required argument', 'backup'],
    [['once', '--sync-period', '-5m'], '--sync-period', '"-5m"'],
    [['plan', '-n', 'Not_A_Namespace'], '--namespace', '"Not_A_Namespace"'],
    [['run', '--metrics-address', 'nowhere'], '--metrics-address', 'nowhere'],
  ])('%j', async (args, ...parts) => {
    saysInOneLine(await job.command(args), 2, ...parts);
  });

  it('is told of a variable by its name, and to the termination log', async () => {
    const path = await job.file('last-words', '');
    saysInOneLine(
      await job.command(['plan'], { CONCURRENCY: 'many', TERMINATION_LOG: path }),
      2,
      'CONCURRENCY',
      'many',
    );
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({ code: 'Configuration', exitCode: 2 });
  });

  it('is told in as many lines as there are mistakes', async () => {
    const { exitCode, stderr } = await job.command(['plan', '--concurrency', '0', '--sync-period', 'often']);
    expect(exitCode).toBe(2);
    expect(stderr.trimEnd().split('\n')).toHaveLength(2);
  });
});

describe('a kubeconfig that cannot be used', () => {
  it.each([
    ['is not there', undefined, 'no such file'],
    ['is not YAML', 'clusters: [', 'not YAML'],
    ['holds something else', '- a list', 'holds no kubeconfig'],
  ])('one that %s', async (_, text, problem) => {
    const path = text === undefined ? '/nonexistent/kubeconfig' : await job.file('kubeconfig', text);
    saysInOneLine(await job.command(['plan', '--kubeconfig', path]), 2, problem, path, '--kubeconfig');
  });

  it('one that lacks the context', async () => {
    const path = await job.file('kubeconfig', kubeconfig({ server: 'https://127.0.0.1:1' }));
    const exit = await job.command(['once', '--kubeconfig', path, '--context', 'elsewhere']);
    saysInOneLine(exit, 2, '"elsewhere"', path, '--context', 'here');
  });

  it('ends run at once, too: it would never get better', async () => {
    const exit = await job.command(['run', '--kubeconfig', '/nonexistent/kubeconfig']);
    saysInOneLine(exit, 2, 'no such file', '/nonexistent/kubeconfig');
  });
});

describe('a server that cannot be used', () => {
  const to = async (text: string, command: readonly string[], env: Record<string, string> = {}): Promise<NabSyncExit> =>
    await runNabSync(command, { kubeconfig: await job.file('elsewhere', text), oadpNamespace, env });

  it.each([['plan'], ['once', '--no-leader-elect'], ['explain', 'team/daily']])(
    'one where nobody listens: %s',
    async (...command) => {
      const path = await job.file('last-words', '');
      const text = kubeconfig({ server: 'https://127.0.0.1:1' });
      const exit = await to(text, command, { TERMINATION_LOG: path });
      saysInOneLine(exit, 1, 'https://127.0.0.1:1', '--kubeconfig');
      expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({
        code: 'Unreachable',
        exitCode: 1,
        command: command[0],
      });
    },
  );

  it('one whose name nobody knows', async () => {
    saysInOneLine(
      await to(kubeconfig({ server: 'https://api.cluster.invalid:6443' }), ['plan']),
      1,
      'api.cluster.invalid',
    );
  });

  it('one whose certificate is not trusted', async () => {
    saysInOneLine(await to(kubeconfig({ server }), ['plan']), 1, 'CERT', 'checked against the system CAs');
  });

  it('one that does not take the token', async () => {
    saysInOneLine(await to(kubeconfig({ server, ca }), ['plan']), 1, 'credentials');
  });

  it('one that is no API server', async () => {
    saysInOneLine(
      await to(kubeconfig({ server: websiteAddress }), ['plan']),
      1,
      websiteAddress,
      'Kubernetes API server',
    );
  });
});

describe('an OADP namespace that is another one', () => {
  it('is refused where our rights end, by name', async () => {
    const exit = await job.command(['plan', '--oadp-namespace', 'openshift-adp']);
    saysInOneLine(exit, 1, 'openshift-adp', 'manifests/base');
  });

  it('is empty for whoever may look', async () => {
    const exit = await runNabSync(['plan'], { kubeconfig: job.adminKubeconfig, oadpNamespace: 'no-such-namespace' });
    expect(exit).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: 'No labelled Velero Backups found in namespace no-such-namespace.\n',
    });
  });
});
