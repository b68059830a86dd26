//! The client at an authorization server, its token requests, and the login that they give.

pub mod client;
pub mod endpoint;
pub mod login;
