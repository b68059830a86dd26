//! What a server is shown to be let in, where that changes: it is fetched before the first request, and anew when the
//! server refuses it.

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

/// Where the authorization for a server comes from. Whoever sends requests keeps what was fetched and asks again only
/// when the server refused it (status 401): for all requests that were refused at once, once.
pub trait Credentials: Send + Sync {
    /// What to show. If there is something `refused`, the server did not want it any more, and something else is needed;
    /// whoever has nothing else gives the same again. May take ten seconds and is dropped then.
    fn fetch(
        &self,
        refused: Option<Authorization>,
    ) -> BoxFuture<'static, Result<Authorization, Fault>>;
}

/// The value of a header `Authorization`, which nothing shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Authorization(HeaderValue);

impl Authorization {
    /// That of whoever bears a token (RFC 6750, section 2.1); nothing if a header cannot carry it.
    pub fn bearer(token: &str) -> Option<Self> {
        Self::new(&format!("Bearer {token}"))
    }

    /// That with this value; nothing if a header cannot carry it.
    pub fn new(value: &str) -> Option<Self> {
        let is_plain = value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
        let mut value = HeaderValue::from_str(value).ok().filter(|_| is_plain)?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    pub(super) fn header(&self) -> &HeaderValue {
        &self.0
    }

    /// What follows the name of the scheme.
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
