import { describe, expect, test } from 'vitest';
import { describeFailure } from '../../../src/commands/fail.ts';
import { ConfigurationError } from '../../../src/kube/configuration-error.ts';
import { KubeError, type KubeErrorCode } from '../../../src/kube/errors.ts';
import { SettingsError } from '../../../src/settings/settings-error.ts';

const scene = { server: 'https://10.0.0.1:6443', oadpNamespace: 'openshift-adp' };

function kubeError(
  code: KubeErrorCode,
  part: { namespace?: string; verb?: string; resource?: string } = {},
): KubeError {
  const { verb = 'list', resource = 'backups.velero.io', namespace } = part;
  const place = namespace === undefined ? '' : ` in namespace ${namespace}`;
  return new KubeError({ code, verb, resource, namespace, message: `${verb} ${resource}${place}: it failed` });
}

describe('an error of the cluster is one line that says what, where and what to do, with exit code 1', () => {
  test.each<[KubeError, string]>([
    [
      kubeError('Forbidden', { namespace: 'openshift-adp' }),
      'list backups.velero.io in namespace openshift-adp: it failed (https://10.0.0.1:6443); grant list on backups.velero.io as the Role nab-sync of that namespace in manifests/base does',
    ],
    [
      kubeError('Forbidden', { verb: 'watch', resource: 'namespaces' }),
      'watch namespaces: it failed (https://10.0.0.1:6443); grant watch on namespaces as the ClusterRole nab-sync in manifests/base does',
    ],
    [
      kubeError('Forbidden', { verb: 'create', resource: 'nonadminbackups.oadp.openshift.io', namespace: 'team-a' }),
      'create nonadminbackups.oadp.openshift.io in namespace team-a: it failed (https://10.0.0.1:6443); grant create on nonadminbackups.oadp.openshift.io as the ClusterRole nab-sync in manifests/base does',
    ],
    [
      kubeError('KindNotInstalled', { resource: 'nonadminbackups.oadp.openshift.io' }),
      'list nonadminbackups.oadp.openshift.io: it failed (https://10.0.0.1:6443); the CustomResourceDefinition nonadminbackups.oadp.openshift.io is missing: install OADP with non-admin backups enabled',
    ],
    [
      kubeError('KindNotInstalled'),
      'list backups.velero.io: it failed (https://10.0.0.1:6443); the CustomResourceDefinition backups.velero.io is missing: install OADP, or Velero',
    ],
    [
      kubeError('Unreachable'),
      'list backups.velero.io: it failed; check that the server runs and that --kubeconfig and --context name the right one',
    ],
    [
      kubeError('Timeout'),
      'list backups.velero.io: it failed (https://10.0.0.1:6443); check the network and the load of the API server',
    ],
    [
      kubeError('Unauthorized'),
      "list backups.velero.io: it failed (https://10.0.0.1:6443); renew the credentials of the kubeconfig's user, or the pod's service account token",
    ],
  ])('%#', (error, line) => {
    expect(describeFailure(error, scene)).toEqual({ lines: [line], exitCode: 1, code: error.code });
  });

  test.each<KubeErrorCode>([
    'Throttled',
    'ServerError',
    'Malformed',
    'NamespaceNotFound',
    'Conflict',
    'Gone',
    'Invalid',
  ])('%s, too', (code) => {
    const { lines, exitCode } = describeFailure(kubeError(code), scene);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/; .+$/);
    expect(exitCode).toBe(1);
  });
});

test('settings that cannot be used are one line each, with exit code 2', () => {
  expect(describeFailure(new SettingsError(['--a: no', '--b: no']), scene)).toEqual({
    lines: ['--a: no', '--b: no'],
    exitCode: 2,
    code: 'Configuration',
  });
  expect(describeFailure(new ConfigurationError('cannot read kubeconfig'))).toEqual({
    lines: ['cannot read kubeconfig'],
    exitCode: 2,
    code: 'Configuration',
  });
});

test('what the system refused is its own words', () => {
  const error = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  expect(describeFailure(error)).toEqual({
    lines: ['ENOSPC: no space left on device, write'],
    exitCode: 1,
    code: 'ENOSPC',
  });
});

test('a fault of ours is one line that calls it so, and keeps its stack for the log', () => {
  const { lines, exitCode, code, stack } = describeFailure(new TypeError('x is undefined'));
  expect(lines).toEqual(['internal error: x is undefined; a fault of nab-sync, --log-level debug shows where']);
  expect({ exitCode, code }).toEqual({ exitCode: 1, code: 'InternalError' });
  expect(stack).toContain('fail.test.ts');
});

test.each([undefined, null, 'text', 42, {}])('%j can be thrown, too', (thrown) => {
  expect(describeFailure(thrown).lines[0]).toMatch(/^internal error: /);
});

test('a line stays one line and one screen, whatever the error says', () => {
  const { lines } = describeFailure(new ConfigurationError(`bad\n\u001b[31m${'x'.repeat(10_000)}`));
  expect(lines[0]).toMatch(/^bad\\u\{a\}\\u\{1b\}\[31mx/);
  expect(lines[0]?.length).toBeLessThan(1_100);
});
