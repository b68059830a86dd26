// A server made with version 1 of the TypeScript SDK: it shakes hands, and asks while a call waits.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

import { CAPABILITIES, call, list, listens } from './tools.mjs';

function made() {
  const identity = { name: 'typescript-v1', version: '1.0.0' };
  const server = new Server(identity, { capabilities: CAPABILITIES });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: list() }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => {
    const progressToken = params._meta?.progressToken;
    const tell = (progress, total) => {
      const told = { progressToken, progress, total };
      return extra.sendNotification({ method: 'notifications/progress', params: told });
    };
    return call(params, {
      signal: extra.signal,
      progress: progressToken === undefined ? () => {} : tell,
      elicit: asked =>
        extra.sendRequest({ method: 'elicitation/create', params: asked }, ElicitResultSchema),
      sample: asked =>
        extra.sendRequest({ method: 'sampling/createMessage', params: asked }, CreateMessageResultSchema),
      changed: () => server.sendToolListChanged(),
    });
  });
  return server;
}

/** Serves one server for each session. */
function overHttp() {
  const sessions = new Map();
  const begun = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => sessions.set(id, transport),
      onsessionclosed: id => sessions.delete(id),
    });
    await made().connect(transport);
    return transport;
  };
  listens(
    createServer(async (request, response) => {
      const id = request.headers['mcp-session-id'];
      const transport = id === undefined ? await begun() : sessions.get(id);
      if (transport) await transport.handleRequest(request, response);
      else response.writeHead(404).end();
    }),
  );
}

if (process.argv.includes('--http')) overHttp();
else await made().connect(new StdioServerTransport());
