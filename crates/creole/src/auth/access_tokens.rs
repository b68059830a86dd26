//! Which credentials are access tokens, and what becomes of the decision about them.

use std::str;

use creole_oauth::resource::TokenShape;
use http::HeaderValue;

use super::challenge::Challenge;
use super::credential_files::keys::KEY_PREFIX;
use super::header::PresentedCredentials;
use super::oauth::{TokenCall, TokenDecision, TokenScheme};
use super::request::AuthRequest;
use super::resource::{DpopMode, ProtectedResource};
use super::{AuthDecision, LoadedCredentials};

/// An access token, with the resource that it is presented to.
pub(super) struct PresentedToken<'a> {
    scheme: TokenScheme,
    /// Empty if it is not text.
    text: &'a str,
    resource: &'a ProtectedResource,
}

/// What a decision about a token needs of its request.
pub(super) struct TokenDetails {
    url: String,
    proof: Option<HeaderValue>,
}

impl LoadedCredentials {
    /// The access token that the credentials are. Scheme and shape decide: a key has its prefix, a signed token has three
    /// parts, and any other token is one if an issuer is asked about such tokens here.
    pub(super) fn access_token<'a>(
        &'a self,
        presented: &PresentedCredentials<'a>,
        request: &AuthRequest<'_>,
    ) -> Option<PresentedToken<'a>> {
        let verifier = self.verifier.as_ref()?;
        let resource = self.resources.get(request.resource).filter(|it| it.accepts_tokens())?;
        let (scheme, bytes) = match presented {
            PresentedCredentials::Dpop(token) if resource.dpop() != DpopMode::Off => {
                (TokenScheme::Dpop, token.0)
            }
            PresentedCredentials::Bearer(token) => (TokenScheme::Bearer, token.0),
            _ => return None,
        };
        let text = str::from_utf8(bytes).unwrap_or_default();
        let token = PresentedToken { scheme, text, resource };
        let is_token = match TokenShape::of(text) {
            _ if scheme == TokenScheme::Dpop => true,
            _ if text.starts_with(KEY_PREFIX) => false,
            TokenShape::Jwt | TokenShape::Encrypted => true,
            TokenShape::Opaque => self.keys.is_none() || verifier.introspects(resource),
            TokenShape::Malformed => self.keys.is_none(),
        };
        is_token.then_some(token)
    }

    /// The decision about a token, if it is known without waiting.
    pub(super) fn try_decide_token(
        &self,
        token: &PresentedToken<'_>,
        request: &AuthRequest<'_>,
    ) -> Option<AuthDecision> {
        // Whether a proof was used before may be in a file.
        let verifier = self.verifier.as_ref().filter(|_| token.scheme == TokenScheme::Bearer)?;
        let details = token.details(request);
        let decision = verifier.try_verify(token.call(&details, request))?;
        Some(self.decide_token(decision, token.resource, request))
    }

    /// The decision about a token.
    pub(super) async fn verify_token(
        &self,
        token: &PresentedToken<'_>,
        request: &AuthRequest<'_>,
    ) -> Option<AuthDecision> {
        let verifier = self.verifier.as_ref()?;
        let details = token.details(request);
        let decision = verifier.verify(token.call(&details, request)).await;
        Some(self.decide_token(decision, token.resource, request))
    }

    fn decide_token(
        &self,
        decision: TokenDecision,
        resource: &ProtectedResource,
        request: &AuthRequest<'_>,
    ) -> AuthDecision {
        let host = request.host();
        let outcome = refused_outcome(&decision);
        if let Some(outcome) = outcome {
            self.attempts.count_token(outcome);
        }
        let challenge = match decision {
            TokenDecision::Granted(principal) => return self.decide(Ok(principal), request),
            TokenDecision::Invalid(_) => self.unauthorized(request, true),
            TokenDecision::InvalidProof(_) => Challenge::invalid_proof(resource, host),
            TokenDecision::UseNonce(nonce) => match HeaderValue::try_from(nonce) {
                Ok(nonce) => Challenge::nonce_required(resource, host, nonce),
                Err(_) => Challenge::invalid_proof(resource, host),
            },
            TokenDecision::Throttled(wait) => Challenge::too_many_attempts(wait),
            TokenDecision::Unavailable(wait) => Challenge::unavailable(wait),
        };
        AuthDecision::Refused(match outcome {
            Some(outcome) => challenge.of(outcome, None),
            None => challenge,
        })
    }
}

/// The word for a refused token. A granted one is counted with what the path requires of its principal.
fn refused_outcome(decision: &TokenDecision) -> Option<&'static str> {
    match decision {
        TokenDecision::Granted(_) => None,
        TokenDecision::Invalid(refusal) | TokenDecision::InvalidProof(refusal) => {
            Some(refusal.word())
        }
        TokenDecision::UseNonce(_) => Some("nonce"),
        TokenDecision::Throttled(_) => Some("throttled"),
        TokenDecision::Unavailable(_) => Some("unavailable"),
    }
}

impl PresentedToken<'_> {
    fn details(&self, request: &AuthRequest<'_>) -> TokenDetails {
        let proof = match self.scheme {
            TokenScheme::Dpop => request.dpop(),
            TokenScheme::Bearer => None,
        };
        TokenDetails { url: self.resource.url(request.host()), proof }
    }

    fn call<'a>(&'a self, details: &'a TokenDetails, request: &AuthRequest<'a>) -> TokenCall<'a> {
        TokenCall {
            token: self.text,
            scheme: self.scheme,
            proof: details.proof.as_ref().and_then(|proof| proof.to_str().ok()),
            method: request.method().as_str(),
            url: &details.url,
            peer: request.peer,
            certificate: request.certificate(),
            resource: self.resource,
        }
    }
}
