import { readFileSync } from 'node:fs';
import type { Credentials, TlsMaterial } from './credentials.ts';
import { isJsonObject, stringAt } from './json.ts';
import type { JsonObject } from './resource.ts';

/** Whether a user's proof is made by a program or an identity provider; client-node knows how to ask those. */
export function needsPlugin(user: JsonObject): boolean {
  return isJsonObject(user['exec']) || isJsonObject(user['auth-provider']);
}

/**
 * The credentials of a user who has them in the kubeconfig or in files that it names; files are read each time. Throws what
 * reading a file throws. Precedence as in kubectl: a file over what stands beside it, a token over a password.
 */
export function readStaticCredentials(cluster: JsonObject, user: JsonObject): Credentials {
  const ca = pem(cluster, 'certificate-authority');
  const cert = pem(user, 'client-certificate');
  const key = pem(user, 'client-key');
  const servername = stringAt(cluster, 'tls-server-name');
  const tls: TlsMaterial = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(servername === undefined ? {} : { servername }),
    ...(cluster['insecure-skip-tls-verify'] === true ? { rejectUnauthorized: false } : {}),
  };
  const authorization = authorizationOf(user);
  const impersonated = stringAt(user, 'as');
  return {
    headers: {
      ...(authorization === undefined ? {} : { authorization }),
      ...(impersonated === undefined ? {} : { 'impersonate-user': impersonated }),
    },
    tls,
  };
}

/** The file of a user's token, under either of the names in use. */
export function tokenFileOf(user: JsonObject): string | undefined {
  return stringAt(user, 'tokenFile') ?? stringAt(user, 'token-file');
}

/** `field` names a file, `field`-data holds the same in base64. */
function pem(entry: JsonObject, field: string): Buffer | undefined {
  const file = stringAt(entry, field);
  if (file !== undefined) return readFileSync(file);
  const data = stringAt(entry, `${field}-data`);
  return data === undefined ? undefined : Buffer.from(data, 'base64');
}

function authorizationOf(user: JsonObject): string | undefined {
  const tokenFile = tokenFileOf(user);
  const token = tokenFile === undefined ? stringAt(user, 'token') : readFileSync(tokenFile, 'utf8');
  // Token files made by hand end in a newline, which no header may hold.
  if (token !== undefined && token.trim() !== '') return `Bearer ${token.trim()}`;
  const username = stringAt(user, 'username');
  if (username === undefined) return undefined;
  return `Basic ${Buffer.from(`${username}:${stringAt(user, 'password') ?? ''}`).toString('base64')}`;
}
