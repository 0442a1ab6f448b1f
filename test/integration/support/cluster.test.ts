import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { qualifiedName } from '../../../src/kube/resource.ts';
import { objectAt } from '../../../src/kube/json.ts';
import * as kinds from '../../../src/oadp/kinds.ts';
import { isolated } from '../../support/isolated.ts';
import { getTable } from '../../support/table.ts';

const here = await isolated();

describe('the shared API server', () => {
  it.each(Object.values(kinds).map((kind) => [qualifiedName(kind), kind] as const))('serves %s', async (_, kind) => {
    const { status } = await here.api.request(
      'GET',
      kind.group === '' ? '/api/v1' : `/apis/${kind.group}/${kind.version}`,
    );
    expect(status).toBe(200);
    await expect(here.objects.list(kind, { labelSelector: 'nobody=has-it' })).resolves.toEqual([]);
  });

  it('enforces RBAC: the admin may do everything, somebody without a token nothing', async () => {
    const anonymous = await here.api.withToken('not-a-token');
    try {
      expect((await here.api.request('GET', '/api/v1/namespaces')).status).toBe(200);
      expect((await anonymous.request('GET', '/api/v1/namespaces')).status).toBe(401);
    } finally {
      await anonymous.close();
    }
  });
});

describe('objects made for tests', () => {
  it('a Backup keeps its status, which Velero writes together with the rest', async () => {
    const made = await here.objects.create(here.gen.backup({ namespace: here.tenant('a') }));
    expect(made).toMatchObject({
      metadata: { namespace: here.oadpNamespace },
      spec: { includedNamespaces: [here.tenant('a')] },
      status: { phase: 'Completed' },
    });
  });

  it('a location, a NABSL, its location and a NAB are taken by the server with their status', async () => {
    const namespace = await here.createTenant('kinds');
    const { objects, gen } = here;
    expect(await objects.create(gen.storageLocation())).toMatchObject({ status: { phase: 'Available' } });
    expect(await objects.create(gen.ownedStorageLocation({ namespace }))).toMatchObject({ spec: { default: false } });
    expect(await objects.create(gen.nonAdminStorageLocation({ namespace }))).toMatchObject({
      status: { veleroBackupStorageLocation: { namespace: here.oadpNamespace } },
    });
    expect(await objects.create(gen.nonAdminBackup({ namespace }))).toMatchObject({ status: { phase: 'Created' } });
    expect(await objects.create(gen.deleteRequest({}))).toMatchObject({ kind: 'DeleteBackupRequest' });
    expect(await objects.create(gen.dataProtectionApplication({ backupSyncPeriod: '5m' }))).toMatchObject({
      spec: { nonAdmin: { enable: true, backupSyncPeriod: '5m' } },
    });
  });

  it('a status can be laid over the one that is there, whichever way the kind takes it', async () => {
    const namespace = await here.createTenant('status');
    const { objects, gen } = here;
    await objects.create(gen.backup({ namespace, nacuuid: 'b1' }));
    await objects.setStatus(kinds.backups, { namespace: here.oadpNamespace, name: 'b1' }, { phase: 'Deleting' });
    await objects.create(gen.nonAdminBackup({ namespace }));
    await objects.setStatus(kinds.nonAdminBackups, { namespace, name: 'daily' }, { phase: 'BackingOff' });
    const backup = await objects.get(kinds.backups, { namespace: here.oadpNamespace, name: 'b1' });
    const nab = await objects.get(kinds.nonAdminBackups, { namespace, name: 'daily' });
    expect(objectAt(backup ?? {}, 'status')['phase']).toBe('Deleting');
    expect(objectAt(nab ?? {}, 'status')['phase']).toBe('BackingOff');
  });
});

describe('a table', () => {
  it.each([
    ['in one namespace', true],
    ['everywhere', false],
  ])('%s is what kubectl prints', async (_, oneNamespace) => {
    const namespace = await here.createTenant(oneNamespace ? 'table' : 'tables');
    await here.objects.create(here.gen.nonAdminBackup({ namespace, name: 'weekly-of-a-long-name' }));
    await here.objects.create(here.gen.nonAdminBackup({ namespace, status: { phase: 'New' } }));
    const { stdout } = await promisify(execFile)(here.kubectl, [
      `--kubeconfig=${here.adminKubeconfig}`,
      'get',
      'nab',
      ...(oneNamespace ? ['-n', namespace] : ['-A']),
    ]);
    const table = await getTable(here.api, kinds.nonAdminBackups, oneNamespace ? namespace : undefined);
    // Other test files come and go, and ages grow: what is compared are this file's lines without their last column.
    const comparable = (text: string): string[] =>
      text
        .split('\n')
        .filter((line) => line.startsWith('NAME') || oneNamespace || line.startsWith(namespace))
        .map((line) => line.trimEnd().replace(/\S+$/, ''));
    const ours = comparable(table).map((line) => (oneNamespace ? line : line.replace(/ +/g, ' ')));
    const kubectls = comparable(stdout.trimEnd()).map((line) => (oneNamespace ? line : line.replace(/ +/g, ' ')));
    expect(ours).toEqual(kubectls);
    expect(ours).toHaveLength(3);
  });
});
