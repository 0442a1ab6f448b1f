import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import * as z from 'zod';
import { createPrometheusMetrics } from '../../../src/observability/prometheus.ts';
import { findPromtool } from '../../support/promtool.ts';

/** What Prometheus itself says of the alerts, the dashboard and the metrics. */

const promtool = (await findPromtool()) ?? '';
const directory = await mkdtemp(join(tmpdir(), 'nab-sync-rules-'));
const manifests = join(import.meta.dirname, '../../../manifests/monitoring');

const prometheusRule = z.object({
  spec: z.object({
    groups: z.array(
      z.object({ name: z.string(), rules: z.array(z.looseObject({ alert: z.string(), expr: z.string() })) }),
    ),
  }),
});
const { spec } = prometheusRule.parse(parse(await readFile(join(manifests, 'prometheus-rule.yaml'), 'utf8')));
const alerts = spec.groups.flatMap(({ rules }) => rules);

afterAll(() => rm(directory, { recursive: true, force: true }));

/** Runs promtool in a directory that holds the tests and these rules as `rules.yaml`; returns what it printed, and its exit code. */
async function run(args: readonly string[], rules: unknown = spec): Promise<{ exitCode: number; output: string }> {
  const place = await mkdtemp(join(directory, 'run-'));
  await writeFile(join(place, 'rules.yaml'), stringify(rules));
  await copyFile(join(import.meta.dirname, 'alert-tests.yaml'), join(place, 'alert-tests.yaml'));
  return await new Promise((resolve) => {
    execFile(promtool, args, { cwd: place }, (error, stdout, stderr) => {
      resolve({
        exitCode: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1,
        output: stdout + stderr,
      });
    });
  });
}

describe.skipIf(promtool === '')('promtool', () => {
  it('takes the rules, without a complaint', async () => {
    expect(await run(['check', 'rules', '--lint=all', '--lint-fatal', 'rules.yaml'])).toMatchObject({ exitCode: 0 });
  });

  it('finds that each alert fires when it has to, and not else', async () => {
    expect(await run(['test', 'rules', 'alert-tests.yaml'])).toMatchObject({ exitCode: 0 });
  });

  it.each(alerts)('$alert has a test that fails when the alert never fires', async ({ alert }) => {
    const silenced = {
      groups: spec.groups.map((group) => ({
        ...group,
        rules: group.rules.map((rule) =>
          rule.alert === alert ? { ...rule, expr: `(${rule.expr}) and vector(0) > 1` } : rule,
        ),
      })),
    };
    const { exitCode, output } = await run(['test', 'rules', 'alert-tests.yaml'], silenced);
    expect(exitCode).toBe(1);
    expect(output).toContain(alert);
  });

  it('takes each query of the dashboard', async () => {
    const dashboard = z.object({ panels: z.array(z.object({ targets: z.array(z.object({ expr: z.string() })) })) });
    const { panels } = dashboard.parse(JSON.parse(await readFile(join(manifests, 'dashboard.json'), 'utf8')));
    const rules = panels
      .flatMap(({ targets }) => targets)
      .map(({ expr }, index) => ({ record: `panel:query:${index}`, expr }));
    expect(rules.length).toBeGreaterThan(10);
    const checked = await run(['check', 'rules', 'rules.yaml'], { groups: [{ name: 'dashboard', rules }] });
    expect(checked).toEqual({ exitCode: 0, output: expect.stringContaining(`${rules.length} rules found`) as string });
  });

  it('finds the names and types of our metrics in order', async () => {
    const page = await createPrometheusMetrics({
      version: '0.0.0',
      watched: ['backups.velero.io'],
      requests: [],
    }).render();
    // The metrics of Node and its library are named by others.
    const ours = page.split(/^(?=# HELP )/m).filter((family) => family.startsWith('# HELP nab_sync_'));
    const checking = promisify(execFile)(promtool, ['check', 'metrics']);
    checking.child.stdin?.end(ours.join(''));
    await expect(checking).resolves.toEqual({ stdout: '', stderr: '' });
  });
});
