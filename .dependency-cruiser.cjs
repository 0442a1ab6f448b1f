// The direction of imports: commands > controller > sync > oadp, with kube as a leaf that knows none of them.
const layer = (name, ...allowed) => ({
  name: `${name}-imports-only-downwards`,
  severity: 'error',
  comment: `src/${name} may import only from: ${[name, ...allowed].join(', ')}`,
  from: { path: `^src/${name}/` },
  to: { path: '^src/', pathNot: [name, ...allowed].map((folder) => `^src/${folder}/`) },
});

/** The functional core of src/sync. */
const pure = ['reasons', 'world', 'rules', 'decide', 'cluster-state', 'plan', 'report', 'recurrence'];

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-unresolved', severity: 'error', from: {}, to: { couldNotResolve: true } },
    layer('kube'),
    layer('oadp', 'kube'),
    layer('sync', 'oadp', 'kube'),
    layer('requests', 'sync', 'oadp', 'kube'),
    layer('settings', 'oadp', 'kube'),
    layer('observability', 'requests', 'sync', 'settings', 'kube'),
    layer('controller', 'requests', 'sync', 'oadp', 'kube', 'settings', 'observability'),
    layer('commands', 'controller', 'requests', 'sync', 'oadp', 'kube', 'settings', 'observability'),
    {
      name: 'rules-are-pure',
      severity: 'error',
      comment: 'What decides does no I/O: it may not import the HTTP side, what carries decisions out, or Node',
      from: { path: `^src/sync/(${pure.join('|')})\\.ts$` },
      to: {
        path: ['^src/kube/', `^src/sync/(?!(${pure.join('|')})\\.ts$)`, 'node_modules/(?!(@types/)?lodash/)'],
      },
    },
    {
      name: 'rules-do-not-import-node',
      severity: 'error',
      from: { path: `^src/sync/(${pure.join('|')})\\.ts$` },
      to: { dependencyTypes: ['core'] },
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
