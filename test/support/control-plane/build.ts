/** `make control-plane`: sees to it that the programs are there, and prints their directory as the last line of stdout. */
import { provideBinaries } from './binaries.ts';
import { stderrProgress } from './progress.ts';
import { runScript } from './setup-error.ts';

await runScript(async () => {
  const { directory } = await provideBinaries(stderrProgress);
  console.log(directory);
});
