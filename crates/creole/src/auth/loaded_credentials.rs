//! The users, keys and issuers of an authenticator, from one read of their files.

use std::sync::Arc;

use crate::auth::attempt_metrics::AttemptMetrics;
use crate::auth::challenge::{Challenge, Schemes};
use crate::auth::credential_files::file::{self, CredentialKind};
use crate::auth::credential_files::keys::BearerKeys;
use crate::auth::credential_files::users::Users;
use crate::auth::denial::{Denial, DenialReason};
use crate::auth::fingerprints::Fingerprints;
use crate::auth::oauth::{TokenVerifier, VerifierParts};
use crate::auth::password::cache::PasswordCache;
use crate::auth::single_flight::SingleFlight;
use crate::auth::{
    AuthDecision, AuthError, AuthRequest, AuthSettings, PasswordCheck, Principal,
    ProtectedResource, ResourceSettings,
};

/// The contents of the files from one read, with the passwords verified since.
#[derive(Debug)]
pub(super) struct LoadedCredentials {
    pub(super) settings: AuthSettings,
    pub(super) users: Option<Users>,
    pub(super) keys: Option<BearerKeys>,
    /// The paths that access tokens are for.
    pub(super) resources: Vec<Arc<ProtectedResource>>,
    /// Decides about access tokens, if there are issuers.
    pub(super) verifier: Option<TokenVerifier>,
    pub(super) password_cache: PasswordCache,
    /// Concurrent attempts with the same header share one verification.
    pub(super) password_checks: SingleFlight<PasswordCheck>,
    pub(super) attempts: AttemptMetrics,
}

impl LoadedCredentials {
    /// Reads the files of these settings.
    pub(super) fn read(
        settings: AuthSettings,
        fingerprints: &Fingerprints,
        token_parts: &Arc<VerifierParts>,
        attempts: &AttemptMetrics,
        earlier: Option<&TokenVerifier>,
    ) -> Result<Self, AuthError> {
        let users = match &settings.users {
            Some(path) => {
                Some(Users::new(file::read_entries(path, CredentialKind::Users)?, fingerprints))
            }
            None => None,
        };
        let keys = match &settings.keys_file {
            Some(path) => {
                let entries = file::read_entries(path, CredentialKind::Keys)?;
                Some(
                    BearerKeys::new(&settings.keys, entries)
                        .map_err(|error| error.in_file(path))?,
                )
            }
            None if settings.keys.is_empty() => None,
            None => Some(BearerKeys::new(&settings.keys, Vec::new())?),
        };
        let scopes = Arc::new(settings.oauth.scopes.clone());
        let resource =
            |of: &ResourceSettings| Arc::new(ProtectedResource::new(of.clone(), scopes.clone()));
        let resources: Vec<_> = settings.oauth.resources.iter().map(resource).collect();
        let takes_tokens = resources.iter().any(|resource| resource.accepts_tokens());
        if users.is_none() && keys.is_none() && !takes_tokens {
            return Err(AuthError::new(
                "neither users nor keys are configured, so every request would be refused",
            ));
        }
        let count = users.as_ref().map_or(0, Users::len) + keys.as_ref().map_or(0, BearerKeys::len);
        if count == 0 && !takes_tokens {
            tracing::warn!("there are no users and no keys, so every request is refused");
        }
        let verifier = takes_tokens.then(|| {
            let (issuers, claims) = (settings.oauth.issuers.clone(), &settings.oauth.kept_claims);
            TokenVerifier::new(issuers, earlier, Arc::clone(token_parts))
                .keep_claims(claims.clone())
        });
        Ok(Self {
            settings,
            users,
            keys,
            resources,
            verifier,
            password_cache: PasswordCache::new(),
            password_checks: SingleFlight::new(),
            attempts: attempts.clone(),
        })
    }

    /// Turns the principal or the denial into the decision, and logs a refusal.
    pub(super) fn decide(
        &self,
        result: Result<Principal, Denial>,
        request: &AuthRequest<'_>,
    ) -> AuthDecision {
        let allowed = result.and_then(|principal| match self.check(&principal, request) {
            Ok(()) => Ok(principal),
            Err(denial) => {
                let (challenge, reason) = *denial;
                let principal = Some(principal.id());
                Err(Box::new((challenge.of(reason.description(), principal), reason)))
            }
        });
        let counted = allowed.as_ref().map_err(|denial| denial.1);
        self.attempts.count(request.authorization, counted);
        match allowed {
            Ok(principal) => AuthDecision::Granted(principal),
            Err(refusal) => {
                let (challenge, reason) = *refusal;
                // Neither the name nor the key is logged: users type passwords into name fields.
                let (status, reason) = (challenge.status.as_u16(), reason.description());
                let peer = request.peer.map(tracing::field::display);
                tracing::warn!(status, reason, peer, "authentication failed");
                AuthDecision::Refused(match challenge.refused {
                    Some(_) => challenge,
                    None => challenge.of(reason, None),
                })
            }
        }
    }

    /// Checks what the path requires of every principal.
    fn check(&self, principal: &Principal, request: &AuthRequest<'_>) -> Result<(), Denial> {
        let resource = self.resources.get(request.resource);
        let lacks_role =
            |challenge: Box<Challenge>| Box::new((*challenge, DenialReason::MissingRole));
        let requirement = resource.map_or(&self.settings.requirement, |it| it.requirement());
        requirement.check(principal).map_err(lacks_role)?;
        let Some((resource, token)) = resource.zip(principal.token()) else { return Ok(()) };
        if resource.required_scopes().iter().all(|scope| principal.has_scope(scope)) {
            return Ok(());
        }
        // A client of any revision keeps its scopes with these: the revision is not known before the body is read.
        let scopes = resource.challenge_scopes(Some(&token.scopes), &[]);
        let challenge = Challenge::insufficient_scope(resource, request.host(), &scopes);
        Err(Box::new((challenge, DenialReason::MissingScope)))
    }

    /// The challenge of a caller whose credentials belong to no principal. `bearer_given`: they were a bearer token.
    pub(super) fn unauthorized(&self, request: &AuthRequest<'_>, bearer_given: bool) -> Challenge {
        match self.resources.get(request.resource).filter(|resource| resource.accepts_tokens()) {
            Some(resource) => {
                let host = request.host();
                Challenge::unauthorized_at(resource, host, self.schemes(), bearer_given)
            }
            None => Challenge::unauthorized(self.schemes(), bearer_given),
        }
    }

    fn schemes(&self) -> Schemes {
        Schemes { basic: self.users.is_some(), bearer: self.keys.is_some() }
    }
}
