// A peer made with version 2 of the TypeScript SDK, which supports 2026-07-28 and the earlier revisions.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { CAPABILITIES, IDENTITY, STEP_MILLISECONDS, start } from './common.mjs';
import { Person, connectAs } from './login.mjs';

/** The SDK's name of each mode; the default is legacy. */
const MODES = { auto: 'auto', legacy: 'legacy', modern: { pin: '2026-07-28' } };

async function connect({ mode, server, notes }) {
  const negotiation = mode === 'default' ? {} : { versionNegotiation: { mode: MODES[mode] } };
  const client = new Client(IDENTITY, { capabilities: CAPABILITIES, ...negotiation });
  client.setRequestHandler('elicitation/create', notes.elicit);
  client.setRequestHandler('sampling/createMessage', notes.sample);
  client.setRequestHandler('roots/list', notes.roots);
  client.setNotificationHandler('notifications/tools/list_changed', notes.heardToolsChanged);
  client.onerror = error => notes.failed('transport', error);
  const within = { timeout: STEP_MILLISECONDS };
  const person = server.login && new Person(server.login);
  const open = () =>
    server.url
      ? new StreamableHTTPClientTransport(server.url, { authProvider: person })
      : new StdioClientTransport(server);
  const finish = (transport, returned) => transport.finishAuth(returned);
  await connectAs(person, client, { open, finish, within, notes });
  const names = (entries, key) => entries.map(entry => entry[key]);
  return {
    protocol: client.getNegotiatedProtocolVersion(),
    identity: client.getServerVersion(),
    // Without a cursor this version fetches all pages itself.
    tools: async () => names((await client.listTools(undefined, within)).tools, 'name'),
    resources: async () => names((await client.listResources(undefined, within)).resources, 'uri'),
    prompts: async () => names((await client.listPrompts(undefined, within)).prompts, 'name'),
    call: (params, more) => client.callTool(params, { ...within, ...more }),
    heed: handler => client.setNotificationHandler('notifications/progress', handler),
    read: params => client.readResource(params, within),
    prompt: params => client.getPrompt(params, within),
    subscribed: async work => {
      if (client.getProtocolEra() === 'modern') {
        await client.listen({ toolsListChanged: true }, within);
      }
      return work();
    },
    close: () => client.close(),
  };
}

start('typescript-v2', '@modelcontextprotocol/client', connect);
