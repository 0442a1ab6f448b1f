/**
 * Bundles nab-sync into one file that runs without node_modules: `node build/bundle.ts` writes dist/nab-sync.mjs.
 *
 * A cold start is waited for, and a good part of it goes by before the program's first line, while Node parses the file and loads
 * what it imports. So what nab-sync never gets to is left out; docs/performance.md has the figures.
 */
import { chmod, rename } from 'node:fs/promises';
import { build, type Plugin } from 'esbuild';
import manifest from '../package.json' with { type: 'json' };

/** Files of libraries that are never called, and what they export instead. */
const unused: readonly (readonly [file: RegExp, contents: string])[] = [
  // Nobody is offered HTTP/2: src/kube/client.ts says `allowH2: false` to servers and proxies. With it goes Node's own http2.
  [/[/]undici[/]lib[/]dispatcher[/]client-h2\.js$/, `module.exports = () => { throw new Error('no HTTP/2'); };`],
  // The 800 classes of the API, for KubeConfig's makeApiClient.
  [/[/]client-node[/]dist[/]gen[/]index\.js$/, `export const createConfiguration = null, ServerConfiguration = null;`],
];

const withoutUnused: Plugin = {
  name: 'without-unused',
  setup(bundle) {
    for (const [filter, contents] of unused) {
      let found = false;
      bundle.onLoad({ filter }, () => {
        found = true;
        return { contents };
      });
      // A library that names its files otherwise would bring it all back, and nobody would see it.
      bundle.onEnd(() => (found ? undefined : { errors: [{ text: `no file is called ${filter.source}` }] }));
    }
  },
};

const oldest = manifest.engines.node.replace('>=', '');

/** The first thing that runs, so that an older Node says what is wrong before it meets what it does not know. */
const checkNode = `{
  const [major, minor] = process.versions.node.split('.').map(Number);
  const [oldestMajor, oldestMinor] = [${oldest.split('.').join(', ')}];
  if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
    console.error('nab-sync: needs Node ${oldest} or later, this is ' + process.versions.node);
    process.exit(2);
  }
}`;

const result = 'dist/nab-sync.mjs';
// Whoever runs the old one meanwhile goes on with it.
const made = `dist/nab-sync.${process.pid}.mjs`;
await build({
  entryPoints: ['src/main.ts'],
  outfile: made,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node22',
  alias: { http: './build/http.cjs', 'node:http': './build/http.cjs', undici: './build/undici.cjs' },
  plugins: [withoutUnused],
  // Names stay: shorter ones made the start slower, and stacks unreadable.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'warning',
  banner: {
    js: `#!/usr/bin/env node\nimport { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);\n${checkNode}`,
  },
});
await chmod(made, 0o755);
await rename(made, result);
