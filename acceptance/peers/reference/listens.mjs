// Loaded before a published server that asks for a port by number: it gets any free one of loopback instead, and tells,
// as the tests expect it, where it listens.

import { Server } from 'node:net';

const { listen } = Server.prototype;

Server.prototype.listen = function (_port, ...more) {
  this.once('listening', () => {
    process.stderr.write(`it listens on http://127.0.0.1:${this.address().port}/\n`);
  });
  return listen.call(this, 0, '127.0.0.1', ...more.filter(word => typeof word === 'function'));
};
