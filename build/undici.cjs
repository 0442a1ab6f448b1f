// Takes the place of `undici` in the bundle: what nab-sync and client-node use of it. Its own index loads fetch, web sockets, caches
// and mocks as well.
const Dispatcher = require('../node_modules/undici/lib/dispatcher/dispatcher.js');
Dispatcher.prototype.request = require('../node_modules/undici/lib/api/api-request.js');
module.exports = {
  Agent: require('../node_modules/undici/lib/dispatcher/agent.js'),
  Pool: require('../node_modules/undici/lib/dispatcher/pool.js'),
  ProxyAgent: require('../node_modules/undici/lib/dispatcher/proxy-agent.js'),
  errors: require('../node_modules/undici/lib/core/errors.js'),
};
