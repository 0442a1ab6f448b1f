import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import * as z from 'zod';
import { version } from '../../../src/commands/version.ts';

/**
 * The Dockerfile, without an engine: what it says, and its build stage carried out here with the files that it copies and
 * nothing else. What an engine and a registry do is not shown: `make image` ends where node or the bundle does not run.
 */

const root = join(import.meta.dirname, '../../..');
const run = promisify(execFile);

interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** Instructions on one line each, without comments. */
function instructions(dockerfile: string): Instruction[] {
  const lines = dockerfile.replace(/^\s*#.*\n/gm, '').replaceAll(/\\\n\s*/g, '');
  return [...lines.matchAll(/^([A-Z]+) (.*)$/gm)].map(([, name = '', rest = '']) => ({ name, rest }));
}

const all = instructions(await readFile(join(root, 'Dockerfile'), 'utf8'));
const lastFrom = all.findLastIndex(({ name }) => name === 'FROM');
const build = all.slice(
  all.findIndex(({ name }) => name === 'FROM'),
  lastFrom,
);
const final = all.slice(lastFrom);

function of(name: string, stage: readonly Instruction[]): string[] {
  return stage.flatMap((instruction) => (instruction.name === name ? instruction.rest : []));
}

/** What a stage copies out of the build context, by name. */
function copied(stage: readonly Instruction[]): string[] {
  return of('COPY', stage)
    .filter((rest) => !rest.startsWith('--from='))
    .flatMap((rest) => rest.split(' ').slice(0, -1));
}

const directory = await mkdtemp(join(tmpdir(), 'nab-sync-image-'));
afterAll(() => rm(directory, { recursive: true, force: true }));

describe('Dockerfile', () => {
  test('has a build stage and a final one, each on an image with its registry and a version', () => {
    const images = of('FROM', all).map((rest) => rest.split(' ')[0] ?? '');
    expect(images).toHaveLength(2);
    for (const image of images) expect(image).toMatch(/^[\w.-]+\.[a-z]+\/[\w./-]+:(?!latest$)[\w.-]+$/);
  });

  test('.dockerignore lets in what is copied, and nothing else', async () => {
    const lines = (await readFile(join(root, '.dockerignore'), 'utf8')).split('\n');
    const [first, ...more] = lines.filter((line) => line !== '' && !line.startsWith('#'));
    expect(first).toBe('*');
    const names = [...copied(build), ...copied(final)];
    expect(more.sort()).toEqual(names.map((name) => `!${name}`).sort());
    expect(await readdir(root)).toEqual(expect.arrayContaining(names));
  });

  test('the final image runs as a user who is not root and has a number, and as the Deployment calls it', async () => {
    expect(of('USER', final)).toEqual([expect.stringMatching(/^[1-9]\d*:[1-9]\d*$/)]);
    const template = z.object({ containers: z.array(z.object({ command: z.array(z.string()) })) });
    const deployment = z.object({ spec: z.object({ template: z.object({ spec: template }) }) });
    const { spec } = deployment.parse(parse(await readFile(join(root, 'manifests/base/deployment.yaml'), 'utf8')));
    const words = ['ENTRYPOINT', 'CMD']
      .flatMap((name) => of(name, final))
      .flatMap((rest) => z.array(z.string()).parse(JSON.parse(rest)));
    expect(spec.template.spec.containers.map(({ command }) => command)).toEqual([words]);
  });

  test('the final image gets node, the bundle, its list of packages and the licence: no npm, no node_modules', () => {
    const paths = of('COPY', final).flatMap((rest) =>
      rest
        .split(' ')
        .filter((word) => !word.startsWith('--'))
        .slice(0, -1),
    );
    expect(paths.map((path) => basename(path)).sort()).toEqual([
      'LICENSE',
      'nab-sync.mjs',
      'nab-sync.spdx.json',
      'node',
    ]);
    expect(of('FROM', final)).toEqual([expect.not.stringContaining('node')]);
    expect(of('RUN', final)).toEqual(['["node", "/app/nab-sync.mjs", "--version"]']);
  });

  test('says what it is, which version, and from which commit', () => {
    const labels = of('LABEL', final).join(' ');
    for (const key of ['title', 'description', 'licenses', 'version', 'revision']) {
      expect(labels).toMatch(new RegExp(`org\\.opencontainers\\.image\\.${key}="[^"]+"`));
    }
  });

  test('its build stage makes a bundle that runs alone, from the files that it copies', async () => {
    const stage = join(directory, 'build');
    await mkdir(stage);
    for (const name of copied(build)) await cp(join(root, name), join(stage, name), { recursive: true });
    const [install, make = ''] = of('RUN', build);
    expect(install).toBe('npm ci --loglevel=error');
    // In place of the install, which a test has no business to repeat.
    await symlink(join(root, 'node_modules'), join(stage, 'node_modules'));
    await run('sh', ['-ec', make], { cwd: stage });

    const alone = join(directory, 'app');
    await mkdir(alone);
    await cp(join(stage, 'dist/nab-sync.mjs'), join(alone, 'nab-sync.mjs'));
    const { stdout } = await run(process.execPath, ['nab-sync.mjs', '--version'], { cwd: alone, env: {} });
    expect(stdout.trim()).toBe(version);
    const packages = z.object({ packages: z.array(z.object({ name: z.string() })) });
    const sbom = packages.parse(JSON.parse(await readFile(join(stage, 'dist/nab-sync.spdx.json'), 'utf8')));
    expect(sbom.packages.map(({ name }) => name)).toEqual(expect.arrayContaining(['nab-sync', 'undici', 'pino']));
    expect(sbom.packages.map(({ name }) => name)).not.toContain('vitest');
  }, 60_000);
});
