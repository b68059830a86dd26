// A peer made with version 1 of the TypeScript SDK, which knows the revisions up to 2025-11-25.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  ProgressNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

import { CAPABILITIES, IDENTITY, STEP_MILLISECONDS, every, start } from './common.mjs';

async function connect({ mode, server, notes }) {
  if (!['default', 'legacy'].includes(mode)) {
    throw new Error(`version 1 of the TypeScript SDK cannot be made to speak ${mode}`);
  }
  const client = new Client(IDENTITY, { capabilities: CAPABILITIES });
  client.setRequestHandler(ElicitRequestSchema, notes.elicit);
  client.setRequestHandler(CreateMessageRequestSchema, notes.sample);
  client.setRequestHandler(ListRootsRequestSchema, notes.roots);
  client.setNotificationHandler(ToolListChangedNotificationSchema, notes.heardToolsChanged);
  client.onerror = error => notes.failed('transport', error);
  const transport = server.url
    ? new StreamableHTTPClientTransport(server.url)
    : new StdioClientTransport(server);
  // The SDK tells the negotiated revision to the transport, and to nobody else.
  let protocol;
  const told = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = version => {
    protocol = version;
    told?.(version);
  };
  const within = { timeout: STEP_MILLISECONDS };
  await client.connect(transport, within);
  const names = async (page, field, key) =>
    (await every(params => page(params, within), field)).map(entry => entry[key]);
  return {
    protocol,
    identity: client.getServerVersion(),
    tools: () => names(client.listTools.bind(client), 'tools', 'name'),
    resources: () => names(client.listResources.bind(client), 'resources', 'uri'),
    prompts: () => names(client.listPrompts.bind(client), 'prompts', 'name'),
    call: (params, more) => client.callTool(params, undefined, { ...within, ...more }),
    heed: handler => client.setNotificationHandler(ProgressNotificationSchema, handler),
    read: params => client.readResource(params, within),
    prompt: params => client.getPrompt(params, within),
    subscribed: work => work(),
    close: () => client.close(),
  };
}

start('typescript-v1', '@modelcontextprotocol/sdk', connect);
