// Loaded before a published server that listens on a fixed port: it listens on any free port of loopback instead, and
// prints the address in the form that the tests expect.

import { Server } from 'node:net';

const { listen } = Server.prototype;

Server.prototype.listen = function (_port, ...more) {
  this.once('listening', () => {
    process.stderr.write(`it listens on http://127.0.0.1:${this.address().port}/\n`);
  });
  return listen.call(this, 0, '127.0.0.1', ...more.filter(word => typeof word === 'function'));
};
