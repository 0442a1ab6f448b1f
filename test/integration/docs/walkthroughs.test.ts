import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as kinds from '../../../src/oadp/kinds.ts';
import { ControlPlane } from '../../support/control-plane/control-plane.ts';
import { eventually } from '../../support/eventually.ts';
import { day, hour } from '../../support/gen/api-objects.ts';
import { fromNow, liveObjects } from '../../support/gen/live-objects.ts';
import { codeBlocks, root, text } from '../../support/markdown.ts';
import { createNamespace } from '../../support/namespaces.ts';
import { Objects } from '../../support/objects.ts';
import { serviceAccountToken } from '../../support/service-account.ts';
import { StandIns } from './support/stand-ins.ts';

/**
 * Every block of commands of these pages, run in their order as a reader would, each page on a cluster of its own. Behind `sh`
 * or `console` stands `test`, with `as=tenant` for a tenant's rights, or `untested="why"`. A `console` block has to print what
 * it shows.
 */
const pages = [
  { page: 'README.md', installed: false },
  { page: 'docs/install.md', installed: false },
  { page: 'docs/configure.md', installed: true },
  { page: 'docs/operate.md', installed: true },
  { page: 'docs/disaster-recovery.md', installed: true },
  { page: 'docs/another-cluster.md', installed: true },
  { page: 'docs/sync-requests.md', installed: true },
] as const;

const gen = liveObjects('openshift-adp');
const buckets = {
  backups: [
    gen.backup({ namespace: 'my-team' }),
    gen.backup({ namespace: 'shop', name: 'nightly' }),
    gen.backup({
      namespace: 'shop',
      name: 'monthly',
      status: { completionTimestamp: fromNow(-31 * day), expiration: fromNow(-hour) },
    }),
  ],
  'backups-of-the-old-cluster': [gen.backup({ namespace: 'old-team' })],
};

interface Command {
  readonly as: 'admin' | 'tenant';
  readonly script: string;
  /** What it prints, where the page says so. */
  readonly prints: string | undefined;
  readonly title: string;
}

/** The blocks of a page that are commands for a shell. Throws for one that does not say whether it is tested. */
function commandsOf(page: string): Command[] {
  return codeBlocks(text(page)).flatMap(({ info, body, line }): Command[] => {
    const [language, ...words] = info.split(' ');
    if (language !== 'sh' && language !== 'console') return [];
    if (info.includes(' untested="')) return [];
    if (!words.includes('test'))
      throw new Error(`${page}:${line}: say \`test\` or \`untested="why"\` behind ${language}`);
    const as = words.includes('as=tenant') ? 'tenant' : 'admin';
    const title = `line ${line}, as ${as}`;
    if (language === 'sh') return [{ as, script: body, prints: undefined, title }];
    const lines = body.split('\n');
    const script = lines
      .filter((each) => each.startsWith('$ '))
      .map((each) => each.slice(2))
      .join('\n');
    return [{ as, script, prints: lines.filter((each) => !each.startsWith('$ ')).join('\n'), title }];
  });
}

/** Columns by single spaces, and every age alike: neither is the same twice. */
function normal(output: string): string {
  return output
    .trim()
    .replaceAll(/ +/g, ' ')
    .replaceAll(/\b\d+[smhd]\b/g, 'AGE')
    .replaceAll(/ +$/gm, '');
}

class Reader {
  readonly #directory: string;
  readonly #kubeconfigs: Readonly<Record<Command['as'], string>>;

  constructor(directory: string, kubeconfigs: Readonly<Record<Command['as'], string>>) {
    this.#directory = directory;
    this.#kubeconfigs = kubeconfigs;
  }

  /** Runs a script in the checkout with kubectl and nab-sync on the path; throws, with all output, when a command fails. */
  async run({ script, as }: Pick<Command, 'script' | 'as'>): Promise<string> {
    const env = {
      PATH: `${join(this.#directory, 'bin')}:${process.env['PATH'] ?? ''}`,
      HOME: this.#directory,
      KUBECONFIG: this.#kubeconfigs[as],
    };
    return await new Promise((resolve, reject) => {
      execFile(
        'bash',
        ['--norc', '-euo', 'pipefail', '-c', script],
        { cwd: join(this.#directory, 'checkout'), env, timeout: 150_000 },
        (error, stdout, stderr) => {
          if (error === null) resolve(stdout);
          else reject(new Error(`${error.message}\nstdout: ${stdout}\nstderr: ${stderr}`));
        },
      );
    });
  }
}

/** A cluster with OADP in it, Velero's part played, and a tenant; and a reader's machine with a checkout. */
async function stage(installed: boolean) {
  const directory = await mkdtemp(join(tmpdir(), 'nab-sync-docs-'));
  const controlPlane = await ControlPlane.start();
  const objects = await Objects.on(controlPlane.admin);
  const file = async (name: string, content: string): Promise<string> => {
    await writeFile(join(directory, name), content, { mode: 0o600 });
    return join(directory, name);
  };
  for (const namespace of ['openshift-adp', 'other-adp', 'my-team']) await createNamespace(objects, namespace);
  // Velero has not looked at it yet.
  await objects.create(gen.storageLocation({ status: { phase: undefined, lastSyncedTime: undefined } }));
  await objects.create(gen.dataProtectionApplication());
  const reader = new Reader(directory, {
    admin: await file('admin.kubeconfig', controlPlane.kubeconfig),
    tenant: await file('tenant.kubeconfig', await tenantKubeconfig(objects)),
  });
  await mkdir(join(directory, 'checkout'));
  await cp(join(root, 'manifests'), join(directory, 'checkout/manifests'), { recursive: true });
  await mkdir(join(directory, 'bin'));
  await symlink(controlPlane.binaries.kubectl, join(directory, 'bin/kubectl'));
  const program = `#!/bin/sh\nexec '${process.execPath}' '${join(root, 'dist/nab-sync.mjs')}' "$@"\n`;
  await writeFile(join(directory, 'bin/nab-sync'), program, { mode: 0o755 });
  const standIns = await StandIns.start({ controlPlane, buckets, file });
  const asAdmin = (script: string): Promise<string> => reader.run({ as: 'admin', script });
  await asAdmin(
    "kubectl wait backupstoragelocation/default -n openshift-adp --for=jsonpath='{.status.lastSyncedTime}' --timeout=2m",
  );
  if (installed) {
    await asAdmin('kubectl apply -k manifests/overlays/openshift-adp');
    await asAdmin('kubectl wait nonadminbackup/daily -n my-team --for=create --timeout=2m');
  }
  const close = async (): Promise<void> => {
    try {
      await standIns.stop();
    } finally {
      await controlPlane.stop();
      await rm(directory, { recursive: true, force: true });
    }
  };
  return { reader, objects, close };
}

/** What OADP gives a namespace's owner, bound directly: without a controller manager, aggregated roles stay empty. */
async function tenantKubeconfig(objects: Objects): Promise<string> {
  const rbac = 'rbac.authorization.k8s.io';
  const tenant = { name: 'tenant', namespace: 'my-team' };
  await objects.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: tenant });
  await objects.create({
    apiVersion: `${rbac}/v1`,
    kind: 'Role',
    metadata: tenant,
    rules: [
      { apiGroups: ['oadp.openshift.io', 'sync.oadp.openshift.io'], resources: ['*'], verbs: ['*'] },
      { apiGroups: [''], resources: ['events'], verbs: ['get', 'list', 'watch'] },
    ],
  });
  await objects.create({
    apiVersion: `${rbac}/v1`,
    kind: 'RoleBinding',
    metadata: tenant,
    roleRef: { apiGroup: rbac, kind: 'Role', name: 'tenant' },
    subjects: [{ kind: 'ServiceAccount', ...tenant }],
  });
  return objects.api.kubeconfigFor({ token: await serviceAccountToken(objects.api, tenant), namespace: 'my-team' });
}

describe.each(pages)('$page', ({ page, installed }) => {
  const commands = commandsOf(page);
  let at: Awaited<ReturnType<typeof stage>>;

  beforeAll(async () => {
    at = await stage(installed);
  }, 180_000);
  afterAll(async () => {
    await at.close();
  });

  it.each(commands)('$title', { timeout: 180_000 }, async (command) => {
    const { prints } = command;
    if (prints === undefined) {
      await at.reader.run(command);
      return;
    }
    // A reader who is quicker than the cluster looks again.
    await eventually(async () => {
      expect(normal(await at.reader.run(command))).toBe(normal(prints));
    }, 60_000);
  });

  if (page !== 'docs/install.md') return;

  it('uninstalled, nab-sync leaves every NAB as it is, and nothing of its own', async () => {
    const nabs = await at.objects.list(kinds.nonAdminBackups);
    expect(nabs.map((nab) => nab['metadata'])).toMatchObject([{ namespace: 'my-team', name: 'daily' }]);
    expect(nabs[0]?.['metadata']).not.toHaveProperty('deletionTimestamp');
    const left = await at.reader.run({
      as: 'admin',
      script: `kubectl get all,cm,lease,sa,role,rolebinding,netpol -n openshift-adp -o name | grep nab-sync || true
               kubectl get clusterrole,clusterrolebinding -o name | grep nab-sync.openshift-adp || true`,
    });
    expect(left).toBe('');
  });
});

it('each page has blocks that are run', () => {
  expect(pages.filter(({ page }) => commandsOf(page).length === 0)).toEqual([]);
});
