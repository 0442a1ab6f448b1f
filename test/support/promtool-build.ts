/** Builds promtool into the cache, if it is not there and can be built: before tests run, whose cores it would take. */
import { runScript } from './control-plane/setup-error.ts';
import { providePromtool } from './promtool.ts';

await runScript(async () => {
  await providePromtool();
});
