//! Events that readers of records hear of besides calls.

use std::net::IpAddr;

use creole_proto::revision::Rules;

use crate::principal::Principal;

/// A request to the endpoint of clients that was refused before a message was read from it.
#[derive(Clone, Copy, Debug)]
pub struct RefusedClientRequest<'a> {
    /// The status of the response: 401 or 403.
    pub status: u16,
    /// The method of HTTP.
    pub method: &'a str,
    /// The path.
    pub path: &'a str,
    /// Why it was refused.
    pub reason: &'a str,
    /// The id of the principal, if it is known.
    pub principal: Option<&'a str>,
    /// The address of the client.
    pub remote: Option<IpAddr>,
}

/// A person looked at the messages of a call.
#[derive(Clone, Copy, Debug)]
pub struct PayloadView<'a> {
    /// Who looked.
    pub principal: &'a Principal,
    /// The address that the person looked from.
    pub remote: Option<IpAddr>,
    /// The id of the call.
    pub call: u128,
    /// The server of the call.
    pub server: &'a str,
    /// The upstreams that the call was sent to.
    pub upstreams: &'a [&'a str],
    /// The rules of the client that called.
    pub rules: &'static Rules,
    /// The tool, prompt or URI of the call.
    pub target: &'a str,
}
