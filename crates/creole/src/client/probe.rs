//! Asking a server over HTTP which era it is of, before anything depends on it.

use std::time::Duration;

use creole_proto::client::era_probe::{NoEvidenceReason, ProbeReply, ProbeVerdict, judge_reply};
use creole_proto::client::{Machine, OpenMode, Outbox, Profile};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::revision::{Era, Revision, Rules};
use std::sync::Arc;

use super::era::DetectedEra;
use crate::client::transport::http::{HttpAddress, ProbeResponse as HeardOverHttp};

/// The longest answer that is looked at.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// Asks over HTTP.
///
/// # Errors
/// When the server cannot be reached, wants other credentials, or is no MCP server.
pub(super) async fn probe_http(
    target: &HttpAddress,
    profile: &Arc<Profile>,
) -> Result<DetectedEra, Fault> {
    let (question, rules) = discover_request(profile);
    let HeardOverHttp { status, body, fault } =
        target.probe(&question, rules, MAX_RESPONSE_BYTES).await?;
    let verdict = judge_reply(ProbeReply::HttpResponse { status, body: &body }, rules);
    detected_era(target.name(), verdict, fault)
}

/// The question, as a line.
fn discover_request(profile: &Arc<Profile>) -> (Vec<u8>, &'static Rules) {
    let rules = Revision::newest(Era::Stateless).rules();
    let mut out = Outbox::default();
    Machine::new(Arc::clone(profile), OpenMode::Stateless { rules }).open(Duration::ZERO, &mut out);
    (out.take_bytes(), rules)
}

fn detected_era(name: &str, verdict: ProbeVerdict, refused: Fault) -> Result<DetectedEra, Fault> {
    match verdict {
        ProbeVerdict::Stateless(rules) => Ok(DetectedEra::Stateless(rules)),
        // An error of both eras: the older way of opening tells more.
        ProbeVerdict::Handshake | ProbeVerdict::NoEvidence(NoEvidenceReason::Ambiguous(_)) => {
            Ok(DetectedEra::Handshake)
        }
        ProbeVerdict::UnsupportedVersions(versions) => Err(unsupported_fault(name, &versions)),
        ProbeVerdict::NoEvidence(_) => Err(refused),
    }
}

/// The fault of a server whose versions are of the future.
pub(super) fn unsupported_fault(name: &str, versions: &[String]) -> Fault {
    let versions = versions.join(", ");
    let detail = format!("`{name}` speaks only versions that are not known here: {versions}");
    Fault::new(FaultKind::UnsupportedVersion, detail).with_subject(name)
}
