// The authorization server: `oidc-provider`, with a page that logs `alice` in and consents by itself.

import { createServer } from 'node:http';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import Provider from 'oidc-provider';

/** The scopes of every protected server. Nobody gets `mcp:never`. */
export const SCOPES = ['mcp', 'mcp:write', 'mcp:never'];

/** The clients that programs use, and the one by which the protected servers ask about tokens. */
export const SERVICE = { id: 'service', secret: 'canary-service-secret/with+signs' };
export const ROBOT = { id: 'robot', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) };
const ROBOT_KEY = ROBOT.publicKey.export({ format: 'jwk' });
ROBOT_KEY.kid = await calculateJwkThumbprint(ROBOT_KEY);
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

function configuration({ seconds, nonces, servers }) {
  const lifetime = () => seconds;
  return {
    clients: [
      program(SERVICE.id, { client_secret: SERVICE.secret }),
      program(RESOURCE_SERVER.id, { client_secret: RESOURCE_SERVER.secret }),
      program(ROBOT.id, {
        token_endpoint_auth_method: 'private_key_jwt',
        jwks: { keys: [ROBOT_KEY] },
      }),
    ],
    jwks: { keys: [generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    cookies: { keys: [randomBytes(32).toString('hex')] },
    rotateRefreshToken: true,
    pkce: { required: () => true },
    scopes: ['openid', 'offline_access'],
    ttl: { AccessToken: lifetime, ClientCredentials: lifetime, RefreshToken: () => 86_400 },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => nonces },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          scope: SCOPES.join(' '),
          audience: resource,
          accessTokenFormat: servers.isOpaque(resource) ? 'opaque' : 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
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

/** Starts the authorization server. `requests` receives what it was asked, without secrets. */
export async function startProvider({ port, requests, ...options }) {
  const http = createServer();
  await new Promise(resolve => http.listen(port, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${http.address().port}`;
  const provider = new Provider(issuer, configuration(options));
  provider.on('grant.error', (_, error) => console.error('oidc-provider:', error.message, error.error_detail ?? ''));
  provider.use(async (context, next) => {
    if (context.path.startsWith('/interaction/')) {
      context.respond = false;
      return answerInteraction(provider, context.req, context.res);
    }
    await next();
    const { grant_type: grant, scope, resource } = context.oidc?.params ?? {};
    const error = context.body?.error;
    requests.push({ method: context.method, path: context.path, status: context.status, grant, scope, resource, error });
  });
  http.on('request', provider.callback());
  return { issuer, provider };
}
