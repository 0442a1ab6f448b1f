import { chmod, readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { mainJob } from './support/main-job.ts';

const job = await mainJob();

const user = z.looseObject({ token: z.string() });
const kubeconfigShape = z.looseObject({ users: z.array(z.looseObject({ user })) });

/** What users of a kubeconfig have in place of their token. */
const logins: Record<string, (token: string) => object | Promise<object>> = {
  'a plugin': async (token) => {
    const credential = { kind: 'ExecCredential', apiVersion: 'client.authentication.k8s.io/v1', status: { token } };
    const command = await job.file('login', `#!/bin/sh\necho '${JSON.stringify(credential)}'\n`);
    await chmod(command, 0o700);
    return { exec: { apiVersion: credential.apiVersion, command, interactiveMode: 'Never' } };
  },
  'an OpenID Connect provider': (token) => {
    // A token that is still good, so that nobody is asked for another.
    const config = { 'idp-issuer-url': 'https://idp.invalid', 'client-id': 'nab-sync', 'id-token': token };
    return { 'auth-provider': { name: 'oidc', config: { ...config, 'refresh-token': 'none' } } };
  },
};

it.each(Object.entries(logins))('%s logs in, in the bundle as it is shipped', async (name, loginOf) => {
  const config = kubeconfigShape.parse(parse(await readFile(job.kubeconfig, 'utf8')));
  const users = await Promise.all(
    config.users.map(async (each) => ({ ...each, user: await loginOf(each.user.token) })),
  );
  const path = await job.file(`${name}.kubeconfig`, stringify({ ...config, users }));
  const { exitCode, stderr } = await job.command(['plan'], { KUBECONFIG: path });
  expect(exitCode, stderr).toBe(0);
});
