// An authorization server and the MCP servers that it protects, on ports of this machine. ../README.md describes them.
//
// Prints one line of JSON when all listen, and ends when its standard input does.

import { ROBOT, SERVICE, startProvider } from './provider.mjs';
import { startServers } from './server.mjs';

function option(name, otherwise) {
  const at = process.argv.indexOf(name);
  return at < 0 ? otherwise : Number(process.argv[at + 1]);
}

const requests = [];
const servers = {};
const nonces = process.argv.includes('--nonces');
const { origin, open } = await startServers({ port: option('--port', 0), nonces, requests, servers });
const seconds = option('--token-seconds', 3600);
const { issuer } = await startProvider({ port: option('--issuer-port', 0), seconds, nonces, requests, servers });
open(issuer);
const robot = { id: ROBOT.id, key: ROBOT.privateKey.export({ type: 'pkcs8', format: 'pem' }) };
console.log(JSON.stringify({ origin, issuer, service: SERVICE, robot }));
process.stdin.on('end', () => process.exit(0)).resume();
