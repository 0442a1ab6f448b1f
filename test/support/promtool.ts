import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtGoPrograms, provideGoPrograms, type GoPrograms } from './control-plane/go-programs.ts';
import { GoMissingError } from './control-plane/go-tool.ts';
import { stderrProgress } from './control-plane/progress.ts';
import { SetupError } from './control-plane/setup-error.ts';

const promtool: GoPrograms = {
  module: fileURLToPath(new URL('../promtool/', import.meta.url)),
  cache: 'promtool',
  what: 'promtool',
  minutes: 3,
  // Without service discovery, which is most of it and finds nothing in a test.
  buildFlags: ['-trimpath', '-ldflags', '-s -w', '-tags=remove_all_sd'],
  programs: [{ importPath: 'github.com/prometheus/prometheus/cmd/promtool', builtAs: 'promtool', file: 'promtool' }],
};

/**
 * Builds promtool into the user's cache, once, unless PROMTOOL names one. Where that cannot be done a line on stderr says so:
 * it is for the tests of the alerts alone, which are skipped then.
 */
export async function providePromtool(): Promise<void> {
  if (givenPromtool() !== undefined) return;
  try {
    await provideGoPrograms(promtool, stderrProgress);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    const why = error instanceof GoMissingError ? 'there is no Go to build it' : error.message;
    stderrProgress(`no promtool, so the alerts are not tested: ${why}`);
  }
}

/** Path of promtool: PROMTOOL if set, else what `providePromtool` has built. Undefined where there is none. */
export async function findPromtool(): Promise<string | undefined> {
  const given = givenPromtool();
  if (given !== undefined) return given;
  try {
    const directory = await builtGoPrograms(promtool);
    return directory === undefined ? undefined : join(directory, 'promtool');
  } catch (error) {
    if (error instanceof SetupError) return undefined;
    throw error;
  }
}

function givenPromtool(): string | undefined {
  const given = process.env['PROMTOOL'];
  return given === '' ? undefined : given;
}
