//! A request to the API, after its checks.

use std::net::IpAddr;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::access::Caller;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::query::Query;

/// A request to the API.
pub(crate) struct ApiRequest {
    /// Who sends it. `None` on routes that need no credential.
    pub(crate) caller: Option<Caller>,
    /// The values of the placeholders in the path.
    pub(crate) names: Vec<String>,
    /// The query.
    pub(crate) query: Query,
    /// The body.
    pub(crate) body: Bytes,
    /// Whether the client accepts an event stream.
    pub(crate) accepts_events: bool,
    /// Whether the client accepts lines of JSON.
    pub(crate) accepts_lines: bool,
    /// The header `If-Match`.
    pub(crate) if_match: Option<String>,
    /// The address of the client.
    pub(crate) peer: Option<IpAddr>,
}

impl ApiRequest {
    /// A placeholder of the path.
    pub(crate) fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("", String::as_str)
    }

    /// The caller.
    pub(crate) fn caller(&self) -> Result<&Caller, Problem> {
        let missing = || Problem::new(ProblemCode::Unauthenticated, "This needs a credential");
        self.caller.as_ref().ok_or_else(missing)
    }

    /// The body as this type.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Problem::new(ProblemCode::InvalidBody, "The body is not what this route takes")
                .detail(error.to_string())
        })
    }
}
