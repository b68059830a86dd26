// Two grants that `oidc-provider` lets others add: an assertion of another issuer (RFC 7523), and the exchange of an ID
// token for such an assertion (identity assertion authorization grant, ID-JAG).

import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { SignJWT, calculateJwkThumbprint, createLocalJWKSet, createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose';
import { errors } from 'oidc-provider';

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag';
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token';
const JAG_TYPE = 'oauth-id-jag+jwt';

/** The platform whose workloads have an identity: its issuer, and the key by which a test makes such identities. */
export const WORKLOAD = { issuer: 'https://workload.test', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) };
const WORKLOAD_KEY = WORKLOAD.publicKey.export({ format: 'jwk' });
WORKLOAD_KEY.kid = await calculateJwkThumbprint(WORKLOAD_KEY);

/** The client at the provider of the company, and the same program at the authorization server. */
export const DESK = { id: 'desk', secret: 'canary-desk-secret', redirect: 'http://127.0.0.1/desk' };
export const DESK_AGENT = { id: 'desk-agent', secret: 'canary-desk-agent-secret' };

/** Checks assertions of workloads and of the company's provider. An ID-JAG is valid once. */
function assertionVerifier(issuer, company) {
  const workloads = createLocalJWKSet({ keys: [WORKLOAD_KEY] });
  const employees = company && createRemoteJWKSet(new URL(`${company}/jwks`));
  const used = new Set();
  return async (assertion, client, resource) => {
    if (decodeJwt(assertion).iss === WORKLOAD.issuer) {
      const { payload } = await jwtVerify(assertion, workloads, { issuer: WORKLOAD.issuer, audience: issuer });
      return payload;
    }
    const rules = { issuer: company, audience: issuer, typ: JAG_TYPE, requiredClaims: ['exp', 'jti', 'sub'] };
    const { payload } = await jwtVerify(assertion, employees, rules);
    if (payload.client_id !== client || payload.resource !== resource || used.has(payload.jti)) {
      throw new Error('the assertion is for another client or resource, or was used');
    }
    used.add(payload.jti);
    return payload;
  };
}

/** The scopes of a request that a list has. */
function common(requested, allowed) {
  return (requested ?? '').split(' ').filter(scope => allowed.split(' ').includes(scope)).join(' ');
}

/** Adds both grants. `company` is the issuer whose ID-JAGs are accepted. */
export function addAssertionGrants(provider, { issuer, signingKey, resourceServer, company }) {
  const verify = assertionVerifier(issuer, company);
  const ownKeys = createRemoteJWKSet(new URL(`${issuer}/jwks`));

  const redeem = async context => {
    const { client, params } = context.oidc;
    const claims = await verify(params.assertion, client.clientId, params.resource).catch(error => {
      throw new errors.InvalidGrant('invalid assertion', error.message);
    });
    const server = resourceServer(context, params.resource);
    const token = new provider.AccessToken({ accountId: claims.sub, client, gty: 'jwt-bearer' });
    token.resourceServer = new provider.ResourceServer(params.resource, server);
    token.scope = common(claims.scope ? common(params.scope, claims.scope) : params.scope, server.scope);
    context.oidc.entity('AccessToken', token);
    const access_token = await token.save();
    context.body = { access_token, token_type: token.tokenType, expires_in: token.expiration, scope: token.scope };
  };

  const exchange = async context => {
    const { client, params } = context.oidc;
    if (params.subject_token_type !== ID_TOKEN || params.requested_token_type !== ID_JAG) {
      throw new errors.InvalidRequest('only an ID token is exchanged, for an ID-JAG');
    }
    const { payload } = await jwtVerify(params.subject_token, ownKeys, { issuer, audience: client.clientId }).catch(error => {
      throw new errors.InvalidGrant('invalid subject token', error.message);
    });
    const claims = { client_id: DESK_AGENT.id, resource: params.resource, scope: params.scope };
    const access_token = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', typ: JAG_TYPE, kid: signingKey.kid })
      .setIssuer(issuer)
      .setSubject(payload.sub)
      .setAudience(params.audience)
      .setJti(randomUUID())
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(signingKey.privateKey);
    context.body = { access_token, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: 300, scope: params.scope };
  };

  const exchanged = ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope'];
  provider.registerGrantType(JWT_BEARER, redeem, ['assertion', 'resource', 'scope']);
  provider.registerGrantType(TOKEN_EXCHANGE, exchange, exchanged);
}
