//! OAuth 2.1 for MCP clients and servers, without I/O.
//!
//! A login begins with the refusal of an MCP server. [`find_server`](flow::attempt::find_server) finds the authorization
//! server ([`discovery`]). [`log_in`](flow::person::log_in) gets a client id ([`tokens::client`]), asks the person
//! ([`flow::authorization`]) and requests tokens ([`tokens::endpoint`]). [`log_in_device`](flow::device::log_in_device)
//! asks the person at another device, and [`log_in_program`](flow::program::log_in_program) asks no person. The requests
//! go through an [`Exchange`](http::exchange::Exchange), and the person is asked through a
//! [`Browser`](flow::person::Browser): the callers implement both. A [`Login`](tokens::login::Login) is the result, which is
//! stored, refreshed and revoked.
//!
//! A server that accepts access tokens uses [`resource`].
//!
//! Issuers, resources and redirect addresses are texts. They are compared byte by byte and sent as they came.

pub mod crypto;
pub mod discovery;
pub mod error;
pub mod flow;
pub mod http;
pub mod resource;
pub mod scopes;
pub mod secret;
pub mod settings;
pub mod tokens;
pub mod web_url;

#[cfg(test)]
mod testing;
