//! Credentials for a server that change over time: fetched before the first request, and again when the server refuses
//! them.

mod command;
mod file;
mod token;
mod token_cache;

pub use command::TokenCommand;
pub use file::TokenFile;
pub(super) use token_cache::{FETCH_TIMEOUT, TokenCache};

use std::fmt;

use creole_proto::fault::Fault;
use http::HeaderValue;

use crate::chain::BoxFuture;

/// The source of a server's authorization. The client caches the fetched value and fetches again only when the server
/// refused it (status 401): once for all requests that were refused at the same time.
pub trait Credentials: Send + Sync {
    /// Returns the authorization. If `refused` is given, the server no longer accepts it, and another is needed; a
    /// source that has no other returns the same again. The future may take ten seconds and is then dropped.
    fn fetch(
        &self,
        refused: Option<Authorization>,
    ) -> BoxFuture<'static, Result<Authorization, Fault>>;
}

/// The value of an `Authorization` header; its `Debug` output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Authorization(HeaderValue);

impl Authorization {
    /// A bearer token (RFC 6750, section 2.1); `None` if a header cannot carry it.
    pub fn bearer(token: &str) -> Option<Self> {
        Self::new(&format!("Bearer {token}"))
    }

    /// Any value; `None` if a header cannot carry it.
    pub fn new(value: &str) -> Option<Self> {
        let is_plain = value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
        let mut value = HeaderValue::from_str(value).ok().filter(|_| is_plain)?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    pub(super) fn header(&self) -> &HeaderValue {
        &self.0
    }

    /// The part after the name of the scheme.
    fn secret(&self) -> &str {
        let value = self.0.to_str().unwrap_or_default();
        value.split_once(' ').map_or(value, |(_, secret)| secret)
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Authorization(…)")
    }
}
