//! Opening a conversation with a process, in an era that it speaks.
//!
//! The process that is asked is the one that is then used. It is asked in the era that is wanted first. If it refuses,
//! it is asked in the other era on the same streams. Only a process that ends, or stays silent, is replaced by another.

mod talk;

use std::sync::Arc;
use std::time::Duration;

use creole_proto::client::{OpenMode, Profile};
use creole_proto::fault::Fault;
use creole_proto::revision::{Era, Revision, Rules};

use self::talk::{Came, Talk};
use super::connection::{Connection, Setup};
use super::dialer::Offer;
use super::lines::ChildServer;
use crate::process::Program;

/// How long a process may be silent about `server/discover` before it is offered a handshake too: some servers
/// answer nothing before that.
const SILENCE: Duration = Duration::from_secs(3);

/// How long a process that was asked in both eras may be silent before another is started beside it.
const STUCK: Duration = Duration::from_secs(10);

/// In which eras a process is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) first: Era,
    /// The era that is tried if the process does not speak the first.
    pub(super) second: Option<Era>,
    /// Whether the first is known to be spoken, so that silence says nothing.
    pub(super) is_sure: bool,
}

/// On what terms a conversation is opened.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) profile: &'a Arc<Profile>,
    /// The revision in which requests stand alone.
    pub(super) stateless: &'static Rules,
    /// The revision that a handshake proposes.
    pub(super) propose: &'static Rules,
    pub(super) offer: &'a Offer,
}

impl<'a> Terms<'a> {
    /// The terms of this revision, and of the newest one of the other era.
    pub(super) fn new(
        profile: &'a Arc<Profile>,
        pinned: Option<&'static Rules>,
        offer: &'a Offer,
    ) -> Self {
        let of = |era| pinned.filter(|pinned| pinned.era == era);
        let stateless = of(Era::Stateless);
        Self {
            profile,
            stateless: stateless.unwrap_or_else(|| Revision::newest(Era::Stateless).rules()),
            propose: of(Era::Handshake).unwrap_or_else(|| proposal(profile)),
            offer,
        }
    }

    fn opening(&self, era: Era) -> OpenMode {
        match era {
            Era::Stateless => OpenMode::Stateless { rules: self.stateless },
            Era::Handshake => OpenMode::Handshake {
                proposed_rules: self.propose,
                capabilities: Arc::clone(&self.offer.capabilities),
            },
        }
    }

    pub(super) fn setup(&self, era: Era) -> Setup {
        let (on_question, on_log) = (self.offer.on_question.clone(), self.offer.on_log.clone());
        let setup = Setup::new(Arc::clone(self.profile), self.opening(era));
        Setup { on_question, on_log, ..setup }
    }
}

/// An open conversation, and what was learnt on the way.
pub(super) struct Agreed {
    pub(super) connection: Connection,
    /// The era that the process turned out not to speak.
    pub(super) lacks: Option<Era>,
}

/// Starts a process and opens a conversation with it.
///
/// # Errors
/// When it cannot be started, ends, or refuses both eras.
pub(super) async fn open(
    program: &Program,
    terms: Terms<'_>,
    order: Order,
) -> Result<Agreed, Fault> {
    let Order { first, second, is_sure } = order;
    let Some(second) = second else {
        let transport = Box::new(ChildServer::start(program).await?);
        let connection = Connection::open(transport, terms.setup(first)).await?;
        return Ok(Agreed { connection, lacks: None });
    };
    let mut talk = Talk::start(program, terms, first).await?;
    let hears_silence = first == Era::Stateless && !is_sure;
    match talk.agree(second, hears_silence.then_some(SILENCE), Some(STUCK)).await {
        Came::Agreed(era) => talk.connect(era).await,
        Came::Refused(fault) => Err(fault),
        // Some servers end at any request before the handshake.
        Came::Ended if talk.was_discovered() => again(program, terms, second, first).await,
        Came::Ended => talk.fail(first).await,
        Came::Stuck => race(talk, again(program, terms, second, first)).await,
    }
}

/// Asks another process, in the second era first.
async fn again(
    program: &Program,
    terms: Terms<'_>,
    first: Era,
    second: Era,
) -> Result<Agreed, Fault> {
    let mut talk = Talk::start(program, terms, first).await?;
    let agreed = match talk.agree(second, None, None).await {
        Came::Agreed(era) => talk.connect(era).await?,
        Came::Refused(fault) => return Err(fault),
        Came::Ended | Came::Stuck => return talk.fail(first).await,
    };
    // The first process was asked in this era in vain.
    let is_first = agreed.connection.greeting().rules.era == first;
    Ok(Agreed { lacks: agreed.lacks.or(is_first.then_some(second)), ..agreed })
}

/// Takes the process that answers first: the one that was asked, or another one that was started because of its silence.
async fn race(
    mut talk: Talk<'_>,
    other: impl Future<Output = Result<Agreed, Fault>>,
) -> Result<Agreed, Fault> {
    let mut other = std::pin::pin!(other);
    let late = tokio::select! {
        came = talk.wait() => came,
        // What the silent process said may be why the other one failed, such as a port that it took.
        opened = &mut other => return opened.map_err(|fault| talk.quoted(fault)),
    };
    match late {
        Came::Agreed(era) => talk.connect(era).await,
        _ => other.await,
    }
}

/// The newest revision that the server's dialect shakes hands in.
fn proposal(profile: &Profile) -> &'static Rules {
    let shaken = |revision: &Revision| revision.rules().era == Era::Handshake;
    let newest = profile.dialect.revisions().filter(shaken).max();
    newest.map_or(profile.dialect.base_rules(), Revision::rules)
}
