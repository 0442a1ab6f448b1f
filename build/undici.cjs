// Takes the place of `undici` in the bundle: what nab-sync uses of it, and client-node's KubeConfig. Its own index loads fetch, web
// sockets, caches and mocks as well.
const Dispatcher = require('../node_modules/undici/lib/dispatcher/dispatcher.js');
// `connect` is for the tunnels of ProxyAgent.
Object.assign(Dispatcher.prototype, require('../node_modules/undici/lib/api/index.js'));
module.exports = {
  Agent: require('../node_modules/undici/lib/dispatcher/agent.js'),
  Pool: require('../node_modules/undici/lib/dispatcher/pool.js'),
  ProxyAgent: require('../node_modules/undici/lib/dispatcher/proxy-agent.js'),
  errors: require('../node_modules/undici/lib/core/errors.js'),
};
