import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { isolated } from '../../support/isolated.ts';
import { runNabSync } from '../../support/nab-sync.ts';

const { adminKubeconfig, file, oadpNamespace } = await isolated();

const kubeconfigShape = z.looseObject({
  clusters: z.array(z.looseObject({ cluster: z.looseObject({ server: z.string() }) })),
});

/** The admin's kubeconfig with what it says of the server's certificate left out. */
async function withoutCa(): Promise<string> {
  const kubeconfig = kubeconfigShape.parse(parse(await readFile(adminKubeconfig, 'utf8')));
  const clusters = kubeconfig.clusters.map((entry) => ({ ...entry, cluster: { server: entry.cluster.server } }));
  return await file('without-ca.kubeconfig', stringify({ ...kubeconfig, clusters }));
}

it('a certificate of an unknown CA is refused, whatever the environment says (case C23)', async () => {
  const { exitCode, stdout, stderr } = await runNabSync(['plan'], {
    kubeconfig: await withoutCa(),
    oadpNamespace,
    env: { NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_NO_WARNINGS: '1' },
  });
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toMatch(/^nab-sync: .* SELF_SIGNED_CERT_IN_CHAIN .*$/m);
});
