// The direction of imports: commands > controller > sync > oadp, with kube as a leaf that knows none of them.
const layer = (name, ...allowed) => ({
  name: `${name}-imports-only-downwards`,
  severity: 'error',
  comment: `src/${name} may import only from: ${[name, ...allowed].join(', ')}`,
  from: { path: `^src/${name}/` },
  to: { path: '^src/', pathNot: [name, ...allowed].map((folder) => `^src/${folder}/`) },
});

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-unresolved', severity: 'error', from: {}, to: { couldNotResolve: true } },
    layer('kube'),
    layer('oadp', 'kube'),
    layer('sync', 'oadp', 'kube'),
    layer('settings', 'oadp', 'kube'),
    layer('observability', 'sync', 'settings', 'kube'),
    layer('controller', 'sync', 'oadp', 'kube', 'settings', 'observability'),
    layer('commands', 'controller', 'sync', 'oadp', 'kube', 'settings', 'observability'),
    {
      name: 'rules-are-pure',
      severity: 'error',
      comment: 'The rules and the decision do no I/O: they may not import the HTTP side, Node or a library',
      from: { path: '^src/sync/(rules|decide|reasons|record-types|cluster-state)\\.ts$' },
      to: {
        path: ['^src/kube/', '^src/sync/(apply|reconcile|gather)', '^node:', 'node_modules/(undici|@kubernetes|pino)'],
      },
    },
    {
      name: 'sources-do-not-import-tests',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^test/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
};
