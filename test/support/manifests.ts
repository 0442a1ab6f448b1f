import { execFile } from 'node:child_process';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parseAllDocuments, stringify } from 'yaml';
import { z } from 'zod';
import type { JsonObject } from '../../src/kube/resource.ts';

const manifestsDirectory = fileURLToPath(new URL('../../manifests/', import.meta.url));

export interface RenderOptions {
  /** Path or name of kubectl. */
  readonly kubectl: string;
  /** The OADP namespace to install into. */
  readonly namespace: string;
  /** Put behind every name, so that several installs on one cluster do not share cluster-wide objects. */
  readonly nameSuffix?: string;
  /** Directory under manifests/; default `base`. */
  readonly directory?: string;
  /** JSON patches of kustomize, such as one that takes a verb out of a role. */
  readonly patches?: readonly { readonly target: Readonly<Record<string, string>>; readonly patch: string }[];
}

/** The objects that `kubectl apply -k` would apply for an overlay such as the README shows. */
export async function renderManifests(options: RenderOptions): Promise<JsonObject[]> {
  // kustomize resolves links before it follows relative paths, so this must have none.
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'nab-sync-overlay-')));
  try {
    const overlay = {
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      // kustomize takes relative paths only.
      resources: [relative(directory, join(manifestsDirectory, options.directory ?? 'base'))],
      namespace: options.namespace,
      ...(options.nameSuffix === undefined ? {} : { nameSuffix: options.nameSuffix }),
      ...(options.patches === undefined ? {} : { patches: options.patches }),
    };
    await writeFile(join(directory, 'kustomization.yaml'), stringify(overlay));
    const { stdout } = await promisify(execFile)(options.kubectl, ['kustomize', directory]);
    return parseAllDocuments(stdout).map((document) => object.parse(document.toJS()));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

const object = z.record(z.string(), z.unknown());
