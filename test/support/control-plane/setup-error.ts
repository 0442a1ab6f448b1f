/**
 * A fault of the surroundings (no Go, a port in use, a broken cache), told in one line that says what, where and what to do.
 * Command line scripts print the message alone: a stack trace of the test support helps nobody.
 */
export class SetupError extends Error {
  override readonly name = 'SetupError';
}

/** Runs a script's main function; a `SetupError` becomes one line on stderr and exit code 1, anything else keeps its stack. */
export async function runScript(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    console.error(error instanceof SetupError ? error.message : error);
    process.exitCode = 1;
  }
}
