// Checks tokens that are bound to a key (RFC 9449), which the middleware of the TypeScript SDK does not.

import { createHash, randomUUID } from 'node:crypto';
import { EmbeddedJWK, calculateJwkThumbprint, jwtVerify } from 'jose';

/** How old a proof may be, in seconds. */
const MAX_AGE = 300;

const seen = new Set();
const issued = new Set();

class Refused extends Error {}

function refuse(reason) {
  throw new Refused(reason);
}

async function checkProof(request, token, { resource, nonces }) {
  const proof = request.headers.dpop ?? refuse('invalid_dpop_proof');
  const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, { typ: 'dpop+jwt' }).catch(() =>
    refuse('invalid_dpop_proof'),
  );
  const hash = createHash('sha256').update(token).digest('base64url');
  const isRight =
    payload.htm === request.method &&
    payload.htu === resource &&
    payload.ath === hash &&
    Math.abs(Date.now() / 1000 - payload.iat) < MAX_AGE;
  if (!isRight || seen.has(payload.jti)) refuse('invalid_dpop_proof');
  if (nonces && !issued.has(payload.nonce)) refuse('use_dpop_nonce');
  seen.add(payload.jti);
  return calculateJwkThumbprint(protectedHeader.jwk);
}

/** A middleware as `requireBearerAuth`, for the scheme `DPoP`. */
export function requireDpop({ verifier, requiredScopes, resourceMetadataUrl, resource, nonces }) {
  return async (request, response, next) => {
    const challenge = (status, error) => {
      if (error === 'use_dpop_nonce') {
        const nonce = randomUUID();
        issued.add(nonce);
        response.set('DPoP-Nonce', nonce);
      }
      const parts = [error && `error="${error}"`, 'algs="ES256"', `resource_metadata="${resourceMetadataUrl}"`];
      parts.push(`scope="${requiredScopes.join(' ')}"`);
      response.set('WWW-Authenticate', `DPoP ${parts.filter(Boolean).join(', ')}`);
      response.status(status).end();
    };
    const [scheme, token] = (request.headers.authorization ?? '').split(' ');
    if (scheme !== 'DPoP') return challenge(401, scheme && 'invalid_token');
    try {
      const info = await verifier.verifyAccessToken(token);
      const thumbprint = await checkProof(request, token, { resource, nonces });
      if (info.extra.cnf?.jkt !== thumbprint) return challenge(401, 'invalid_token');
      if (!requiredScopes.every(scope => info.scopes.includes(scope))) return challenge(403, 'insufficient_scope');
      request.auth = info;
      return next();
    } catch (error) {
      return challenge(401, error instanceof Refused ? error.message : 'invalid_token');
    }
  };
}
