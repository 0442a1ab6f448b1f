import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadCrds } from '../../support/control-plane/crd-files.ts';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nab-sync-crds-'));
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

describe('CRDs out of a directory', () => {
  it('are all that its YAML files hold, and nothing else that stands there', async () => {
    vi.stubEnv('NAB_SYNC_CRD_DIR', directory);
    const crd = (name: string): string => `kind: CustomResourceDefinition\nmetadata:\n  name: ${name}\n`;
    writeFileSync(join(directory, 'a.yaml'), `${crd('a')}---\n${crd('b')}`);
    writeFileSync(join(directory, 'c.yml'), `${crd('c')}---\nkind: Namespace\n`);
    writeFileSync(join(directory, 'notes.txt'), crd('d'));
    const loaded = await loadCrds();
    expect(loaded.map(({ metadata }) => metadata)).toEqual([{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
  });

  it('that has none are an error of one line', async () => {
    vi.stubEnv('NAB_SYNC_CRD_DIR', directory);
    await expect(loadCrds()).rejects.toThrow(`no CustomResourceDefinition found in ${directory}`);
  });
});
