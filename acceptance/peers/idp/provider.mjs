// The authorization server: `oidc-provider`, with a page that logs `alice` in and consents by itself, or with the forms of
// its own for development.

import { createServer } from 'node:http';
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import Provider from 'oidc-provider';

import { DESK, DESK_AGENT, JWT_BEARER, TOKEN_EXCHANGE, addAssertionGrants } from './assertions.mjs';

/** The scopes of every protected server. Nobody gets `mcp:never`. */
export const SCOPES = ['mcp', 'mcp:write', 'mcp:never'];

/** The clients that programs use. */
export const SERVICE = { id: 'service', secret: 'canary-service-secret/with+signs' };
export const ROBOT = { id: 'robot', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) };
const ROBOT_KEY = ROBOT.publicKey.export({ format: 'jwk' });
ROBOT_KEY.kid = await calculateJwkThumbprint(ROBOT_KEY);

/** The roles of people, a claim of their tokens. */
const ROLES = { alice: ['writer'], bob: ['reader'] };

/** The client by which protected servers ask about opaque tokens. */
export const RESOURCE_SERVER = { id: 'resource-server', secret: 'canary-resource-server-secret' };

function program(client_id, rest) {
  return {
    client_id,
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
    ...rest,
  };
}

function configuration({ seconds, nonces, hasForms, takesDocuments, signingKey, resourceServer }) {
  const lifetime = () => seconds;
  return {
    clients: [
      program(SERVICE.id, { client_secret: SERVICE.secret }),
      program(DESK.id, {
        client_secret: DESK.secret,
        grant_types: ['authorization_code', TOKEN_EXCHANGE],
        response_types: ['code'],
        redirect_uris: [DESK.redirect],
        application_type: 'native',
      }),
      program(DESK_AGENT.id, { client_secret: DESK_AGENT.secret, grant_types: [JWT_BEARER] }),
      program('workload', { token_endpoint_auth_method: 'none', grant_types: [JWT_BEARER] }),
      program(RESOURCE_SERVER.id, { client_secret: RESOURCE_SERVER.secret }),
      program(ROBOT.id, {
        token_endpoint_auth_method: 'private_key_jwt',
        jwks: { keys: [ROBOT_KEY] },
      }),
    ],
    jwks: { keys: [{ ...signingKey.privateKey.export({ format: 'jwk' }), kid: signingKey.kid, use: 'sig' }] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    cookies: { keys: [randomBytes(32).toString('hex')] },
    rotateRefreshToken: true,
    extraTokenClaims: (_, token) => token.accountId && { roles: ROLES[token.accountId] ?? [] },
    // The certificate of the client's document is checked, but the document may be on this machine.
    fetch: (url, { dispatcher, ...options }) => fetch(url, options),
    pkce: { required: (_, client) => client.clientId !== DESK.id },
    // Clients of others register with the scopes of the resource.
    scopes: ['openid', 'offline_access', ...(hasForms ? SCOPES : [])],
    ttl: { AccessToken: lifetime, ClientCredentials: lifetime, RefreshToken: () => 86_400 },
    ...(!hasForms && { interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` } }),
    features: {
      devInteractions: { enabled: hasForms },
      clientIdMetadataDocument: { enabled: takesDocuments, ack: 'draft-02' },
      registration: { enabled: true },
      revocation: { enabled: true },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => nonces },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: resourceServer,
      },
    },
  };
}

/** Logs `alice` in and consents to all scopes but one. A client whose scopes have `decline` is turned away. */
async function answerInteraction(provider, request, response) {
  const { params, grantId } = await provider.interactionDetails(request, response);
  if (params.scope?.split(' ').includes('decline')) {
    const error = { error: 'access_denied', error_description: 'alice declined' };
    return provider.interactionFinished(request, response, error);
  }
  const accountId = 'alice';
  const grant =
    (grantId && (await provider.Grant.find(grantId))) ??
    new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope('openid offline_access');
  for (const resource of [params.resource ?? []].flat()) {
    grant.addResourceScope(resource, SCOPES.filter(scope => scope !== 'mcp:never').join(' '));
    grant.rejectResourceScope(resource, 'mcp:never');
  }
  const result = { login: { accountId }, consent: { grantId: await grant.save() } };
  return provider.interactionFinished(request, response, result);
}

/** Notes the codes and tokens in a response. */
function noteSecrets({ body, response }, secrets) {
  const names = ['access_token', 'refresh_token', 'id_token', 'device_code'];
  secrets.push(...names.map(name => body?.[name]).filter(secret => typeof secret === 'string'));
  const code = new URL(response.get('Location') || '/', 'http://localhost').searchParams.get('code');
  if (code) secrets.push(code);
}

/** Starts the authorization server. `requests` receives what it was asked, and `secrets` what it issued. */
export async function startProvider({ port, requests, secrets, servers, ...options }) {
  const http = createServer();
  await new Promise(resolve => http.listen(port, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${http.address().port}`;
  const signingKey = { kid: randomUUID(), ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) };
  const resourceServer = (_, resource) => ({
    scope: SCOPES.join(' '),
    audience: resource,
    accessTokenFormat: servers.isOpaque(resource) ? 'opaque' : 'jwt',
    jwt: { sign: { alg: 'ES256' } },
  });
  const provider = new Provider(issuer, configuration({ ...options, signingKey, resourceServer }));
  addAssertionGrants(provider, { issuer, signingKey, resourceServer, company: options.company });
  provider.on('grant.error', (_, error) => console.error('oidc-provider:', error.message, error.error_detail ?? ''));
  provider.use(async (context, next) => {
    if (!options.hasForms && context.path.startsWith('/interaction/')) {
      context.respond = false;
      return answerInteraction(provider, context.req, context.res);
    }
    await next();
    noteSecrets(context, secrets);
    const { grant_type: grant, scope, resource } = context.oidc?.params ?? {};
    const error = context.body?.error;
    requests.push({ method: context.method, path: context.path, status: context.status, grant, scope, resource, error });
  });
  http.on('request', provider.callback());
  return { issuer, provider };
}
