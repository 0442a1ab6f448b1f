import { describe, expect, it } from 'vitest';
import * as kinds from '../../../src/oadp/kinds.ts';
import { isolated } from '../../support/isolated.ts';
import { startNamespaceDeletion } from '../../support/namespaces.ts';

const { objects, gen, tenant, createTenant, deleteTenant } = await isolated();

describe('deleting a namespace without a controller manager', () => {
  it('leaves no NAB, not even one that a finalizer holds, and the name is free again', async () => {
    const namespace = await createTenant('busy');
    for (let index = 0; index < 20; index += 1) {
      await objects.create(
        gen.nonAdminBackup({
          namespace,
          name: `nab-${index}`,
          metadata: { finalizers: index % 2 === 0 ? ['nonadminbackup.oadp.openshift.io/finalizer'] : [] },
        }),
      );
    }
    await objects.create(gen.nonAdminStorageLocation({ namespace }));
    await objects.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace } });

    await deleteTenant('busy');

    expect(await objects.get(kinds.namespaces, { name: namespace })).toBeUndefined();
    expect(await objects.list(kinds.nonAdminBackups, { namespace })).toEqual([]);
    await createTenant('busy');
    expect(await objects.list(kinds.nonAdminBackups, { namespace })).toEqual([]);
    expect(await objects.list(kinds.nonAdminBackupStorageLocations, { namespace })).toEqual([]);
  });

  it('can stop halfway: the namespace stays Terminating, keeps its content and takes nothing new', async () => {
    const namespace = await createTenant('halfway');
    await objects.create(gen.nonAdminBackup({ namespace }));
    await startNamespaceDeletion(objects, namespace);
    expect(await objects.get(kinds.namespaces, { name: namespace })).toMatchObject({
      status: { phase: 'Terminating' },
    });
    expect(await objects.list(kinds.nonAdminBackups, { namespace })).toHaveLength(1);
    await expect(objects.create(gen.nonAdminBackup({ namespace, name: 'late' }))).rejects.toMatchObject({
      status: 403,
      reason: 'Forbidden',
    });
    await deleteTenant('halfway');
    expect(await objects.get(kinds.namespaces, { name: namespace })).toBeUndefined();
  });

  it('is no error for one that is not there', async () => {
    await expect(deleteTenant('nobody')).resolves.toBeUndefined();
    expect(tenant('nobody')).toMatch(/^t[0-9a-f]{8}-nobody$/);
  });
});
