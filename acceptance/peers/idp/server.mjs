// The protected MCP servers, made with the TypeScript SDK: its middleware checks bearer tokens and publishes the metadata.

import { randomUUID } from 'node:crypto';
import express from 'express';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { getOAuthProtectedResourceMetadataUrl } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { createRemoteJWKSet, jwtVerify } from 'jose';

import { requireDpop } from './dpop.mjs';
import { RESOURCE_SERVER } from './provider.mjs';

/** How often `write` ran. */
let writes = 0;

/** The access tokens that the servers refuse although their issuer does not. */
const refused = new Set();

const text = said => ({ content: [{ type: 'text', text: said }] });
const TOOLS = {
  whoami: ({ authInfo }) => text(JSON.stringify({ client: authInfo.clientId, ...authInfo.extra, scopes: authInfo.scopes })),
  write: () => text(`written ${(writes += 1)}`),
};

function made() {
  const server = new Server({ name: 'protected', version: '1.0.0' }, { capabilities: { tools: {} } });
  const tools = Object.keys(TOOLS).map(name => ({ name, inputSchema: { type: 'object' } }));
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools }));
  server.setRequestHandler(types.CallToolRequestSchema, ({ params }, extra) => TOOLS[params.name](extra));
  return server;
}

/** Serves one session after the other, each with its own server. */
function sessions() {
  const open = new Map();
  return async (request, response) => {
    const id = request.headers['mcp-session-id'];
    let transport = open.get(id);
    if (id !== undefined && !transport) return response.status(404).end();
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: begun => open.set(begun, transport),
      });
      await made().connect(transport);
    }
    return transport.handleRequest(request, response, request.body);
  };
}

/** Checks JWT access tokens by the key set of their issuer. */
function jwtVerifier(issuer, resource) {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  return {
    async verifyAccessToken(token) {
      try {
        const { payload } = await jwtVerify(token, keys, { issuer, audience: resource, typ: 'at+jwt' });
        return authInfo(token, payload, resource);
      } catch {
        throw new InvalidTokenError('invalid access token');
      }
    },
  };
}

/** Asks the issuer about opaque access tokens (RFC 7662). */
function introspectingVerifier(issuer, resource) {
  const client = `${encodeURIComponent(RESOURCE_SERVER.id)}:${encodeURIComponent(RESOURCE_SERVER.secret)}`;
  return {
    async verifyAccessToken(token) {
      const answer = await fetch(`${issuer}/token/introspection`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(client)}` },
        body: new URLSearchParams({ token }),
      });
      const claims = await answer.json();
      if (!claims.active || ![claims.aud].flat().includes(resource)) {
        throw new InvalidTokenError('invalid access token');
      }
      return authInfo(token, claims, resource);
    },
  };
}

function authInfo(token, { client_id, sub, scope, exp, cnf }, resource) {
  if (refused.has(token)) throw new InvalidTokenError('refused access token');
  const scopes = scope?.split(' ') ?? [];
  return { token, clientId: client_id, scopes, expiresAt: exp, resource: new URL(resource), extra: { sub, cnf } };
}

/** The scopes that a message needs. */
function scopesOf(body, always) {
  const isWrite = body?.method === 'tools/call' && body.params?.name === 'write';
  return isWrite ? [...always, 'mcp:write'] : always;
}

/**
 * Starts the servers: `/mcp` with JWTs, `/opaque` with opaque tokens, `/dpop` with bound tokens, `/never` with a scope that
 * nobody gets, and `/open` without a login. `/test/requests` tells what the authorization server was asked, `/test/secrets` what
 * it issued, and `/test/refuse` takes a token that all servers refuse from then on.
 */
export async function startServers({ port, nonces, requests, secrets, servers }) {
  const app = express();
  app.use(express.json());
  const http = await new Promise(resolve => {
    const listening = app.listen(port, '127.0.0.1', () => resolve(listening));
  });
  const origin = `http://127.0.0.1:${http.address().port}`;
  servers.isOpaque = resource => resource === `${origin}/opaque`;
  const protect = (path, issuer, always, verifier, isBound = false) => {
    const resource = `${origin}${path}`;
    const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(new URL(resource));
    app.get(`/.well-known/oauth-protected-resource${path}`, (_, response) =>
      response.json({
        resource,
        authorization_servers: [issuer],
        scopes_supported: ['mcp'],
        ...(isBound && { dpop_bound_access_tokens_required: true }),
      }),
    );
    const check = (request, response, next) => {
      const requiredScopes = scopesOf(request.body, always);
      const options = { verifier: verifier(issuer, resource), requiredScopes, resourceMetadataUrl };
      const middleware = isBound ? requireDpop({ ...options, resource, nonces }) : requireBearerAuth(options);
      return middleware(request, response, next);
    };
    app.all(path, check, sessions());
  };
  const open = issuer => {
    protect('/mcp', issuer, ['mcp'], jwtVerifier);
    protect('/opaque', issuer, ['mcp'], introspectingVerifier);
    protect('/never', issuer, ['mcp', 'mcp:never'], jwtVerifier);
    protect('/dpop', issuer, ['mcp'], jwtVerifier, true);
    app.all('/open', sessions());
    app.get('/test/requests', (_, response) => response.json(requests));
    app.get('/test/secrets', (_, response) => response.json(secrets));
    app.post('/test/refuse', express.text(), (request, response) => response.json(!!refused.add(request.body)));
    app.get('/test/writes', (_, response) => response.json(writes));
  };
  return { origin, open };
}
