import { beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { fromNow } from '../../support/gen/live-objects.ts';
import { minute } from '../../support/gen/api-objects.ts';
import { startNabSync } from '../../support/nab-sync.ts';
import { eventsIn } from '../main-job/support/events.ts';
import { mainJob, untilTheEndOfTheFile } from '../main-job/support/main-job.ts';
import { createCounter } from './support/create-counter.ts';
import { passOver } from './support/passes.ts';

/** What an admin's ValidatingAdmissionPolicy refuses costs the refused NABs, and nobody beside them. */

const job = await mainJob();
const { gen, objects } = job;
const creates = await createCounter(job);
const policy = job.tenant('policy');
const groups = 'admissionregistration.k8s.io/v1';

/** The namespace's label `test-deny` says what is denied: `all`, `all-403`, or the beginning of the names. */
async function makePolicy(): Promise<void> {
  const deny = "namespaceObject.metadata.labels['test-deny']";
  await objects.create({
    apiVersion: groups,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: policy },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          {
            apiGroups: ['oadp.openshift.io'],
            apiVersions: ['*'],
            operations: ['CREATE'],
            resources: ['nonadminbackups'],
          },
        ],
      },
      validations: [
        { expression: `${deny} != 'all' && !object.metadata.name.startsWith(${deny})`, message: 'not in this house' },
        { expression: `${deny} != 'all-403'`, message: 'not in this house either', reason: 'Forbidden' },
      ],
    },
  });
  await objects.create({
    apiVersion: groups,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: policy },
    spec: {
      policyName: policy,
      validationActions: ['Deny'],
      matchResources: {
        namespaceSelector: {
          matchLabels: { 'test-file': policy },
          matchExpressions: [{ key: 'test-deny', operator: 'Exists' }],
        },
      },
    },
  });
  untilTheEndOfTheFile(async () => {
    for (const kind of ['ValidatingAdmissionPolicyBinding', 'ValidatingAdmissionPolicy']) {
      await objects.deleteObject({ apiVersion: groups, kind, metadata: { name: policy } });
    }
  });
}

async function tenantDenied(name: string, deny: string): Promise<string> {
  return await job.createTenant(name, { 'test-file': policy, 'test-deny': deny });
}

/** Whether the API server goes by the policy yet, or no longer. */
async function untilAnswer(namespace: string, name: string, wanted: number): Promise<void> {
  const path = `/apis/oadp.openshift.io/v1alpha1/namespaces/${namespace}/nonadminbackups?dryRun=All`;
  await eventually(async () => {
    const { status } = await job.api.request('POST', path, { body: gen.nonAdminBackup({ namespace, name }) });
    expect(status).toBe(wanted);
  }, 30_000);
}

async function permit(namespace: string): Promise<void> {
  await job.api.call('PATCH', `/api/v1/namespaces/${namespace}`, {
    body: { metadata: { labels: { 'test-deny': null } } },
    contentType: 'application/merge-patch+json',
  });
}

/** The first of the names completed last, and is tried first. */
async function backUp(namespace: string, ...names: string[]): Promise<void> {
  await Promise.all(
    names.map((name, index) =>
      objects.create(gen.backup({ namespace, name, status: { completionTimestamp: fromNow(-(index + 1) * minute) } })),
    ),
  );
}

const numbered = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

beforeAll(async () => {
  await objects.create(gen.storageLocation());
  await makePolicy();
});

describe('a policy that denies one name', () => {
  it('costs that NAB: its neighbours in the same namespace come back', async () => {
    const namespace = await tenantDenied('one', 'unwanted');
    await backUp(namespace, 'unwanted', ...numbered('b', 10));
    await untilAnswer(namespace, 'unwanted', 422);
    const { exitCode, report } = await passOver(job, [namespace]);
    expect(exitCode).toBe(1);
    expect(report).toMatchObject({ outcome: 'Partial', counts: { seen: 11, created: 10, failed: 1 } });
    expect(report.failures).toMatchObject([{ namespace, name: 'unwanted', reason: 'AdmissionDenied' }]);
    expect(report.failures[0]?.message).toContain('not in this house');
    const names = await job.nabNames(namespace);
    expect(names).toEqual(numbered('b', 10).map((name) => `${namespace}/${name}`));
  });
});

describe.each([
  ['all', 422, 'not in this house'],
  ['all-403', 403, 'not in this house either'],
])('a policy that denies everything in a namespace (%s: HTTP %i)', (deny, http, message) => {
  let denied: string;
  let neighbour: string;
  let pass: Awaited<ReturnType<typeof passOver>>;

  beforeAll(async () => {
    denied = await tenantDenied(`${deny}-denied`, deny);
    neighbour = await job.createTenant(`${deny}-neighbour`);
    await backUp(denied, ...numbered('b', 40));
    await backUp(neighbour, ...numbered('b', 5));
    await untilAnswer(denied, 'probe', http);
    creates.reset();
    pass = await passOver(job, [denied, neighbour], creates.kubeconfig);
  });

  it('ends that namespace’s pass after few tries', () => {
    // Nothing is known of the namespace, so its creates go one at a time.
    expect(creates.in(denied)).toBe(5);
  });

  it('is called what it is, and not a missing right', () => {
    expect(pass.exitCode).toBe(1);
    expect(pass.report.reasons).toEqual({ Missing: 5, AdmissionDenied: 40 });
    for (const failure of pass.report.failures) {
      expect(failure).toMatchObject({ namespace: denied, reason: 'AdmissionDenied' });
      expect(failure.message).toContain(message);
    }
  });

  it('does not cost the neighbour anything', async () => {
    expect(await job.nabNames(neighbour)).toHaveLength(5);
    expect(await job.nabNames(denied)).toEqual([]);
  });

  it('is told once, with the count', async () => {
    const events = await eventsIn(objects, denied);
    expect(events).toMatchObject([
      { reason: 'AdmissionDenied', type: 'Warning', count: 1, involvedObject: { kind: 'Namespace', name: denied } },
    ]);
    expect(events[0]?.message).toMatch(/^40 NonAdminBackup/);
    expect(events[0]?.message).toContain(message);
  });

  it('is over when the admin lifts it', async () => {
    await permit(denied);
    await untilAnswer(denied, 'probe', 201);
    const { exitCode } = await passOver(job, [denied]);
    expect(exitCode).toBe(0);
    expect(await job.nabNames(denied)).toHaveLength(40);
  });
});

describe('the controller', () => {
  it('gets to the permitted NABs behind any number of denied ones that are newer', async () => {
    const namespace = await tenantDenied('behind', 'new');
    await backUp(namespace, ...numbered('new', 14), ...numbered('old', 4));
    await untilAnswer(namespace, 'new', 422);
    const controller = await startNabSync(['run'], {
      kubeconfig: creates.kubeconfig,
      oadpNamespace: job.oadpNamespace,
    });
    untilTheEndOfTheFile(async () => {
      await controller.stop();
    });
    await eventually(async () => {
      expect(await job.nabNames(namespace)).toEqual(numbered('old', 4).map((name) => `${namespace}/${name}`));
    }, 30_000);
    const denied = (await eventsIn(objects, namespace)).filter(({ reason }) => reason === 'AdmissionDenied');
    expect(denied).toMatchObject([{ count: 1 }]);

    creates.reset();
    await permit(namespace);
    await eventually(async () => {
      expect(await job.nabNames(namespace)).toHaveLength(18);
    }, 30_000);
    expect((await controller.stop()).stderr).not.toMatch(/"level":"(error|fatal)"/);
  });
});
