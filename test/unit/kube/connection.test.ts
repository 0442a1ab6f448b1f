import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../../src/kube/configuration-error.ts';
import { loadConnection, type ConnectionEnvironment, type ConnectionOptions } from '../../../src/kube/connection.ts';

// A certificate that nobody holds the key of any more.
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBdDCCARugAwIBAgIUZJ/kRkjK0ZdlBHDQ2tHcmjN60JwwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMzAwODAwNTlaGA8yMTI2MTEwNjA4MDA1
OVowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABGi+
j+UxYOwT52ciIjTHCQT1Wx9d6FP8zsEJLsuMwUfabaImEyKIXGYFd8LCeObAcJQb
Ld9J+fHtXsjONyZLPH+jUzBRMB0GA1UdDgQWBBTsJsphqSDEArgB500QzUXnxH5z
lTAfBgNVHSMEGDAWgBTsJsphqSDEArgB500QzUXnxH5zlTAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0cAMEQCIG8SmAcaM7WQfNPbDGI15j7nu1sNZ+ttbN3L
Iqzex2p3AiBfw72WQ78118iMJDA82du8IXGxbxOKebnvEp+OPzDS6w==
-----END CERTIFICATE-----
`;

let directory: string;
let env: Record<string, string | undefined>;

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'nab-sync-connection-'));
  env = {};
});

afterEach(async () => {
  vi.useRealTimers();
  await rm(directory, { recursive: true, force: true });
});

function environment(): ConnectionEnvironment {
  return { env, serviceAccountDirectory: path.join(directory, 'sa'), homeDirectory: path.join(directory, 'home') };
}

async function file(name: string, text: string): Promise<string> {
  const full = path.join(directory, name);
  await mkdir(path.dirname(full), { recursive: true });
  await writeFile(full, text);
  return full;
}

interface Fields {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
}

/** A kubeconfig with the contexts `one` and `two`; JSON is YAML. */
function kubeconfig({ cluster = {}, user = {}, context = {} }: Fields = {}): string {
  return JSON.stringify({
    clusters: [
      { name: 'one', cluster: { server: 'https://one.test:6443', ...cluster } },
      { name: 'two', cluster: { server: 'https://two.test/base/' } },
    ],
    users: [
      { name: 'admin', user: { token: 'secret-1', ...user } },
      { name: 'other', user: { username: 'bob', password: 'pass' } },
    ],
    contexts: [
      { name: 'one', context: { cluster: 'one', user: 'admin', ...context } },
      { name: 'two', context: { cluster: 'two', user: 'other' } },
    ],
    'current-context': 'one',
  });
}

async function authorization(options: ConnectionOptions): Promise<string | undefined> {
  const { headers } = await loadConnection(options, environment()).credentials();
  return headers['authorization'];
}

/** The one line that loading fails with. */
function problem(options: ConnectionOptions = {}): string {
  try {
    loadConnection(options, environment());
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    expect(error.message).not.toContain('\n');
    expect(error.message).not.toContain('secret');
    return error.message.replaceAll(directory, 'DIR');
  }
  throw new Error('it did not fail');
}

describe('a kubeconfig', () => {
  test('gives the server and the token of its current context', async () => {
    const options = { kubeconfig: await file('kubeconfig', kubeconfig({ context: { namespace: 'team-a' } })) };
    expect(loadConnection(options, environment())).toMatchObject({
      server: 'https://one.test:6443',
      inCluster: false,
      namespace: 'team-a',
    });
    expect(await authorization(options)).toBe('Bearer secret-1');
  });

  test('gives those of another context when that is asked for', async () => {
    const options = { kubeconfig: await file('kubeconfig', kubeconfig()), context: 'two' };
    expect(loadConnection(options, environment()).server).toBe('https://two.test/base');
    expect(await authorization(options)).toBe(`Basic ${Buffer.from('bob:pass').toString('base64')}`);
  });

  test('is found by flag, before KUBECONFIG, before the pod, before the home directory', async () => {
    const named = (server: string): string => kubeconfig({ cluster: { server } });
    await file('home/.kube/config', named('https://home.test'));
    const server = (options: ConnectionOptions = {}): string => loadConnection(options, environment()).server;
    expect(server()).toBe('https://home.test');
    await file('sa/token', 'pod-token');
    await file('sa/ca.crt', CERTIFICATE);
    env['KUBERNETES_SERVICE_HOST'] = '10.0.0.1';
    env['KUBERNETES_SERVICE_PORT'] = '443';
    expect(server()).toBe('https://10.0.0.1:443');
    expect(server({ context: 'two' })).toBe('https://two.test/base');
    env['KUBECONFIG'] = await file('env', named('https://env.test'));
    expect(server()).toBe('https://env.test');
    expect(server({ kubeconfig: await file('flag', named('https://flag.test')) })).toBe('https://flag.test');
  });

  test('may be several files: the first to name something wins, missing ones are passed over', async () => {
    const first = await file('first', JSON.stringify({ 'current-context': 'two', clusters: [] }));
    const second = await file('second', kubeconfig());
    const third = await file('third', kubeconfig({ cluster: { server: 'https://never.test' } }));
    env['KUBECONFIG'] = [path.join(directory, 'missing'), first, second, third].join(path.delimiter);
    expect(loadConnection({}, environment()).server).toBe('https://two.test/base');
    expect(loadConnection({ context: 'one' }, environment()).server).toBe('https://one.test:6443');
  });

  test('reads a token file, relative to itself, again and without its newline', async () => {
    await file('conf/token', 'first\n');
    const options = { kubeconfig: await file('conf/kubeconfig', kubeconfig({ user: { tokenFile: 'token' } })) };
    const connection = loadConnection(options, environment());
    const before = await connection.credentials();
    expect(before.headers['authorization']).toBe('Bearer first');
    await file('conf/token', 'second\n');
    expect((await connection.reload(before)).headers['authorization']).toBe('Bearer second');
  });

  test('that was rewritten, as a new login does it, is read again', async () => {
    const options = { kubeconfig: await file('kubeconfig', kubeconfig()) };
    const connection = loadConnection(options, environment());
    const before = await connection.credentials();
    await file('kubeconfig', kubeconfig({ user: { token: 'secret-2' } }));
    expect((await connection.credentials()).headers['authorization']).toBe('Bearer secret-1');
    expect((await connection.reload(before)).headers['authorization']).toBe('Bearer secret-2');
  });

  test('that names another server now gets its new token to nobody', async () => {
    const options = { kubeconfig: await file('kubeconfig', kubeconfig()) };
    const connection = loadConnection(options, environment());
    const before = await connection.credentials();
    await file('kubeconfig', kubeconfig({ cluster: { server: 'https://evil.test' } }));
    await expect(connection.reload(before)).rejects.toThrow(ConfigurationError);
  });

  test('may have a plugin, found beside it, that is asked again after a refusal', async () => {
    const counter = path.join(directory, 'count');
    const plugin = await file(
      'bin/login',
      `#!/bin/sh
echo x >> ${counter}
token=$(wc -l < ${counter} | tr -d ' ')
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"exec-'$token'"}}'
`,
    );
    await chmod(plugin, 0o755);
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './bin/login', args: [] };
    const options = { kubeconfig: await file('kubeconfig', kubeconfig({ user: { token: undefined, exec } })) };
    const connection = loadConnection(options, environment());
    const before = await connection.credentials();
    expect(before.headers['authorization']).toBe('Bearer exec-1');
    const after = await Promise.all([connection.reload(before), connection.reload(before), connection.reload(before)]);
    expect(after.map(({ headers }) => headers['authorization'])).toEqual([
      'Bearer exec-2',
      'Bearer exec-2',
      'Bearer exec-2',
    ]);
    // Somebody whose 401 came late finds the newer credentials and starts nothing.
    expect((await connection.reload(before)).headers['authorization']).toBe('Bearer exec-2');
  });

  test('may impersonate a user, and go without one', async () => {
    const options = { kubeconfig: await file('kubeconfig', kubeconfig({ user: { as: 'system:serviceaccount:a:b' } })) };
    const { headers } = await loadConnection(options, environment()).credentials();
    expect(headers).toEqual({ authorization: 'Bearer secret-1', 'impersonate-user': 'system:serviceaccount:a:b' });
    const anonymous = { kubeconfig: await file('anonymous', kubeconfig({ context: { user: undefined } })) };
    expect(await authorization(anonymous)).toBeUndefined();
  });

  test('prefers a token to a password, and a file to what stands beside it', async () => {
    const named = async (user: object): Promise<string | undefined> =>
      authorization({ kubeconfig: await file('kubeconfig', kubeconfig({ user })) });
    expect(await named({ username: 'bob', password: 'pass' })).toBe('Bearer secret-1');
    await file('token', 'from-file');
    expect(await named({ tokenFile: 'token' })).toBe('Bearer from-file');
    expect(await named({ 'token-file': 'token', username: 'bob', password: 'pass' })).toBe('Bearer from-file');
    await file('cert.pem', CERTIFICATE);
    const user = { 'client-certificate': 'cert.pem', 'client-certificate-data': 'bm90aGluZw==' };
    const { tls } = await loadConnection(
      { kubeconfig: await file('kubeconfig', kubeconfig({ user })) },
      environment(),
    ).credentials();
    expect(String(tls.cert)).toBe(CERTIFICATE);
  });

  test('gives the CA, the name to expect and whether to verify at all', async () => {
    const ca = await file('conf/ca.crt', CERTIFICATE);
    const cluster = { 'certificate-authority': 'ca.crt', 'tls-server-name': 'kubernetes' };
    const options = { kubeconfig: await file('conf/kubeconfig', kubeconfig({ cluster })) };
    const connection = loadConnection(options, environment());
    expect(connection.caSource).toBe(ca);
    expect((await connection.credentials()).tls).toEqual({ ca: Buffer.from(CERTIFICATE), servername: 'kubernetes' });
    const data = { 'certificate-authority-data': Buffer.from(CERTIFICATE).toString('base64') };
    const inline = { kubeconfig: await file('inline', kubeconfig({ cluster: data })) };
    expect((await loadConnection(inline, environment()).credentials()).tls).toEqual({ ca: Buffer.from(CERTIFICATE) });
    const insecure = {
      kubeconfig: await file('insecure', kubeconfig({ cluster: { 'insecure-skip-tls-verify': true } })),
    };
    expect((await loadConnection(insecure, environment()).credentials()).tls).toEqual({ rejectUnauthorized: false });
  });

  test('may name a server without TLS and a proxy', async () => {
    const cluster = { server: 'http://localhost:8080', 'proxy-url': 'http://proxy.test:3128' };
    const options = { kubeconfig: await file('kubeconfig', kubeconfig({ cluster })) };
    expect(loadConnection(options, environment())).toMatchObject({ proxyUrl: 'http://proxy.test:3128' });
    expect(await authorization(options)).toBe('Bearer secret-1');
  });
});

describe('a pod', () => {
  beforeEach(async () => {
    env['KUBERNETES_SERVICE_HOST'] = 'fd00::1';
    env['KUBERNETES_SERVICE_PORT'] = '6443';
    await file('sa/token', 'first');
    await file('sa/ca.crt', CERTIFICATE);
    await file('sa/namespace', 'openshift-adp\n');
  });

  test('uses its service account, with the CA and the namespace that came with it', async () => {
    const connection = loadConnection({}, environment());
    expect(connection).toMatchObject({
      server: 'https://[fd00::1]:6443',
      inCluster: true,
      namespace: 'openshift-adp',
      caSource: path.join(directory, 'sa/ca.crt'),
    });
    const { headers, tls } = await connection.credentials();
    expect(headers).toEqual({ authorization: 'Bearer first' });
    expect(tls).toEqual({ ca: Buffer.from(CERTIFICATE) });
  });

  test('reads its token again when it was refused, and keeps the TLS material that did not change', async () => {
    const connection = loadConnection({}, environment());
    const before = await connection.credentials();
    await file('sa/token', 'second');
    const after = await connection.reload(before);
    expect(after.headers['authorization']).toBe('Bearer second');
    expect(after.tls).toBe(before.tls);
  });

  test('finds a rotated token by itself within two minutes', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'Date'] });
    const connection = loadConnection({}, environment());
    const before = await connection.credentials();
    await file('sa/token', 'second');
    expect(await connection.credentials()).toBe(before);
    vi.advanceTimersByTime(120_000);
    expect((await connection.credentials()).headers['authorization']).toBe('Bearer second');
  });

  test('knows credentials that were read again and are the same for the same: if they are refused, it reads', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'Date'] });
    const connection = loadConnection({}, environment());
    const before = await connection.credentials();
    vi.advanceTimersByTime(120_000);
    expect(await connection.credentials()).toBe(before);
    await file('sa/token', 'second');
    expect((await connection.reload(before)).headers['authorization']).toBe('Bearer second');
  });

  test('that lost its token file says so when the old token is refused', async () => {
    const connection = loadConnection({}, environment());
    const before = await connection.credentials();
    await rm(path.join(directory, 'sa/token'));
    vi.useFakeTimers({ toFake: ['performance', 'Date'] });
    vi.advanceTimersByTime(120_000);
    expect(await connection.credentials()).toBe(before);
    await expect(connection.reload(before)).rejects.toThrow('cannot read token file');
  });

  test('without a readable CA is told which file to look at', async () => {
    await rm(path.join(directory, 'sa/ca.crt'));
    expect(problem()).toBe(
      'cannot read CA file DIR/sa/ca.crt of the service account of this pod: no such file; put it there or correct the path',
    );
  });
});

describe('what is wrong is said in one line', () => {
  test('when there is nothing at all', () => {
    expect(problem()).toBe(
      'no API server to talk to: not in a cluster, KUBECONFIG is not set and there is no DIR/home/.kube/config; give --kubeconfig',
    );
  });

  test('when the file is missing, a directory, or all of several are missing', async () => {
    expect(problem({ kubeconfig: path.join(directory, 'x') })).toBe(
      'cannot read kubeconfig DIR/x: no such file; give another with --kubeconfig or KUBECONFIG',
    );
    expect(problem({ kubeconfig: directory })).toContain('it is a directory');
    await mkdir(path.join(directory, 'home'));
    const two = [path.join(directory, 'x'), path.join(directory, 'y')].join(path.delimiter);
    expect(problem({ kubeconfig: two })).toBe(
      'cannot read kubeconfig DIR/x:DIR/y: no such file; give one with --kubeconfig or KUBECONFIG',
    );
  });

  test('when it is not YAML, without quoting what may be a secret', async () => {
    const broken = await file('broken', 'users:\n- name: x\n  user: {token: "secret\n');
    expect(problem({ kubeconfig: broken })).toMatch(/^kubeconfig DIR\/broken is not YAML \(line \d+\); correct it/);
  });

  test.each([
    ['empty', ''],
    ['a scalar', 'hello'],
    ['a list', '- a'],
  ])('when it is %s', async (_name, text) => {
    expect(problem({ kubeconfig: await file('odd', text) })).toContain('kubeconfig DIR/odd holds no kubeconfig');
  });

  test('when the context is unknown, naming those that there are', async () => {
    expect(problem({ kubeconfig: await file('k', kubeconfig()), context: 'three' })).toBe(
      'context "three" is not in kubeconfig DIR/k; choose another with --context (it has: one, two)',
    );
  });

  test('when no context is current', async () => {
    expect(problem({ kubeconfig: await file('k', '{"contexts": [{"name": "a", "context": {}}]}') })).toBe(
      'kubeconfig DIR/k has no current context; choose one with --context (it has: a)',
    );
    expect(problem({ kubeconfig: await file('k', '{}') })).toContain('(it has: none)');
  });

  test('when the context points to nothing', async () => {
    expect(problem({ kubeconfig: await file('k', kubeconfig({ context: { cluster: 'x' } })) })).toBe(
      'cluster "x" of context "one" is not in kubeconfig DIR/k; add it or choose another with --context',
    );
    expect(problem({ kubeconfig: await file('k', kubeconfig({ context: { cluster: undefined } })) })).toContain(
      'context "one" in kubeconfig DIR/k names no cluster',
    );
    expect(problem({ kubeconfig: await file('k', kubeconfig({ context: { user: 'x' } })) })).toContain(
      'user "x" of context',
    );
  });

  test.each([
    ['no server', undefined],
    ['one that is no URL', 'https://'],
    ['one of another kind', 'ftp://x'],
    ['a bare name', 'one.test:6443'],
  ])('when the cluster has %s', async (_name, server) => {
    expect(problem({ kubeconfig: await file('k', kubeconfig({ cluster: { server } })) })).toBe(
      'kubeconfig DIR/k gives no server URL for its cluster; set clusters[].cluster.server in it',
    );
  });

  test('when a file that it names is missing, or is not what it should be', async () => {
    const inCluster = (cluster: object): Promise<string> => file('k', kubeconfig({ cluster }));
    expect(problem({ kubeconfig: await inCluster({ 'certificate-authority': '/nowhere/ca.crt' }) })).toBe(
      'cannot read CA file /nowhere/ca.crt of kubeconfig DIR/k: no such file; put it there or correct the path',
    );
    await file('not-a-ca', 'hello');
    expect(problem({ kubeconfig: await inCluster({ 'certificate-authority': 'not-a-ca' }) })).toBe(
      'CA file DIR/not-a-ca of kubeconfig DIR/k is not usable PEM; replace it',
    );
    expect(problem({ kubeconfig: await inCluster({ 'certificate-authority-data': 'aGVsbG8=' }) })).toBe(
      'certificate-authority-data of kubeconfig DIR/k is not usable PEM; replace it',
    );
    const ofUser = (user: object): Promise<string> => file('k', kubeconfig({ user }));
    expect(problem({ kubeconfig: await ofUser({ 'client-certificate': 'c.pem' }) })).toContain(
      'cannot read client certificate file DIR/c.pem',
    );
    expect(problem({ kubeconfig: await ofUser({ 'client-key': 'k.pem' }) })).toContain(
      'cannot read client key file DIR/k.pem',
    );
    expect(problem({ kubeconfig: await ofUser({ tokenFile: 'nowhere' }) })).toContain(
      'cannot read token file DIR/nowhere',
    );
  });

  test('when it wants what we cannot do', async () => {
    expect(problem({ kubeconfig: await file('k', kubeconfig({ user: { 'as-groups': ['x'] } })) })).toContain(
      'uses as-groups',
    );
    expect(problem({ kubeconfig: await file('k', kubeconfig({ cluster: { 'proxy-url': 'socks5://x' } })) })).toContain(
      'names a proxy that is not http or https',
    );
  });
});
