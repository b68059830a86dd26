//! OAuth 2.1 for MCP clients, without I/O.
//!
//! A login begins with the refusal of an MCP server. [`attempt::find_server`] finds the authorization server
//! ([`discovery`]). [`person::log_in`] gets a client id ([`client`]), asks the person ([`authorization`]) and requests
//! tokens ([`token`]). [`device::log_in_device`] asks the person at another device, and [`program::log_in_program`] asks
//! no person. The requests go through an [`exchange::Exchange`], and the person is asked through a [`person::Browser`]: the
//! callers implement both. A [`login::Login`] is the result, which is stored, refreshed and revoked.
//!
//! Issuers, resources and redirect addresses are texts. They are compared byte by byte and sent as they came.

pub mod attempt;
pub mod authorization;
pub mod challenge;
pub mod client;
pub mod device;
pub mod discovery;
pub mod document;
pub mod dpop;
pub mod error;
pub mod exchange;
pub mod jose;
pub mod login;
pub mod metadata;
pub mod person;
pub mod program;
mod random;
pub mod scopes;
pub mod secret;
pub mod settings;
pub mod token;
pub mod web_url;

#[cfg(test)]
mod testing;
