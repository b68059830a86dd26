//! What a test does where a program of another author cannot be installed.

use std::env;
use std::fmt::Display;

use super::Peer;
use super::install::{Suite, installed, installed_suite};

/// What was found, or `None` if the program cannot be installed. This is reported on stderr, and with `CI=true` the
/// test fails.
#[track_caller]
#[expect(clippy::print_stderr, reason = "a skipped test is reported on stderr")]
pub fn if_installed<T>(name: &str, found: Result<T, impl Display>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(missing) => {
            let is_required = env::var("CI").as_deref() == Ok("true");
            assert!(!is_required, "{name} is not installed: {missing}");
            eprintln!("NOT TESTED with {name}: {missing}");
            None
        }
    }
}

/// Whether a peer is installed. If not, this is reported as by [`if_installed`].
#[track_caller]
#[must_use]
pub fn is_installed(peer: Peer) -> bool {
    if_installed(peer.name(), installed(peer)).is_some()
}

/// Whether a release of the conformance suite is installed. If not, this is reported as by [`if_installed`].
#[track_caller]
#[must_use]
pub fn is_suite_installed(suite: Suite) -> bool {
    if_installed(suite.name(), installed_suite(suite)).is_some()
}
