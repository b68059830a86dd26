//! Requests and responses of the admin listener, without what they are about.

pub(crate) mod body;
pub(crate) mod events;
pub(crate) mod headers;
pub(crate) mod problem;
pub(crate) mod query;
pub(crate) mod reply;
