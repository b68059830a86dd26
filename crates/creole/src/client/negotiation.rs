//! Opens a connection to a child process, in an era that it supports.
//!
//! The process that is probed is the one that is then used. It gets the opening request of the wanted era first. If it
//! refuses, it gets the request of the other era on the same streams. Only a process that ends, or stays silent, is
//! replaced by another.

mod era_negotiation;
#[cfg(feature = "http")]
pub(crate) mod probe;

use std::sync::Arc;
use std::time::Duration;

use creole_proto::client::{OpenMode, Profile};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::revision::{Era, Opening, PerEra, Revision, Rules};

use self::era_negotiation::{EraNegotiation, NegotiationOutcome};
use super::connection::{Connection, ConnectionSetup};
use super::connection_setup::ClientOffer;
use crate::client::transport::lines::ChildServer;
use crate::process::Program;

/// How long a process may not respond to `server/discover` before it is also offered a handshake: some servers respond
/// to nothing before that.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a process may respond to neither era before another is started beside it.
const STUCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The eras that are tried with a process, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct EraOrder {
    pub(super) first: Era,
    /// The era that is tried if the process does not support the first.
    pub(super) second: Option<Era>,
    /// Whether the process is known to support the first era, so that silence is no evidence against it.
    pub(super) is_first_known: bool,
}

/// The parameters of a negotiation.
#[derive(Clone, Copy)]
pub(super) struct NegotiationTerms<'a> {
    pub(super) profile: &'a Arc<Profile>,
    /// The revision to use or to propose in each era.
    rules: PerEra<&'static Rules>,
    pub(super) offer: &'a ClientOffer,
}

impl<'a> NegotiationTerms<'a> {
    /// The parameters for this revision, and the newest one of the other era.
    pub(super) fn new(
        profile: &'a Arc<Profile>,
        pinned: Option<&'static Rules>,
        offer: &'a ClientOffer,
    ) -> Self {
        let mut rules = PerEra { handshake: proposed_rules(profile), stateless: Rules::CANONICAL };
        if let Some(pinned) = pinned {
            *rules.get_mut(pinned.era) = pinned;
        }
        Self { profile, rules, offer }
    }

    /// The revision to use or to propose in this era.
    fn rules_in(&self, era: Era) -> &'static Rules {
        self.rules.get(era)
    }

    fn opening(&self, era: Era) -> OpenMode {
        let rules = self.rules_in(era);
        match rules.opening {
            Opening::Discover => OpenMode::Stateless { rules },
            Opening::Initialize => OpenMode::Handshake {
                proposed_rules: rules,
                capabilities: Arc::clone(&self.offer.capabilities),
            },
        }
    }

    pub(super) fn setup(&self, era: Era) -> ConnectionSetup {
        let (on_input_request, on_log) =
            (self.offer.on_input_request.clone(), self.offer.on_log.clone());
        let setup = ConnectionSetup::new(Arc::clone(self.profile), self.opening(era));
        let on_violation = self.offer.on_violation.clone();
        ConnectionSetup { on_input_request, on_log, on_violation, ..setup }
    }
}

/// An open connection, and the facts that the negotiation found.
pub(super) struct NegotiatedConnection {
    pub(super) connection: Connection,
    /// The era that the process does not support, as the probe showed.
    pub(super) missing_era: Option<Era>,
}

/// Starts a process and opens a connection to it.
///
/// # Errors
/// When it cannot be started, ends, or refuses both eras.
pub(super) async fn open(
    program: &Program,
    terms: NegotiationTerms<'_>,
    order: EraOrder,
) -> Result<NegotiatedConnection, Fault> {
    let EraOrder { first, second, is_first_known: is_sure } = order;
    let Some(second) = second else {
        let transport = Box::new(ChildServer::start(program).await?);
        let connection = Connection::open(transport, terms.setup(first)).await?;
        return Ok(NegotiatedConnection { connection, missing_era: None });
    };
    let mut negotiation = EraNegotiation::start(program, terms, first).await?;
    let hears_silence = terms.rules_in(first).opening == Opening::Discover && !is_sure;
    match negotiation
        .negotiate(second, hears_silence.then_some(SILENCE_TIMEOUT), Some(STUCK_TIMEOUT))
        .await
    {
        NegotiationOutcome::Agreed(era) => negotiation.connect(era).await,
        NegotiationOutcome::Refused(fault) => Err(fault),
        // Some servers exit on any request before the handshake.
        NegotiationOutcome::Ended if negotiation.has_sent_discover() => {
            retry_with_new_process(program, terms, second, first).await
        }
        NegotiationOutcome::Ended => negotiation.into_exit_fault(first).await,
        NegotiationOutcome::Stuck => {
            race(negotiation, retry_with_new_process(program, terms, second, first)).await
        }
    }
}

/// Starts another process and tries the second era first.
async fn retry_with_new_process(
    program: &Program,
    terms: NegotiationTerms<'_>,
    first: Era,
    second: Era,
) -> Result<NegotiatedConnection, Fault> {
    let mut negotiation = EraNegotiation::start(program, terms, first).await?;
    let agreed = match negotiation.negotiate(second, None, None).await {
        NegotiationOutcome::Agreed(era) => negotiation.connect(era).await?,
        NegotiationOutcome::Refused(fault) => return Err(fault),
        NegotiationOutcome::Ended | NegotiationOutcome::Stuck => {
            return negotiation.into_exit_fault(first).await;
        }
    };
    // The first process refused this era.
    let is_first = agreed.connection.greeting().rules.is_of(first);
    Ok(NegotiatedConnection {
        missing_era: agreed.missing_era.or(is_first.then_some(second)),
        ..agreed
    })
}

/// Uses the process that responds first: the silent one, or another one that was started because of the silence.
async fn race(
    mut negotiation: EraNegotiation<'_>,
    other: impl Future<Output = Result<NegotiatedConnection, Fault>>,
) -> Result<NegotiatedConnection, Fault> {
    let mut other = std::pin::pin!(other);
    let late = tokio::select! {
        outcome = negotiation.wait_for_outcome() => outcome,
        // The output of the silent process may explain the failure of the other one, such as a port that is in use.
        opened = &mut other => return opened.map_err(|fault| negotiation.with_stderr(fault)),
    };
    match late {
        NegotiationOutcome::Agreed(era) => negotiation.connect(era).await,
        _ => other.await,
    }
}

/// The newest handshake revision of the server's dialect.
fn proposed_rules(profile: &Profile) -> &'static Rules {
    let shaken = |revision: &Revision| revision.rules().has_handshake();
    let newest = profile.dialect.revisions().filter(shaken).max();
    newest.map_or(profile.dialect.base_rules(), Revision::rules)
}

/// The fault of a server that supports only unknown versions.
pub(super) fn unsupported_fault(name: &str, versions: &[String]) -> Fault {
    let versions = versions.join(", ");
    let detail = format!("`{name}` supports only unknown protocol versions: {versions}");
    Fault::new(FaultKind::UnsupportedVersion, detail).with_subject(name)
}
