// A peer made with version 1 of the TypeScript SDK, which supports the revisions up to 2025-11-25, or with an older
// release, which supports fewer of them.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

import { CAPABILITIES, IDENTITY, STEP_MILLISECONDS, every, start } from './common.mjs';
import { Person, connectAs } from './login.mjs';

/** The transport to a server: a URL that ends in `/sse` uses the one of 2024-11-05. */
async function over(server, authProvider) {
  if (!server.url) return new StdioClientTransport(server);
  if (server.url.pathname.endsWith('/sse')) return new SSEClientTransport(server.url);
  const newer = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  return new newer.StreamableHTTPClientTransport(server.url, { authProvider });
}

async function connect({ mode, server, notes }) {
  if (!['default', 'legacy'].includes(mode)) {
    throw new Error(`version 1 of the TypeScript SDK cannot be made to speak ${mode}`);
  }
  const { elicitation, ...older } = CAPABILITIES;
  const capabilities = types.ElicitRequestSchema ? CAPABILITIES : older;
  const client = new Client(IDENTITY, { capabilities });
  if (types.ElicitRequestSchema) client.setRequestHandler(types.ElicitRequestSchema, notes.elicit);
  client.setRequestHandler(types.CreateMessageRequestSchema, notes.sample);
  client.setRequestHandler(types.ListRootsRequestSchema, notes.roots);
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, notes.heardToolsChanged);
  client.onerror = error => notes.failed('transport', error);
  const person = server.login && new Person(server.login);
  // The SDK does not expose the negotiated revision.
  let protocol;
  const request = client.request.bind(client);
  client.request = async (asked, ...more) => {
    const result = await request(asked, ...more);
    if (asked.method === 'initialize') protocol = result.protocolVersion;
    return result;
  };
  const within = { timeout: STEP_MILLISECONDS };
  const finish = (transport, returned) => transport.finishAuth(returned.get('code'));
  await connectAs(person, client, { open: () => over(server, person), finish, within, notes });
  const names = async (page, field, key) =>
    (await every(params => page(params, within), field)).map(entry => entry[key]);
  return {
    protocol,
    identity: client.getServerVersion(),
    tools: () => names(client.listTools.bind(client), 'tools', 'name'),
    resources: () => names(client.listResources.bind(client), 'resources', 'uri'),
    prompts: () => names(client.listPrompts.bind(client), 'prompts', 'name'),
    call: (params, more) => client.callTool(params, undefined, { ...within, ...more }),
    heed: handler => client.setNotificationHandler(types.ProgressNotificationSchema, handler),
    read: params => client.readResource(params, within),
    prompt: params => client.getPrompt(params, within),
    subscribed: work => work(),
    close: () => client.close(),
  };
}

start('typescript-v1', '@modelcontextprotocol/sdk', connect);
