//! Creole as a resource server: whom it accepts, and that nothing of one caller reaches another.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod crossing;
mod principals;
mod upstream;
