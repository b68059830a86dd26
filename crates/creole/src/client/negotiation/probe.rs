//! Probes an HTTP server for its era, before any session is opened.

use std::time::Duration;

use creole_proto::client::era_probe::{NoEvidenceReason, ProbeReply, ProbeVerdict, judge_reply};
use creole_proto::client::{Machine, OpenMode, Outbox, Profile};
use creole_proto::fault::Fault;
use creole_proto::revision::Rules;
use std::sync::Arc;

use crate::client::era::DetectedEra;
use crate::client::negotiation::unsupported_fault;
use crate::client::transport::http::{HttpAddress, ProbeResponse as HeardOverHttp};

/// Maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// Probes over HTTP.
///
/// # Errors
/// When the server cannot be reached, requires other credentials, or is no MCP server.
pub(crate) async fn probe_http(
    target: &HttpAddress,
    profile: &Arc<Profile>,
) -> Result<DetectedEra, Fault> {
    let (question, rules) = discover_request(profile);
    let HeardOverHttp { status, body, fault } =
        target.probe(&question, rules, MAX_RESPONSE_BYTES).await?;
    let verdict = judge_reply(ProbeReply::HttpResponse { status, body: &body }, rules);
    detected_era(target.name(), verdict, fault)
}

/// Sends the probe only to let a person log in, which may take longer than the timeout of a handshake.
///
/// # Errors
/// When the server cannot be reached, or there is no login.
pub(crate) async fn log_in(target: &HttpAddress, profile: &Arc<Profile>) -> Result<(), Fault> {
    let (question, rules) = discover_request(profile);
    target.probe(&question, rules, MAX_RESPONSE_BYTES).await.map(drop)
}

/// The `server/discover` request, as a line.
fn discover_request(profile: &Arc<Profile>) -> (Vec<u8>, &'static Rules) {
    let rules = Rules::CANONICAL;
    let mut out = Outbox::default();
    Machine::new(Arc::clone(profile), OpenMode::Stateless { rules }).open(Duration::ZERO, &mut out);
    (out.take_bytes(), rules)
}

fn detected_era(name: &str, verdict: ProbeVerdict, refused: Fault) -> Result<DetectedEra, Fault> {
    match verdict {
        ProbeVerdict::Stateless(rules) => Ok(DetectedEra::of(rules)),
        // An error of both eras: a handshake is more informative.
        ProbeVerdict::Handshake | ProbeVerdict::NoEvidence(NoEvidenceReason::Ambiguous(_)) => {
            Ok(DetectedEra::of(Rules::NEWEST_HANDSHAKE))
        }
        ProbeVerdict::UnsupportedVersions(versions) => Err(unsupported_fault(name, &versions)),
        ProbeVerdict::NoEvidence(_) => Err(refused),
    }
}
