import { readdir, readFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { z } from 'zod';
import { isJsonObject } from '../../../../src/kube/json.ts';
import type { JsonObject } from '../../../../src/kube/resource.ts';
import { actionOf, failureReasons } from '../../../../src/sync/reasons.ts';
import { nacuuid, type LiveObjects } from '../../../support/gen/live-objects.ts';

const directory = fileURLToPath(new URL('../../../hostile/', import.meta.url));

const fields = z.record(z.string(), z.unknown());

/** One file of test/hostile; its README.md says what the fields mean. */
const file = z.strictObject({
  reason: z.enum(Object.keys(actionOf)),
  failure: z.enum(failureReasons).optional(),
  name: z.string().optional(),
  nacuuid: z.string().optional(),
  shape: z
    .strictObject({
      metadata: fields.exactOptional(),
      labels: fields.exactOptional(),
      annotations: fields.exactOptional(),
      spec: fields.exactOptional(),
      status: fields.exactOptional(),
    })
    .default({}),
  status: fields.optional(),
  without: z.enum(['spec', 'status']).optional(),
});

export interface HostileBackup {
  /** Name of the file without its extension. */
  readonly title: string;
  readonly reason: string;
  readonly failure: string | undefined;
  /** Where its NAB belongs, if it gets one. */
  readonly name: string;
  readonly nacuuid: string;
  readonly backup: JsonObject;
}

export interface Placeholders {
  readonly tenant: string;
  readonly oadp: string;
}

/** All of test/hostile, as Backups of one tenant. */
export async function hostileBackups(gen: LiveObjects, at: Placeholders): Promise<HostileBackup[]> {
  const names = (await readdir(directory)).filter((name) => extname(name) === '.yaml').sort();
  return await Promise.all(
    names.map(async (each) => {
      const title = basename(each, '.yaml');
      const text = await readFile(join(directory, each), 'utf8');
      const { reason, failure, without, status, shape, ...given } = file.parse(expand(parse(text), at));
      const name = given.name ?? title.slice(0, 200);
      const id = given.nacuuid ?? nacuuid(at.tenant, 'hostile');
      const backup = gen.backup({ namespace: at.tenant, name, nacuuid: id, ...shape });
      if (status !== undefined) backup['status'] = status;
      if (without !== undefined) backup[without] = undefined;
      return { title, reason, failure, name, nacuuid: id, backup };
    }),
  );
}

function expand(value: unknown, at: Placeholders): unknown {
  if (typeof value === 'string') {
    return value
      .replaceAll('${tenant}', at.tenant)
      .replaceAll('${oadp}', at.oadp)
      .replaceAll(/\$\{repeat (\d+) (.)\}/gu, (_, times: string, text: string) => text.repeat(Number(times)));
  }
  if (Array.isArray(value)) return value.map((each: unknown) => expand(each, at));
  if (!isJsonObject(value)) return value;
  if ('$list' in value) {
    const item = expand(value['of'], at);
    return Array.from({ length: Number(value['$list']) }, () => item);
  }
  if ('$deep' in value) return deep(Number(value['$deep']));
  // fromEntries makes a key `__proto__` a key like any other.
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, expand(each, at)]));
}

function deep(levels: number): JsonObject {
  let object: JsonObject = {};
  for (let level = 1; level < levels; level += 1) object = { deeper: object };
  return object;
}
