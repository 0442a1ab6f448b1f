import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parseAllDocuments, parseDocument, stringify } from 'yaml';
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

/** The objects of a part of the manifests, in a namespace and with changes of the caller's. */
export async function renderManifests(options: RenderOptions): Promise<JsonObject[]> {
  return await inTemporaryDirectory(async (directory) => {
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
    return await kustomize(options.kubectl, directory);
  });
}

/** The overlays that are there, by name. */
export async function overlayNames(): Promise<string[]> {
  return (await readdir(join(manifestsDirectory, 'overlays'))).sort();
}

/**
 * What `kubectl apply -k` applies of an overlay whose namespace somebody has changed in a copy, as the docs tell those to do
 * who have OADP in another namespace; with other components, if given.
 */
export async function renderOverlay(
  kubectl: string,
  name: string,
  namespace: string,
  components?: readonly string[],
): Promise<JsonObject[]> {
  return await inTemporaryDirectory(async (directory) => {
    await cp(manifestsDirectory, directory, { recursive: true });
    const overlay = join(directory, 'overlays', name);
    const file = join(overlay, 'kustomization.yaml');
    const kustomization = parseDocument(await readFile(file, 'utf8'));
    kustomization.set('namespace', namespace);
    if (components !== undefined) kustomization.set('components', components);
    await writeFile(file, String(kustomization));
    return await kustomize(kubectl, overlay);
  });
}

async function inTemporaryDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  // kustomize resolves links before it follows relative paths, so this must have none.
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'nab-sync-overlay-')));
  try {
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function kustomize(kubectl: string, directory: string): Promise<JsonObject[]> {
  const { stdout } = await promisify(execFile)(kubectl, ['kustomize', directory]);
  return parseAllDocuments(stdout).map((document) => object.parse(document.toJS()));
}

const object = z.record(z.string(), z.unknown());
