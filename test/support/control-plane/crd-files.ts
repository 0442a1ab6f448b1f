import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import type { JsonObject } from '../../../src/kube/resource.ts';
import { go, GoMissingError } from './go-tool.ts';
import { SetupError } from './setup-error.ts';

/** CRDs of one module; `files` says which are its own (the operator also carries older copies of Velero's). */
interface Source {
  readonly module: string;
  readonly directory: string;
  readonly files: RegExp;
}

/** The real CRDs, as their projects publish them, read out of the Go module cache: a copy in this project would go stale. */
const sources: readonly Source[] = [
  { module: 'github.com/vmware-tanzu/velero@v1.18.3', directory: 'config/crd/v1/bases', files: /^velero\.io_/ },
  // Data movement: the non-admin controller does not start without them.
  { module: 'github.com/vmware-tanzu/velero@v1.18.3', directory: 'config/crd/v2alpha1/bases', files: /^velero\.io_/ },
  {
    module: 'github.com/openshift/oadp-operator@v1.0.2-0.20250425163444-a21288a0f20b',
    directory: 'config/crd/bases',
    files: /^oadp\.openshift\.io_/,
  },
];

const monitoringSource: Source = {
  module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
  directory: 'example/prometheus-operator-crd',
  files: /_(?:servicemonitors|prometheusrules)\.yaml$/,
};

/**
 * The CustomResourceDefinitions of Velero and OADP, as the API server takes them. They come from the directory that
 * NAB_SYNC_CRD_DIR names, if set (for machines without Go), else from the Go module cache or proxy. Throws `SetupError`.
 */
export async function loadCrds(): Promise<JsonObject[]> {
  return await load(sources, /^(?!monitoring\.coreos\.com_).*\.ya?ml$/);
}

/** Those of the Prometheus operator that manifests/monitoring needs; from where `loadCrds` has its own. */
export async function loadMonitoringCrds(): Promise<JsonObject[]> {
  return await load([monitoringSource], monitoringSource.files);
}

async function load(wanted: readonly Source[], filesWithoutGo: RegExp): Promise<JsonObject[]> {
  const directory = process.env['NAB_SYNC_CRD_DIR'];
  if (directory !== undefined && directory !== '') return await readCrds(resolve(directory), filesWithoutGo);
  const found = await Promise.all(
    (await moduleDirectories(wanted)).map(({ source, root }) => readCrds(join(root, source.directory), source.files)),
  );
  return found.flat();
}

/** nab-sync's own kind; everything but that works without it. */
export async function loadOwnCrds(): Promise<JsonObject[]> {
  return await readCrds(fileURLToPath(new URL('../../../manifests/crd/', import.meta.url)), /\.yaml$/);
}

const noCrds =
  'no CRDs to install: install Go, whose module proxy has them, or set NAB_SYNC_CRD_DIR to a directory ' +
  'that holds them as YAML files';

const downloadedModule = z.object({ Path: z.string(), Dir: z.string() });

async function moduleDirectories(wanted: readonly Source[]): Promise<{ source: Source; root: string }[]> {
  try {
    return await Promise.all(
      wanted.map(async (source) => {
        const answer = await go(['mod', 'download', '-json', source.module]);
        return { source, root: downloadedModule.parse(JSON.parse(answer)).Dir };
      }),
    );
  } catch (error) {
    if (error instanceof GoMissingError) throw new SetupError(noCrds);
    throw error;
  }
}

const crd = z.looseObject({ kind: z.literal('CustomResourceDefinition') });

async function readCrds(directory: string, files: RegExp): Promise<JsonObject[]> {
  const entries = await readdir(directory).catch((error: unknown) => {
    throw new SetupError(`CRDs cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  });
  const names = entries.filter((name) => files.test(name)).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(directory, name), 'utf8')));
  const crds = texts
    .flatMap((text) => parseAllDocuments(text))
    .map((document) => crd.safeParse(document.toJS()))
    .flatMap((result) => (result.success ? [result.data] : []));
  if (crds.length === 0) throw new SetupError(`no CustomResourceDefinition found in ${directory}`);
  return crds;
}
