//! Who a caller over HTTP is: people with passwords (Basic) and programs with keys (Bearer).
//!
//! [`Authenticator`] looks at the `Authorization` header and nothing else, never at the query. Who is
//! refused learns what to do and not what was wrong: an unknown user costs the same work and gets the
//! same answer as a wrong password. Passwords are stored as argon2id hashes and checked on a few threads
//! of their own; keys are 256 random bits, stored as their SHA-256.

mod challenge;
mod credential_text;
mod denial;
mod error;
mod expiry;
mod file;
mod header;
mod keys;
mod login_throttle;
pub mod password;
mod password_cache;
mod password_pool;
mod principal;
mod secret;
mod users;

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use argon2::password_hash::phc::PasswordHash;
use http::HeaderValue;
use sha2::Digest as _;

pub use challenge::Challenge;
pub use credential_text::CredentialText;
pub use error::AuthError;
pub use expiry::{Expiry, ParseExpiryError};
pub use file::{CredentialKind, read_credential_file};
pub use keys::{BearerKey, NewKey};
pub(crate) use login_throttle::network_prefix;
pub(crate) use principal::LOCAL_PRINCIPAL;
pub use principal::{Principal, Requirement};
pub use secret::Secret;

use challenge::Schemes;
use denial::{Denial, DenialReason};
use header::PresentedCredentials;
use keys::BearerKeys;
use login_throttle::LoginThrottle;
use password_cache::PasswordCache;
use password_pool::PasswordPool;
use users::Users;

/// A SHA-256.
type Digest = [u8; 32];

/// How a password is compared with a hash.
type VerifyPassword = Arc<dyn Fn(&[u8], &PasswordHash) -> bool + Send + Sync>;

/// Whom a server lets in, and where it is written.
#[derive(Clone, Debug, Default)]
pub struct AuthSettings {
    /// The file of users.
    pub users: Option<PathBuf>,
    /// Keys that stand in the configuration.
    pub keys: Vec<BearerKey>,
    /// The file of keys.
    pub keys_file: Option<PathBuf>,
    /// What is asked of everybody.
    pub requirement: Requirement,
}

/// Whether a caller is let in.
#[derive(Clone, Debug, PartialEq)]
pub enum AuthDecision {
    /// Yes, and this is who it is.
    Granted(Principal),
    /// No, and this is the answer.
    Refused(Challenge),
}

/// Says who a caller is; clones are the same one.
#[derive(Clone)]
pub struct Authenticator {
    shared: Arc<AuthenticatorInner>,
}

struct AuthenticatorInner {
    fingerprints: Fingerprints,
    /// What the files said when they were read last.
    credentials: ArcSwap<LoadedCredentials>,
    pool: PasswordPool,
    throttle: Arc<LoginThrottle>,
    verify: VerifyPassword,
}

/// Users and keys as they were read, which are not used yet.
#[derive(Debug)]
pub struct ParsedCredentials(LoadedCredentials);

/// One reading of the files, and what was remembered since.
#[derive(Debug)]
struct LoadedCredentials {
    settings: AuthSettings,
    users: Option<Users>,
    keys: Option<BearerKeys>,
    password_cache: PasswordCache<PasswordCheck>,
}

/// What came of checking a name and a password.
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
    /// When a file cannot be read or a line in it is wrong, and when neither users nor keys are named.
    pub fn new(settings: AuthSettings) -> Result<Self, AuthError> {
        Self::with_parts(settings, PasswordPool::with_defaults(), Arc::new(password::verify))
    }

    fn with_parts(
        settings: AuthSettings,
        pool: PasswordPool,
        verify: VerifyPassword,
    ) -> Result<Self, AuthError> {
        let fingerprints = Fingerprints { key: random() };
        let known = ArcSwap::from_pointee(LoadedCredentials::read(settings, &fingerprints)?);
        let limiter = Arc::default();
        let shared = AuthenticatorInner {
            fingerprints,
            credentials: known,
            pool,
            throttle: limiter,
            verify,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Reads the files again, in place. Passwords that were right are checked anew; who tried too often still
    /// waits.
    ///
    /// # Errors
    /// When a file cannot be read or a line in it is wrong: then everything stays as it was.
    pub fn reload(&self) -> Result<(), AuthError> {
        self.reload_with(self.shared.credentials.load().settings.clone())
    }

    /// Lets in whom these settings say from now on. Passwords that were right are checked anew; who tried too
    /// often still waits.
    ///
    /// # Errors
    /// When a file cannot be read or a line in it is wrong: then everything stays as it was.
    pub fn reload_with(&self, settings: AuthSettings) -> Result<(), AuthError> {
        self.apply(self.read(settings)?);
        Ok(())
    }

    /// Reads the files of these settings and changes nothing.
    ///
    /// # Errors
    /// When a file cannot be read or a line in it is wrong.
    pub fn read(&self, settings: AuthSettings) -> Result<ParsedCredentials, AuthError> {
        LoadedCredentials::read(settings, &self.shared.fingerprints).map(ParsedCredentials)
    }

    /// Lets in whom these credentials name from now on, as [`reload_with`](Self::reload_with) does. They must have been
    /// [read](Self::read) by the same authenticator.
    pub fn apply(&self, credentials: ParsedCredentials) {
        self.shared.credentials.store(Arc::new(credentials.0));
    }

    /// How many users and how many keys are known.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        let known = self.shared.credentials.load();
        (known.users.as_ref().map_or(0, Users::len), known.keys.as_ref().map_or(0, BearerKeys::len))
    }

    /// Says whether the caller with this `Authorization` header, from this address, is let in.
    ///
    /// [`authorization`] takes the header out of a request. A name and a password that were right are not
    /// checked again for a minute.
    pub async fn authenticate(
        &self,
        authorization: Option<&HeaderValue>,
        peer: Option<IpAddr>,
    ) -> AuthDecision {
        if let Some(verdict) = self.try_authenticate(authorization, peer) {
            return verdict;
        }
        let known = self.shared.credentials.load_full();
        let refused =
            |reason| Err(Box::new((Challenge::unauthorized(known.schemes(), false), reason)));
        let found = match (PresentedCredentials::read(authorization), &known.users) {
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
            // The files were read again in between.
            _ => refused(DenialReason::OtherScheme),
        };
        known.decide(found, peer)
    }

    /// The same where nothing has to be computed for long; nothing if there is a password to be checked.
    pub(crate) fn try_authenticate(
        &self,
        authorization: Option<&HeaderValue>,
        peer: Option<IpAddr>,
    ) -> Option<AuthDecision> {
        let known = self.shared.credentials.load();
        let refused = |bearer_given, reason| {
            Err(Box::new((Challenge::unauthorized(known.schemes(), bearer_given), reason)))
        };
        let found = match (PresentedCredentials::read(authorization), &known.users, &known.keys) {
            (PresentedCredentials::Basic { .. }, Some(_), _) => return None,
            (PresentedCredentials::Bearer(key), _, Some(keys)) => match keys.find(key) {
                Ok(principal) => Ok(principal.clone()),
                Err(reason) => match self.record_wrong_key(peer) {
                    Ok(()) => refused(true, reason),
                    Err(challenge) => Err(Box::new((challenge, DenialReason::TooManyAttempts))),
                },
            },
            (PresentedCredentials::Bearer(_), ..) => refused(true, DenialReason::OtherScheme),
            (PresentedCredentials::Basic { .. }, ..) => refused(false, DenialReason::OtherScheme),
            (PresentedCredentials::Nothing, ..) => refused(false, DenialReason::NoCredentials),
        };
        Some(known.decide(found, peer))
    }

    /// A key that is right is never held up, so only wrong ones are counted.
    fn record_wrong_key(&self, peer: Option<IpAddr>) -> Result<(), Challenge> {
        let address = self.shared.fingerprints.of(b"keys", &[&network_prefix(peer)]);
        self.shared
            .throttle
            .record_failure(address, login_throttle::KEYS)
            .map_err(Challenge::too_many_attempts)
    }

    /// Whether an account is held up is asked before what was right a moment ago: otherwise who is held up
    /// could go on guessing, and would see that a guess is right while its owner is at work.
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
        let seat = known.password_cache.join_check(seen.attempt);
        let check = || self.check_password(known, users, password, seen);
        seat.cell.get_or_init(check).await.clone()
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
            (Err(password_pool::PoolBusy), _) => {
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

impl LoadedCredentials {
    fn read(settings: AuthSettings, fingerprints: &Fingerprints) -> Result<Self, AuthError> {
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
        if users.is_none() && keys.is_none() {
            return Err(AuthError::new(
                "neither users nor keys are named, so nobody could come in",
            ));
        }
        if users.as_ref().map_or(0, Users::len) + keys.as_ref().map_or(0, BearerKeys::len) == 0 {
            tracing::warn!("there are no users and no keys, so nobody can come in");
        }
        Ok(Self { settings, users, keys, password_cache: PasswordCache::new() })
    }

    /// What is said to whom was found, or to whom nobody knows.
    fn decide(&self, found: Result<Principal, Denial>, peer: Option<IpAddr>) -> AuthDecision {
        let lacks = |challenge| Box::new((challenge, DenialReason::MissingRole));
        let allowed = found.and_then(|principal| {
            let checked = self.settings.requirement.check(&principal);
            checked.map(|()| principal).map_err(lacks)
        });
        match allowed {
            Ok(principal) => AuthDecision::Granted(principal),
            Err(refusal) => {
                let (challenge, reason) = *refusal;
                // Neither the name nor the key: people type passwords where names belong.
                let (status, reason) = (challenge.status.as_u16(), reason.description());
                let peer = peer.map(tracing::field::display);
                tracing::warn!(status, reason, peer, "a caller was refused");
                AuthDecision::Refused(challenge)
            }
        }
    }

    fn schemes(&self) -> Schemes {
        Schemes { basic: self.users.is_some(), bearer: self.keys.is_some() }
    }
}

/// The fingerprints of one attempt with a password.
struct AttemptFingerprints {
    name: Digest,
    /// The name and where it is tried from.
    account: Digest,
    /// Where it is tried from.
    address: Digest,
    /// The whole header and where it came from.
    attempt: Digest,
}

impl AttemptFingerprints {
    fn new(
        fingerprints: &Fingerprints,
        header: Option<&HeaderValue>,
        name: &str,
        peer: Option<IpAddr>,
    ) -> Self {
        let (network, name) = (network_prefix(peer), name.as_bytes());
        let header = header.map_or(&[][..], HeaderValue::as_bytes);
        Self {
            name: fingerprints.of(b"name", &[name]),
            account: fingerprints.of(b"account", &[&network, name]),
            address: fingerprints.of(b"address", &[&network]),
            attempt: fingerprints.of(b"attempt", &[&network, header]),
        }
    }
}

/// Makes fingerprints that mean nothing outside of this process, so that a table of them, or the time it
/// takes to look into it, tells nothing about what was sent. They never leave the process, which is why a
/// hash of the key and the text is enough.
struct Fingerprints {
    key: Digest,
}

impl Fingerprints {
    fn of(&self, purpose: &[u8], parts: &[&[u8]]) -> Digest {
        let mut hasher = sha2::Sha256::new();
        hasher.update(self.key);
        for part in [&[purpose], parts].concat() {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.finalize().into()
    }
}

fn random() -> Digest {
    let mut bytes = Digest::default();
    // Anything but a panic here would make keys that can be guessed.
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}
