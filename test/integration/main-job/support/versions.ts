import { objectAt, stringAt } from '../../../../src/kube/json.ts';
import type { MainJob } from './main-job.ts';

/**
 * Every object of every kind in these namespaces, with its version: what a command that writes nothing leaves as it was.
 * Keys are `plural namespace/name`.
 */
export async function versionsIn(job: MainJob, namespaces: readonly string[]): Promise<Record<string, string>> {
  const listable = job.objects.kinds.filter(({ namespaced, verbs }) => namespaced && verbs.includes('list'));
  // One list of a kind is quicker than one for each namespace, though it holds other test files' objects, too.
  const found = await Promise.all(
    listable.map(async (resource) =>
      (await job.objects.list(resource)).flatMap((item): [string, string][] => {
        const metadata = objectAt(item, 'metadata');
        const namespace = stringAt(metadata, 'namespace') ?? '';
        if (!namespaces.includes(namespace)) return [];
        return [[`${resource.plural} ${namespace}/${String(metadata['name'])}`, String(metadata['resourceVersion'])]];
      }),
    ),
  );
  return Object.fromEntries(found.flat());
}
