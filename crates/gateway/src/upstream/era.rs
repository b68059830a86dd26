//! Finding out which era a server speaks, from positive evidence only.

use std::sync::Arc;
use std::time::Duration;

use creole::client::{Connection, Setup};
use creole::proto::client::{Opening, Profile};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::revision::{Era, Revision, Rules};
use tokio::time::timeout;

use super::dial::Place;

/// How long a server may be silent when it is asked what it speaks.
const SILENCE: Duration = Duration::from_secs(3);

/// What a server was found to speak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) rules: &'static Rules,
    pub(super) kind: Kind,
}

/// Which of the transports of its place a server is reached by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Lines, or Streamable HTTP.
    Usual,
    /// HTTP with a stream for everything (2024-11-05 basic/transports).
    OldSse,
}

/// Asks a server what it speaks; a program is asked in a process of its own, because some end at a question that
/// they do not know.
pub(super) async fn detect(place: &Place, profile: &Arc<Profile>) -> Result<Found, Fault> {
    let rules = Revision::newest(Era::Stateless).rules();
    let setup = Setup::new(Arc::clone(profile), Opening::Stateless { rules });
    let transport = place.transport(Kind::Usual).await?;
    let answer = timeout(SILENCE, Connection::open(transport, setup)).await;
    match answer {
        Ok(Ok(_)) => Ok(Found { rules, kind: Kind::Usual }),
        Ok(Err(fault)) if matches!(place, Place::Http(_)) && is_outage(&fault) => Err(fault),
        _ => Ok(Found { rules: Revision::newest(Era::Handshake).rules(), kind: Kind::Usual }),
    }
}

fn is_outage(fault: &Fault) -> bool {
    fault.kind == FaultKind::BackendUnavailable
}
