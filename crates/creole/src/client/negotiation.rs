//! Opening a conversation with a process, in an era that it speaks.
//!
//! The process that is asked is the one that is then used. It is asked in the era that is wanted first. If it refuses,
//! it is asked in the other era on the same streams. Only a process that ends, or stays silent, is replaced by another.

mod era_negotiation;

use std::sync::Arc;
use std::time::Duration;

use creole_proto::client::{OpenMode, Profile};
use creole_proto::fault::Fault;
use creole_proto::revision::{Era, Revision, Rules};

use self::era_negotiation::{EraNegotiation, NegotiationOutcome};
use super::connection::{Connection, ConnectionSetup};
use super::connector::ClientOffer;
use crate::client::transport::lines::ChildServer;
use crate::process::Program;

/// How long a process may be silent about `server/discover` before it is offered a handshake too: some servers
/// answer nothing before that.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a process that was asked in both eras may be silent before another is started beside it.
const STUCK_TIMEOUT: Duration = Duration::from_secs(10);

/// In which eras a process is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct EraOrder {
    pub(super) first: Era,
    /// The era that is tried if the process does not speak the first.
    pub(super) second: Option<Era>,
    /// Whether the first is known to be spoken, so that silence says nothing.
    pub(super) is_first_known: bool,
}

/// On what terms a conversation is opened.
#[derive(Clone, Copy)]
pub(super) struct NegotiationTerms<'a> {
    pub(super) profile: &'a Arc<Profile>,
    /// The revision in which requests stand alone.
    pub(super) stateless: &'static Rules,
    /// The revision that a handshake proposes.
    pub(super) proposed: &'static Rules,
    pub(super) offer: &'a ClientOffer,
}

impl<'a> NegotiationTerms<'a> {
    /// The terms of this revision, and of the newest one of the other era.
    pub(super) fn new(
        profile: &'a Arc<Profile>,
        pinned: Option<&'static Rules>,
        offer: &'a ClientOffer,
    ) -> Self {
        let of = |era| pinned.filter(|pinned| pinned.era == era);
        let stateless = of(Era::Stateless);
        Self {
            profile,
            stateless: stateless.unwrap_or_else(|| Revision::newest(Era::Stateless).rules()),
            proposed: of(Era::Handshake).unwrap_or_else(|| proposed_rules(profile)),
            offer,
        }
    }

    fn opening(&self, era: Era) -> OpenMode {
        match era {
            Era::Stateless => OpenMode::Stateless { rules: self.stateless },
            Era::Handshake => OpenMode::Handshake {
                proposed_rules: self.proposed,
                capabilities: Arc::clone(&self.offer.capabilities),
            },
        }
    }

    pub(super) fn setup(&self, era: Era) -> ConnectionSetup {
        let (on_question, on_log) =
            (self.offer.on_input_request.clone(), self.offer.on_log.clone());
        let setup = ConnectionSetup::new(Arc::clone(self.profile), self.opening(era));
        ConnectionSetup { on_input_request: on_question, on_log, ..setup }
    }
}

/// An open conversation, and what was learnt on the way.
pub(super) struct NegotiatedConnection {
    pub(super) connection: Connection,
    /// The era that the process turned out not to speak.
    pub(super) missing_era: Option<Era>,
}

/// Starts a process and opens a conversation with it.
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
    let mut talk = EraNegotiation::start(program, terms, first).await?;
    let hears_silence = first == Era::Stateless && !is_sure;
    match talk
        .negotiate(second, hears_silence.then_some(SILENCE_TIMEOUT), Some(STUCK_TIMEOUT))
        .await
    {
        NegotiationOutcome::Agreed(era) => talk.connect(era).await,
        NegotiationOutcome::Refused(fault) => Err(fault),
        // Some servers end at any request before the handshake.
        NegotiationOutcome::Ended if talk.has_sent_discover() => {
            retry_with_new_process(program, terms, second, first).await
        }
        NegotiationOutcome::Ended => talk.into_exit_fault(first).await,
        NegotiationOutcome::Stuck => {
            race(talk, retry_with_new_process(program, terms, second, first)).await
        }
    }
}

/// Asks another process, in the second era first.
async fn retry_with_new_process(
    program: &Program,
    terms: NegotiationTerms<'_>,
    first: Era,
    second: Era,
) -> Result<NegotiatedConnection, Fault> {
    let mut talk = EraNegotiation::start(program, terms, first).await?;
    let agreed = match talk.negotiate(second, None, None).await {
        NegotiationOutcome::Agreed(era) => talk.connect(era).await?,
        NegotiationOutcome::Refused(fault) => return Err(fault),
        NegotiationOutcome::Ended | NegotiationOutcome::Stuck => {
            return talk.into_exit_fault(first).await;
        }
    };
    // The first process was asked in this era in vain.
    let is_first = agreed.connection.greeting().rules.era == first;
    Ok(NegotiatedConnection {
        missing_era: agreed.missing_era.or(is_first.then_some(second)),
        ..agreed
    })
}

/// Takes the process that answers first: the one that was asked, or another one that was started because of its silence.
async fn race(
    mut talk: EraNegotiation<'_>,
    other: impl Future<Output = Result<NegotiatedConnection, Fault>>,
) -> Result<NegotiatedConnection, Fault> {
    let mut other = std::pin::pin!(other);
    let late = tokio::select! {
        came = talk.wait_for_outcome() => came,
        // What the silent process said may be why the other one failed, such as a port that it took.
        opened = &mut other => return opened.map_err(|fault| talk.with_stderr(fault)),
    };
    match late {
        NegotiationOutcome::Agreed(era) => talk.connect(era).await,
        _ => other.await,
    }
}

/// The newest revision that the server's dialect shakes hands in.
fn proposed_rules(profile: &Profile) -> &'static Rules {
    let shaken = |revision: &Revision| revision.rules().era == Era::Handshake;
    let newest = profile.dialect.revisions().filter(shaken).max();
    newest.map_or(profile.dialect.base_rules(), Revision::rules)
}
