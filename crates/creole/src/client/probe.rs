//! Asking a server over HTTP which era it is of, before anything depends on it.

use std::time::Duration;

use creole_proto::client::verdict::{Heard, Reason, Verdict, verdict};
use creole_proto::client::{Machine, Opening, Outbox, Profile};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::revision::{Era, Revision, Rules};
use std::sync::Arc;

use super::era::Found;
use super::http::{Heard as HeardOverHttp, Target};

/// The longest answer that is looked at.
const LONGEST: usize = 1024 * 1024;

/// Asks over HTTP.
///
/// # Errors
/// When the server cannot be reached, wants other credentials, or is no MCP server.
pub(super) async fn http(target: &Target, profile: &Arc<Profile>) -> Result<Found, Fault> {
    let (question, rules) = question(profile);
    let HeardOverHttp { status, body, fault } = target.probe(&question, rules, LONGEST).await?;
    let verdict = verdict(Heard::Http { status, body: &body }, rules);
    found(target.name(), verdict, fault)
}

/// The question, as a line.
fn question(profile: &Arc<Profile>) -> (Vec<u8>, &'static Rules) {
    let rules = Revision::newest(Era::Stateless).rules();
    let mut out = Outbox::default();
    Machine::new(Arc::clone(profile), Opening::Stateless { rules }).open(Duration::ZERO, &mut out);
    (out.take_bytes(), rules)
}

fn found(name: &str, verdict: Verdict, refused: Fault) -> Result<Found, Fault> {
    match verdict {
        Verdict::Stateless(rules) => Ok(Found::Stateless(rules)),
        // An error of both eras: the older way of opening tells more.
        Verdict::Handshake | Verdict::NoEvidence(Reason::Ambiguous(_)) => Ok(Found::Handshake),
        Verdict::Unsupported(versions) => Err(unsupported(name, &versions)),
        Verdict::NoEvidence(_) => Err(refused),
    }
}

/// The fault of a server whose versions are of the future.
pub(super) fn unsupported(name: &str, versions: &[String]) -> Fault {
    let versions = versions.join(", ");
    let detail = format!("`{name}` speaks only versions that are not known here: {versions}");
    Fault::new(FaultKind::UnsupportedVersion, detail).about(name)
}
