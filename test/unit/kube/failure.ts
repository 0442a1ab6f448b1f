import { KubeError } from '../../../src/kube/errors.ts';

/** The KubeError that a promise rejects with; anything else fails the test. */
export async function failure(promise: Promise<unknown>): Promise<KubeError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof KubeError) return error;
    throw error;
  }
  throw new Error('it did not fail');
}
