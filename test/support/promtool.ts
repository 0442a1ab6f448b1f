import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { provideGoPrograms, type GoPrograms } from './control-plane/go-programs.ts';
import { GoMissingError } from './control-plane/go-tool.ts';
import { stderrProgress } from './control-plane/progress.ts';

const promtool: GoPrograms = {
  module: fileURLToPath(new URL('../promtool/', import.meta.url)),
  cache: 'promtool',
  what: 'promtool',
  minutes: 3,
  // Without service discovery, which is most of it and finds nothing in a test.
  buildFlags: ['-trimpath', '-ldflags', '-s -w', '-tags=remove_all_sd'],
  programs: [{ importPath: 'github.com/prometheus/prometheus/cmd/promtool', builtAs: 'promtool', file: 'promtool' }],
};

/** Path of promtool: PROMTOOL if set, else built once into the user's cache. Undefined on a machine without Go. */
export async function providePromtool(): Promise<string | undefined> {
  const given = process.env['PROMTOOL'];
  if (given !== undefined && given !== '') return given;
  try {
    return join(await provideGoPrograms(promtool, stderrProgress), 'promtool');
  } catch (error) {
    if (error instanceof GoMissingError) return undefined;
    throw error;
  }
}
