//! Who a caller over HTTP is: people with passwords (Basic) and programs with keys (Bearer).
//!
//! [`Authenticator`] looks at the `Authorization` header and nothing else, never at the query. Who is
//! refused learns what to do and not what was wrong: an unknown user costs the same work and gets the
//! same answer as a wrong password. Passwords are stored as argon2id hashes and checked on a few threads
//! of their own; keys are 256 random bits, stored as their SHA-256.

mod challenge;
mod edit;
mod error;
mod expiry;
mod file;
mod header;
mod keys;
mod limiter;
pub mod password;
mod pool;
mod principal;
mod reason;
mod recent;
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
pub use edit::CredentialText;
pub use error::AuthError;
pub use expiry::{Expiry, NotAMoment};
pub use file::{Kind, text_of};
pub use keys::{Key, NewKey};
pub(crate) use limiter::network;
pub(crate) use principal::LOCAL;
pub use principal::{Principal, Requirement};
pub use secret::Secret;

use challenge::Schemes;
use header::Offer;
use keys::Keys;
use limiter::Limiter;
use pool::Pool;
use reason::{Reason, Refusal};
use recent::Recent;
use users::Users;

/// A SHA-256.
type Digest = [u8; 32];

/// How a password is compared with a hash.
type Verify = Arc<dyn Fn(&[u8], &PasswordHash) -> bool + Send + Sync>;

/// Whom a server lets in, and where it is written.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The file of users.
    pub users: Option<PathBuf>,
    /// Keys that stand in the configuration.
    pub keys: Vec<Key>,
    /// The file of keys.
    pub keys_file: Option<PathBuf>,
    /// What is asked of everybody.
    pub requirement: Requirement,
}

/// Whether a caller is let in.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Yes, and this is who it is.
    Granted(Principal),
    /// No, and this is the answer.
    Refused(Challenge),
}

/// Says who a caller is; clones are the same one.
#[derive(Clone)]
pub struct Authenticator {
    shared: Arc<Shared>,
}

struct Shared {
    fingerprints: Fingerprints,
    /// What the files said when they were read last.
    known: ArcSwap<Known>,
    pool: Pool,
    limiter: Arc<Limiter>,
    verify: Verify,
}

/// Users and keys as they were read, which are not used yet.
#[derive(Debug)]
pub struct Credentials(Known);

/// One reading of the files, and what was remembered since.
#[derive(Debug)]
struct Known {
    settings: Settings,
    users: Option<Users>,
    keys: Option<Keys>,
    recent: Recent<Checked>,
}

/// What came of checking a name and a password.
#[derive(Clone, Debug)]
enum Checked {
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
    pub fn new(settings: Settings) -> Result<Self, AuthError> {
        Self::with(settings, Pool::usual(), Arc::new(password::verify))
    }

    fn with(settings: Settings, pool: Pool, verify: Verify) -> Result<Self, AuthError> {
        let fingerprints = Fingerprints { key: random() };
        let known = ArcSwap::from_pointee(Known::read(settings, &fingerprints)?);
        let limiter = Arc::default();
        let shared = Shared { fingerprints, known, pool, limiter, verify };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Reads the files again, in place. Passwords that were right are checked anew; who tried too often still
    /// waits.
    ///
    /// # Errors
    /// When a file cannot be read or a line in it is wrong: then everything stays as it was.
    pub fn reload(&self) -> Result<(), AuthError> {
        self.renew(self.shared.known.load().settings.clone())
    }

    /// Lets in whom these settings say from now on. Passwords that were right are checked anew; who tried too
    /// often still waits.
    ///
    /// # Errors
    /// When a file cannot be read or a line in it is wrong: then everything stays as it was.
    pub fn renew(&self, settings: Settings) -> Result<(), AuthError> {
        self.apply(self.read(settings)?);
        Ok(())
    }

    /// Reads the files of these settings and changes nothing.
    ///
    /// # Errors
    /// When a file cannot be read or a line in it is wrong.
    pub fn read(&self, settings: Settings) -> Result<Credentials, AuthError> {
        Known::read(settings, &self.shared.fingerprints).map(Credentials)
    }

    /// Lets in whom these credentials name from now on, as [`renew`](Self::renew) does. They must have been
    /// [read](Self::read) by the same authenticator.
    pub fn apply(&self, credentials: Credentials) {
        self.shared.known.store(Arc::new(credentials.0));
    }

    /// How many users and how many keys are known.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        let known = self.shared.known.load();
        (known.users.as_ref().map_or(0, Users::len), known.keys.as_ref().map_or(0, Keys::len))
    }

    /// Says whether the caller with this `Authorization` header, from this address, is let in.
    ///
    /// [`authorization`] takes the header out of a request. A name and a password that were right are not
    /// checked again for a minute.
    pub async fn authenticate(
        &self,
        authorization: Option<&HeaderValue>,
        peer: Option<IpAddr>,
    ) -> Verdict {
        if let Some(verdict) = self.authenticate_now(authorization, peer) {
            return verdict;
        }
        let known = self.shared.known.load_full();
        let refused =
            |reason| Err(Box::new((Challenge::unauthorized(known.schemes(), false), reason)));
        let found = match (Offer::read(authorization), &known.users) {
            (Offer::Basic { name, password }, Some(users)) => {
                let seen = Seen::new(&self.shared.fingerprints, authorization, &name, peer);
                match self.basic(&known, users, password, &seen).await {
                    Checked::Right(principal) => Ok(principal),
                    Checked::Wrong => refused(Reason::WrongPassword),
                    Checked::Wait(wait) => {
                        Err(Box::new((Challenge::too_many(wait), Reason::TooManyAttempts)))
                    }
                    Checked::Busy => Err(Box::new((Challenge::busy(), Reason::Busy))),
                }
            }
            // The files were read again in between.
            _ => refused(Reason::OtherScheme),
        };
        known.verdict(found, peer)
    }

    /// The same where nothing has to be computed for long; nothing if there is a password to be checked.
    pub(crate) fn authenticate_now(
        &self,
        authorization: Option<&HeaderValue>,
        peer: Option<IpAddr>,
    ) -> Option<Verdict> {
        let known = self.shared.known.load();
        let refused = |bearer_given, reason| {
            Err(Box::new((Challenge::unauthorized(known.schemes(), bearer_given), reason)))
        };
        let found = match (Offer::read(authorization), &known.users, &known.keys) {
            (Offer::Basic { .. }, Some(_), _) => return None,
            (Offer::Bearer(key), _, Some(keys)) => match keys.find(key) {
                Ok(principal) => Ok(principal.clone()),
                Err(reason) => match self.wrong_key(peer) {
                    Ok(()) => refused(true, reason),
                    Err(challenge) => Err(Box::new((challenge, Reason::TooManyAttempts))),
                },
            },
            (Offer::Bearer(_), ..) => refused(true, Reason::OtherScheme),
            (Offer::Basic { .. }, ..) => refused(false, Reason::OtherScheme),
            (Offer::Nothing, ..) => refused(false, Reason::NoCredentials),
        };
        Some(known.verdict(found, peer))
    }

    /// A key that is right is never held up, so only wrong ones are counted.
    fn wrong_key(&self, peer: Option<IpAddr>) -> Result<(), Challenge> {
        let address = self.shared.fingerprints.of(b"keys", &[&network(peer)]);
        self.shared.limiter.strike(address, limiter::KEYS).map_err(Challenge::too_many)
    }

    /// Whether an account is held up is asked before what was right a moment ago: otherwise who is held up
    /// could go on guessing, and would see that a guess is right while its owner is at work.
    async fn basic(&self, known: &Known, users: &Users, password: Secret, seen: &Seen) -> Checked {
        if let Some(wait) = self.shared.limiter.wait(&seen.account) {
            return Checked::Wait(wait);
        }
        if let Some(principal) = known.recent.find(&seen.attempt) {
            return Checked::Right(principal);
        }
        let seat = known.recent.join(seen.attempt);
        let check = || self.check(known, users, password, seen);
        seat.cell.get_or_init(check).await.clone()
    }

    async fn check(&self, known: &Known, users: &Users, password: Secret, seen: &Seen) -> Checked {
        let attempt = match self.shared.limiter.begin(seen.account, seen.address) {
            Ok(attempt) => attempt,
            Err(wait) => return Checked::Wait(wait),
        };
        let found = users.find(&seen.name);
        let (verify, hash) = (Arc::clone(&self.shared.verify), found.hash);
        let fits = self.shared.pool.run(move || verify(password.expose(), &hash)).await;
        match (fits, found.principal) {
            (Err(pool::Busy), _) => {
                attempt.withdrawn();
                Checked::Busy
            }
            (Ok(true), Some(principal)) => {
                attempt.succeeded();
                known.recent.keep(seen.attempt, &principal);
                Checked::Right(principal)
            }
            (Ok(_), _) => {
                attempt.failed();
                Checked::Wrong
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

impl Known {
    fn read(settings: Settings, fingerprints: &Fingerprints) -> Result<Self, AuthError> {
        let users = match &settings.users {
            Some(path) => Some(Users::new(file::read(path, Kind::Users)?, fingerprints)),
            None => None,
        };
        let keys = match &settings.keys_file {
            Some(path) => {
                let entries = file::read(path, Kind::Keys)?;
                Some(Keys::new(&settings.keys, entries).map_err(|error| error.within(path))?)
            }
            None if settings.keys.is_empty() => None,
            None => Some(Keys::new(&settings.keys, Vec::new())?),
        };
        if users.is_none() && keys.is_none() {
            return Err(AuthError::new(
                "neither users nor keys are named, so nobody could come in",
            ));
        }
        if users.as_ref().map_or(0, Users::len) + keys.as_ref().map_or(0, Keys::len) == 0 {
            tracing::warn!("there are no users and no keys, so nobody can come in");
        }
        Ok(Self { settings, users, keys, recent: Recent::new() })
    }

    /// What is said to whom was found, or to whom nobody knows.
    fn verdict(&self, found: Result<Principal, Refusal>, peer: Option<IpAddr>) -> Verdict {
        let lacks = |challenge| Box::new((challenge, Reason::MissingRole));
        let allowed = found.and_then(|principal| {
            let checked = self.settings.requirement.check(&principal);
            checked.map(|()| principal).map_err(lacks)
        });
        match allowed {
            Ok(principal) => Verdict::Granted(principal),
            Err(refusal) => {
                let (challenge, reason) = *refusal;
                // Neither the name nor the key: people type passwords where names belong.
                let (status, reason) = (challenge.status.as_u16(), reason.words());
                let peer = peer.map(tracing::field::display);
                tracing::warn!(status, reason, peer, "a caller was refused");
                Verdict::Refused(challenge)
            }
        }
    }

    fn schemes(&self) -> Schemes {
        Schemes { basic: self.users.is_some(), bearer: self.keys.is_some() }
    }
}

/// The fingerprints of one attempt with a password.
struct Seen {
    name: Digest,
    /// The name and where it is tried from.
    account: Digest,
    /// Where it is tried from.
    address: Digest,
    /// The whole header and where it came from.
    attempt: Digest,
}

impl Seen {
    fn new(
        fingerprints: &Fingerprints,
        header: Option<&HeaderValue>,
        name: &str,
        peer: Option<IpAddr>,
    ) -> Self {
        let (network, name) = (network(peer), name.as_bytes());
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
