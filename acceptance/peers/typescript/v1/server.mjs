// A server made with version 1 of the TypeScript SDK or an older release: it uses the handshake and sends input requests
// during a call.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

import { CAPABILITIES, call, list, listens } from './tools.mjs';

function made() {
  const identity = { name: 'typescript-v1', version: '1.0.0' };
  const server = new Server(identity, { capabilities: CAPABILITIES });
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools: list() }));
  server.setRequestHandler(types.CallToolRequestSchema, ({ params }, extra) => {
    // Older releases have only one stream, and so do not say which call a message belongs to.
    const notify = extra.sendNotification ?? (told => server.notification(told));
    const ask = extra.sendRequest ?? ((asked, schema) => server.request(asked, schema));
    const progressToken = params._meta?.progressToken;
    const tell = (progress, total) => {
      const told = { progressToken, progress, total };
      return notify({ method: 'notifications/progress', params: told });
    };
    return call(params, {
      signal: extra.signal,
      progress: progressToken === undefined ? () => {} : tell,
      elicit: asked => ask({ method: 'elicitation/create', params: asked }, types.ElicitResultSchema),
      sample: asked =>
        ask({ method: 'sampling/createMessage', params: asked }, types.CreateMessageResultSchema),
      changed: () => server.sendToolListChanged(),
    });
  });
  return server;
}

/** Creates one server for each session. */
async function overHttp() {
  const { StreamableHTTPServerTransport } = await import(
    '@modelcontextprotocol/sdk/server/streamableHttp.js'
  );
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

/** Creates one server for each stream, with the transport of 2024-11-05. */
function overSse() {
  const streams = new Map();
  const begun = async response => {
    const transport = new SSEServerTransport('/message', response);
    streams.set(transport.sessionId, transport);
    response.on('close', () => streams.delete(transport.sessionId));
    await made().connect(transport);
  };
  listens(
    createServer(async (request, response) => {
      const { pathname, searchParams } = new URL(request.url, 'http://localhost');
      const stream = streams.get(searchParams.get('sessionId'));
      if (`${request.method} ${pathname}` === 'GET /sse') await begun(response);
      else if (stream) await stream.handlePostMessage(request, response);
      else response.writeHead(404).end();
    }),
    '/sse',
  );
}

if (process.argv.includes('--http')) await overHttp();
else if (process.argv.includes('--sse')) overSse();
else await made().connect(new StdioServerTransport());
