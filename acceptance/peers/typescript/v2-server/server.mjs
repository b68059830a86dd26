// A server made with version 2 of the TypeScript SDK for 2026-07-28 only: it ends a call with its input requests.

import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { Server, createMcpHandler, inputRequired } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

import { CAPABILITIES, call, list, listens } from './tools.mjs';

/** Ends a run of a tool whose input request has no response yet. */
class Question extends Error {
  constructor(request) {
    super('the question has no answer yet');
    this.request = request;
  }
}

/** `publish` notifies subscribers that the tools changed. */
const maker = publish => () => {
  const identity = { name: 'typescript-v2', version: '1.0.0' };
  const server = new Server(identity, { capabilities: CAPABILITIES });
  server.setRequestHandler('tools/list', () => ({ tools: list() }));
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const progressToken = params._meta?.progressToken ?? mcpReq._meta?.progressToken;
    const tell = (progress, total) => {
      const told = { progressToken, progress, total };
      return mcpReq.notify({ method: 'notifications/progress', params: told });
    };
    const ask = request => {
      const answer = mcpReq.inputResponses?.asked;
      if (answer === undefined) throw new Question(request);
      return answer;
    };
    try {
      return await call(params, {
        signal: mcpReq.signal,
        progress: progressToken === undefined ? () => {} : tell,
        elicit: asked => ask(inputRequired.elicit(asked)),
        sample: asked => ask(inputRequired.createMessage(asked)),
        changed: () => publish(server),
      });
    } catch (error) {
      if (!(error instanceof Question)) throw error;
      return inputRequired({ inputRequests: { asked: error.request } });
    }
  });
  return server;
};

/** Serves stateless requests. */
function overHttp() {
  const handler = createMcpHandler(
    maker(() => handler.notify.toolsChanged()),
    { legacy: 'reject' },
  );
  listens(
    createServer(async (request, response) => {
      const gone = new AbortController();
      response.on('close', () => gone.abort());
      const { method, headers } = request;
      const body = method === 'POST' ? { body: Readable.toWeb(request), duplex: 'half' } : {};
      const url = new URL(request.url, `http://${headers.host}`);
      const asked = new Request(url, { method, headers, signal: gone.signal, ...body });
      const answer = await handler.fetch(asked);
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      if (answer.body) Readable.fromWeb(answer.body).on('error', () => {}).pipe(response);
      else response.end();
    }),
  );
}

if (process.argv.includes('--http')) overHttp();
else serveStdio(maker(server => server.sendToolListChanged()), { legacy: 'reject' });
