//! Authenticates callers over HTTP: users with passwords (Basic), programs with keys (Bearer), and access tokens.
//!
//! [`Authenticator`] reads only the `Authorization` header, never the query. A refused caller learns what to do, not
//! what was wrong: an unknown user costs the same work and gets the same response as a wrong password. Passwords are
//! stored as argon2id hashes and are verified on a few dedicated threads. Keys are 256 random bits and are stored as
//! their SHA-256.

mod access_tokens;
mod attempt_metrics;
mod attempt_outbox;
pub(crate) mod challenge;
pub(crate) mod credential_files;
mod denial;
mod error;
mod fingerprints;
mod header;
mod loaded_credentials;
mod login_throttle;
pub mod oauth;
mod oauth_settings;
pub(crate) mod password;
mod request;
mod requirement;
pub(crate) mod resource;
pub(crate) mod secret;
mod shared_attempts;
mod single_flight;

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use argon2::password_hash::phc::PasswordHash;
use bytes::Bytes;
use http::HeaderValue;
use serde_json::Value;

pub use crate::principal::{Principal, TokenIdentity, TokenMethod};
pub use crate::scopes::{ExpandedScopes, ScopeDenial, ScopeRule, ScopeRules};
pub use credential_files::keys::BearerKey;
pub use error::AuthError;
pub(crate) use login_throttle::network_prefix;
pub use oauth_settings::OAuthSettings;
pub use request::{AuthRequest, RequestDetails};
pub use requirement::Requirement;
pub(crate) use resource::METADATA_PREFIX;
pub use resource::{DpopMode, ProtectedResource, ResourceSettings};

use crate::state::State;
use crate::telemetry::metrics::Metrics;
use attempt_metrics::AttemptMetrics;
use challenge::Challenge;
use credential_files::keys::BearerKeys;
use credential_files::users::Users;
use denial::DenialReason;
use fingerprints::{AttemptFingerprints, Fingerprints};
use header::PresentedCredentials;
use loaded_credentials::LoadedCredentials;
use login_throttle::LoginThrottle;
use oauth::VerifierParts;
use password::pool::{PasswordPool, PoolBusy};
use secret::Secret;

/// A SHA-256.
type Digest = [u8; 32];

/// Compares a password with a hash.
type VerifyPassword = Arc<dyn Fn(&[u8], &PasswordHash) -> bool + Send + Sync>;

/// Which principals a server admits, and the files that name them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AuthSettings {
    /// The file of users.
    pub users: Option<PathBuf>,
    /// Keys from the configuration.
    pub keys: Vec<BearerKey>,
    /// The file of keys.
    pub keys_file: Option<PathBuf>,
    /// Which credentials are required, at paths that are no [resource](OAuthSettings::resources).
    pub requirement: Requirement,
    /// The access tokens that are accepted.
    pub oauth: OAuthSettings,
}

/// The decision about a caller.
#[derive(Clone, Debug, PartialEq)]
#[doc(hidden)]
pub enum AuthDecision {
    /// The caller is admitted as this principal.
    Granted(Principal),
    /// The caller is refused with this challenge.
    Refused(Challenge),
}

/// Authenticates callers; clones share their state.
#[derive(Clone)]
pub struct Authenticator {
    shared: Arc<AuthenticatorInner>,
}

struct AuthenticatorInner {
    fingerprints: Arc<Fingerprints>,
    /// The contents of the files at the last read.
    credentials: ArcSwap<LoadedCredentials>,
    pool: PasswordPool,
    throttle: Arc<LoginThrottle>,
    is_throttle_shared: AtomicBool,
    verify: VerifyPassword,
    token_parts: Arc<VerifierParts>,
    attempts: AttemptMetrics,
}

/// Users and keys that were read and are not in use yet.
#[derive(Debug)]
#[doc(hidden)]
pub struct ParsedCredentials(LoadedCredentials);

/// The outcome of checking a name and a password.
#[derive(Clone, Debug)]
enum PasswordCheck {
    Right(Principal),
    Wrong,
    Wait(Duration),
    Busy,
}

impl Authenticator {
    /// Reads the files.
    ///
    /// # Errors
    /// When a file cannot be read or a line in it is invalid, and when neither users nor keys are named.
    pub fn new(settings: AuthSettings) -> Result<Self, AuthError> {
        Self::with_parts(settings, PasswordPool::with_defaults(), Arc::new(password::verify))
    }

    fn with_parts(
        settings: AuthSettings,
        pool: PasswordPool,
        verify: VerifyPassword,
    ) -> Result<Self, AuthError> {
        let (fingerprints, token_parts) = (Arc::new(Fingerprints::new()), Arc::default());
        let attempts = AttemptMetrics::default();
        let known =
            LoadedCredentials::read(settings, &fingerprints, &token_parts, &attempts, None)?;
        let limiter = Arc::default();
        let shared = AuthenticatorInner {
            fingerprints,
            credentials: ArcSwap::from_pointee(known),
            pool,
            throttle: limiter,
            is_throttle_shared: AtomicBool::new(false),
            verify,
            token_parts,
            attempts,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Reloads the files in place. Cached passwords are verified again; throttled callers stay throttled.
    ///
    /// # Errors
    /// When a file cannot be read or a line in it is invalid; then nothing changes.
    pub fn reload(&self) -> Result<(), AuthError> {
        self.reload_with(self.shared.credentials.load().settings.clone())
    }

    /// Reloads with these settings. Cached passwords are verified again; throttled callers stay throttled.
    ///
    /// # Errors
    /// When a file cannot be read or a line in it is invalid; then nothing changes.
    pub fn reload_with(&self, settings: AuthSettings) -> Result<(), AuthError> {
        self.apply(self.read(settings)?);
        Ok(())
    }

    /// Reads the files of these settings and changes nothing.
    ///
    /// # Errors
    /// When a file cannot be read or a line in it is invalid.
    #[doc(hidden)]
    pub fn read(&self, settings: AuthSettings) -> Result<ParsedCredentials, AuthError> {
        let known = self.shared.credentials.load();
        let (fingerprints, parts) = (&self.shared.fingerprints, &self.shared.token_parts);
        let attempts = &self.shared.attempts;
        LoadedCredentials::read(settings, fingerprints, parts, attempts, known.verifier.as_ref())
            .map(ParsedCredentials)
    }

    /// Puts these credentials into force, as [`reload_with`](Self::reload_with) does. The same authenticator must have
    /// [read](Self::read) them.
    #[doc(hidden)]
    pub fn apply(&self, credentials: ParsedCredentials) {
        self.shared.credentials.store(Arc::new(credentials.0));
    }

    /// The number of known users and of known keys.
    #[must_use]
    #[doc(hidden)]
    pub fn count(&self) -> (usize, usize) {
        let known = self.shared.credentials.load();
        (known.users.as_ref().map_or(0, Users::len), known.keys.as_ref().map_or(0, BearerKeys::len))
    }

    /// The resource with this number.
    #[doc(hidden)]
    pub fn resource(&self, number: usize) -> Option<Arc<ProtectedResource>> {
        self.shared.credentials.load().resources.get(number).cloned()
    }

    /// The metadata of the resource at this path, or of the first one without a path (RFC 9728, 3). `host` is the
    /// checked host of the request.
    pub(crate) fn resource_metadata(&self, path: &str, host: Option<&str>) -> Option<Value> {
        let known = self.shared.credentials.load();
        let is_meant =
            |resource: &&Arc<ProtectedResource>| path.is_empty() || resource.path() == path;
        let resource = known.resources.iter().find(is_meant)?;
        resource.accepts_tokens().then(|| resource.metadata(host))
    }

    /// The metadata of the only issuer, as it was fetched, if it is served under the server's own address.
    pub(crate) async fn issuer_metadata(&self) -> Option<Bytes> {
        let known = self.shared.credentials.load_full();
        let verifier = known.verifier.as_ref().filter(|_| known.settings.oauth.legacy_metadata)?;
        verifier.issuer_metadata().await
    }

    /// Counts the requests whose credentials are checked from now on. The first call counts.
    #[doc(hidden)]
    pub fn set_metrics(&self, metrics: &Arc<Metrics>) {
        self.shared.attempts.set(metrics);
    }

    /// Keeps used proofs of keys in this state, which other processes may share, and counts failed logins together with
    /// them. The first call counts. Must be called within a tokio runtime.
    #[doc(hidden)]
    pub fn set_state(&self, state: &State) {
        self.shared.token_parts.set_state(state);
        if state.is_shared() && !self.shared.is_throttle_shared.swap(true, Ordering::Relaxed) {
            shared_attempts::start(&self.shared.throttle, &self.shared.fingerprints, state);
        }
    }

    /// Decides whether the caller with this `Authorization` header, from this address, is admitted.
    #[doc(hidden)]
    pub async fn authenticate(
        &self,
        authorization: Option<&HeaderValue>,
        peer: Option<IpAddr>,
    ) -> AuthDecision {
        self.authenticate_request(&AuthRequest::new(authorization, peer)).await
    }

    /// Decides whether the caller of this request is admitted. A name and a password that were correct are not verified
    /// again for a minute.
    #[doc(hidden)]
    pub async fn authenticate_request(&self, request: &AuthRequest<'_>) -> AuthDecision {
        if let Some(decision) = self.try_authenticate(request) {
            return decision;
        }
        let AuthRequest { authorization, peer, .. } = *request;
        let known = self.shared.credentials.load_full();
        let refused = |reason| Err(Box::new((known.unauthorized(request, false), reason)));
        let presented = PresentedCredentials::read(authorization);
        if let Some(token) = known.access_token(&presented, request)
            && let Some(decision) = known.verify_token(&token, request).await
        {
            return decision;
        }
        let result = match (presented, &known.users) {
            (PresentedCredentials::Basic { name, password }, Some(users)) => {
                let seen =
                    AttemptFingerprints::new(&self.shared.fingerprints, authorization, &name, peer);
                match self.authenticate_basic(&known, users, password, &seen).await {
                    PasswordCheck::Right(principal) => Ok(principal),
                    PasswordCheck::Wrong => refused(DenialReason::WrongPassword),
                    PasswordCheck::Wait(wait) => Err(Box::new((
                        Challenge::too_many_attempts(wait),
                        DenialReason::TooManyAttempts,
                    ))),
                    PasswordCheck::Busy => Err(Box::new((Challenge::busy(), DenialReason::Busy))),
                }
            }
            // The files were reloaded in between.
            _ => refused(DenialReason::OtherScheme),
        };
        known.decide(result, request)
    }

    /// The same without expensive work; `None` if a password must be verified.
    pub(crate) fn try_authenticate(&self, request: &AuthRequest<'_>) -> Option<AuthDecision> {
        let AuthRequest { authorization, peer, .. } = *request;
        let known = self.shared.credentials.load();
        let refused = |bearer_given, reason| {
            Err(Box::new((known.unauthorized(request, bearer_given), reason)))
        };
        let presented = PresentedCredentials::read(authorization);
        if let Some(token) = known.access_token(&presented, request) {
            return known.try_decide_token(&token, request);
        }
        let result = match (presented, &known.users, &known.keys) {
            (PresentedCredentials::Basic { .. }, Some(_), _) => return None,
            (PresentedCredentials::Bearer(key), _, Some(keys)) => match keys.find(key) {
                Ok(principal) => Ok(principal.clone()),
                Err(reason) => match self.record_wrong_key(peer) {
                    Ok(()) => refused(true, reason),
                    Err(challenge) => Err(Box::new((*challenge, DenialReason::TooManyAttempts))),
                },
            },
            (PresentedCredentials::Bearer(_) | PresentedCredentials::Dpop(_), ..) => {
                refused(true, DenialReason::OtherScheme)
            }
            (PresentedCredentials::Basic { .. }, ..) => refused(false, DenialReason::OtherScheme),
            (PresentedCredentials::Nothing, ..) => refused(false, DenialReason::NoCredentials),
        };
        Some(known.decide(result, request))
    }

    /// Only wrong keys are counted, because a correct key is never throttled.
    fn record_wrong_key(&self, peer: Option<IpAddr>) -> Result<(), Box<Challenge>> {
        let address = self.shared.fingerprints.of_subject(b"keys", &[&network_prefix(peer)]);
        self.shared
            .throttle
            .record_wrong_key(address)
            .map_err(|wait| Box::new(Challenge::too_many_attempts(wait)))
    }

    /// Checks the throttle before the cache of verified passwords. Otherwise a throttled caller could keep guessing,
    /// and would see that a guess is correct while the real user is active.
    async fn authenticate_basic(
        &self,
        known: &LoadedCredentials,
        users: &Users,
        password: Secret,
        seen: &AttemptFingerprints,
    ) -> PasswordCheck {
        if let Some(wait) = self.shared.throttle.wait(&seen.account) {
            return PasswordCheck::Wait(wait);
        }
        if let Some(principal) = known.password_cache.find(&seen.attempt) {
            return PasswordCheck::Right(principal);
        }
        let check = || self.check_password(known, users, password, seen);
        known.password_checks.run(seen.attempt, check).await
    }

    async fn check_password(
        &self,
        known: &LoadedCredentials,
        users: &Users,
        password: Secret,
        seen: &AttemptFingerprints,
    ) -> PasswordCheck {
        let attempt = match self.shared.throttle.begin(seen.account, seen.address) {
            Ok(attempt) => attempt,
            Err(wait) => return PasswordCheck::Wait(wait),
        };
        let found = users.find(&seen.name);
        let (verify, hash) = (Arc::clone(&self.shared.verify), found.hash);
        let fits = self.shared.pool.run(move || verify(password.expose(), &hash)).await;
        match (fits, found.principal) {
            (Err(PoolBusy), _) => {
                attempt.cancel();
                PasswordCheck::Busy
            }
            (Ok(true), Some(principal)) => {
                attempt.succeed();
                known.password_cache.insert(seen.attempt, &principal);
                PasswordCheck::Right(principal)
            }
            (Ok(_), _) => {
                attempt.fail();
                PasswordCheck::Wrong
            }
        }
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (users, keys) = self.count();
        f.debug_struct("Authenticator")
            .field("users", &users)
            .field("keys", &keys)
            .finish_non_exhaustive()
    }
}

fn random() -> Digest {
    let mut bytes = Digest::default();
    // Any fallback instead of a panic would create guessable keys.
    getrandom::fill(&mut bytes).expect("the system provides random bytes");
    bytes
}
