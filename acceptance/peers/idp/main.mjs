// An authorization server and the MCP servers that it protects, on ports of this machine. ../README.md describes them.
//
// Prints one line of JSON when all listen, and ends when its standard input does.

import { DESK, DESK_AGENT, WORKLOAD } from './assertions.mjs';
import { startClientDocument } from './client_document.mjs';
import { RESOURCE_SERVER, ROBOT, SERVICE, startProvider } from './provider.mjs';
import { startServers } from './server.mjs';

function option(name, otherwise) {
  const at = process.argv.indexOf(name);
  return at < 0 ? otherwise : process.argv[at + 1];
}

const pem = ({ privateKey }) => privateKey.export({ type: 'pkcs8', format: 'pem' });
const requests = [];
const secrets = [];
const servers = {};
const nonces = process.argv.includes('--nonces');
const { origin, open } = await startServers({ port: Number(option('--port', 0)), nonces, requests, secrets, servers });
const certificate = option('--certificate');
const client = certificate && (await startClientDocument({ certificate, key: option('--key'), requests }));
const { issuer } = await startProvider({
  port: Number(option('--issuer-port', 0)),
  seconds: Number(option('--token-seconds', 3600)),
  company: option('--company'),
  hasForms: process.argv.includes('--forms'),
  takesDocuments: Boolean(client),
  nonces,
  requests,
  secrets,
  servers,
});
open(issuer);
const robot = { id: ROBOT.id, key: pem(ROBOT) };
const workload = { issuer: WORKLOAD.issuer, key: pem(WORKLOAD) };
const said = { origin, issuer, client, robot, workload, service: SERVICE, desk: DESK, agent: DESK_AGENT };
console.log(JSON.stringify({ ...said, introspection: RESOURCE_SERVER }));
process.stdin.on('end', () => process.exit(0)).resume();
