//! Credentials for a server that change over time: fetched before the first request, and again when the server refuses
//! them.

mod command;
mod file;
mod token;
mod token_cache;

pub use command::TokenCommand;
pub use file::TokenFile;
pub(super) use token_cache::TokenCache;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use creole_oauth::crypto::dpop::DpopKey;
use creole_proto::fault::Fault;
use http::HeaderValue;
use tokio::time::Instant;

use crate::chain::BoxFuture;

/// How long a fetch may take, unless the source says otherwise.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause after a fetch that failed or returned a refused value: a source that is permanently wrong must not be
/// called with every request.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// The source of a server's authorization. The client caches the fetched value and fetches again only when the server
/// refused it: once for all requests that were refused at the same time.
pub trait Credentials: Send + Sync {
    /// Returns the authorization. Without a refusal no request was sent yet; `None` sends it without an authorization.
    /// After a refusal another authorization is needed. A source that has no other returns the same again or `None`.
    fn fetch(
        &self,
        refusal: Option<Refusal>,
    ) -> BoxFuture<'static, Result<Option<Authorization>, Fault>>;

    /// How long a fetch may take. Its future is then dropped.
    fn timeout(&self) -> Duration {
        FETCH_TIMEOUT
    }

    /// Whether the source itself limits how often it is asked after refusals. Otherwise nothing is fetched for some
    /// seconds after a refusal.
    fn limits_itself(&self) -> bool {
        false
    }

    /// Whether a fetch may wait for a person. The first request to a server is then sent before a connection is opened,
    /// because a person may take longer than a handshake.
    fn asks_person(&self) -> bool {
        false
    }

    /// Ends when requests must not wait for the running fetch any longer, with their fault. The fetch goes on. By
    /// default requests wait until it ends.
    fn until_released(&self) -> BoxFuture<'static, Fault> {
        Box::pin(std::future::pending())
    }

    /// Whether a fetch may succeed now although another one has just failed. Otherwise nothing is fetched for some seconds
    /// after a failure.
    fn can_retry_now(&self) -> bool {
        false
    }

    /// Whether the source can get a further scope, for which a server asks with status 403.
    fn can_add_scopes(&self) -> bool {
        false
    }

    /// The extension of the protocol that the source uses. The client's capabilities declare it.
    fn extension(&self) -> Option<&'static str> {
        None
    }
}

/// A request that the server refused.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Refusal {
    /// The authorization that the request had.
    pub authorization: Option<Authorization>,
    /// Whether the server asks for further scopes instead of another login.
    pub needs_scopes: bool,
    /// The values of the `WWW-Authenticate` headers.
    pub challenges: Vec<String>,
}

/// The authorization of a request; its `Debug` output hides it.
#[derive(Clone)]
pub struct Authorization {
    header: HeaderValue,
    /// The key that the token is bound to.
    dpop: Option<Arc<DpopKey>>,
    /// When it is fetched anew, before it expires.
    renewal: Option<Instant>,
}

impl Authorization {
    /// A bearer token (RFC 6750, section 2.1); `None` if a header cannot carry it.
    pub fn bearer(token: &str) -> Option<Self> {
        Self::new(&format!("Bearer {token}"))
    }

    /// Any value; `None` if a header cannot carry it.
    pub fn new(value: &str) -> Option<Self> {
        let is_plain = value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
        let mut header = HeaderValue::from_str(value).ok().filter(|_| is_plain)?;
        header.set_sensitive(true);
        Some(Self { header, dpop: None, renewal: None })
    }

    /// A token that is bound to a key (RFC 9449, section 7.1); `None` if a header cannot carry it.
    pub(crate) fn dpop(token: &str, key: Arc<DpopKey>) -> Option<Self> {
        let plain = Self::new(&format!("DPoP {token}"))?;
        Some(Self { dpop: Some(key), ..plain })
    }

    /// The same authorization, which is fetched anew at this time.
    pub(super) fn renewed_at(self, at: Instant) -> Self {
        Self { renewal: Some(at), ..self }
    }

    /// Whether it must be fetched anew before the next request.
    fn is_due(&self) -> bool {
        self.renewal.is_some_and(|at| at <= Instant::now())
    }

    pub(super) fn header(&self) -> &HeaderValue {
        &self.header
    }

    /// The key that the token is bound to.
    pub(super) fn dpop_key(&self) -> Option<&DpopKey> {
        self.dpop.as_deref()
    }

    /// The part after the name of the scheme.
    pub(crate) fn secret(&self) -> &str {
        let value = self.header.to_str().unwrap_or_default();
        value.split_once(' ').map_or(value, |(_, secret)| secret)
    }
}

impl PartialEq for Authorization {
    fn eq(&self, other: &Self) -> bool {
        self.header == other.header
    }
}

impl Eq for Authorization {}

impl fmt::Debug for Authorization {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Authorization(…)")
    }
}
