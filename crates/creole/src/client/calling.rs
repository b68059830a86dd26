//! One call to a server, as its caller sees it.

use std::fmt;
use std::sync::{Arc, Weak};

use creole_proto::client::{CallKey, QuestionKey, Refusal};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::Mirror;
use creole_proto::model::Question;
use creole_proto::op::{Event, Outcome};
use creole_proto::wire::Raw;
use tokio::sync::{mpsc, oneshot};

use super::hub::Hub;

/// News of one call that may wait to be taken. Progress beyond that is left out; a question is refused.
const NEWS: usize = 256;

/// What happens on the way to an outcome.
#[derive(Debug)]
pub enum News {
    /// Progress, or a log message.
    Event(Event),
    /// The server asks something.
    Asked(Asked),
    /// The server asked something that was not offered to it, and was refused.
    NotOffered(Question),
    /// The server no longer wants to know.
    Withdrawn(QuestionKey),
}

/// The next step of a call.
#[derive(Debug)]
pub enum Step {
    /// Something happened.
    News(News),
    /// It came to this. A subscription goes on.
    Done(Outcome),
    /// Nothing more will come: a subscription is over, by this fault if by any.
    Ended(Option<Fault>),
}

/// A question of a server.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub question: Question,
    /// The task that it belongs to, as the server names it.
    pub task: Option<String>,
    /// How it is answered. Dropping it refuses.
    pub reply: Reply,
}

/// The answer that is owed for a question.
pub struct Reply {
    pub(super) key: QuestionKey,
    pub(super) hub: Weak<Hub>,
    pub(super) is_owed: bool,
}

impl Reply {
    /// The question's key, by which it may be withdrawn.
    pub fn key(&self) -> QuestionKey {
        self.key
    }

    /// Tells the server that the answer still is on its way, if it wants to be told.
    pub fn keep_waiting(&self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.keep_waiting(self.key);
        }
    }

    /// Answers with the result as the server is to get it, or refuses.
    pub fn answer(mut self, answer: Result<Raw, Refusal>) {
        self.give(answer);
    }

    fn give(&mut self, answer: Result<Raw, Refusal>) {
        self.is_owed = false;
        if let Some(hub) = self.hub.upgrade() {
            hub.answer(self.key, answer);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.is_owed {
            self.give(Err(Refusal { code: -32603, message: "nobody answered".to_owned() }));
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Reply").field(&self.key).finish()
    }
}

/// What the hub keeps of a call.
pub(super) struct Desk {
    pub(super) news: mpsc::Sender<News>,
    pub(super) outcome: Option<oneshot::Sender<Outcome>>,
    pub(super) ended: Option<oneshot::Sender<Option<Fault>>>,
    pub(super) mirrors: Arc<[Mirror]>,
}

/// A call in flight. Dropping it cancels it.
pub struct Calling {
    key: CallKey,
    hub: Arc<Hub>,
    news: mpsc::Receiver<News>,
    outcome: Option<oneshot::Receiver<Outcome>>,
    ended: oneshot::Receiver<Option<Fault>>,
    is_over: bool,
}

/// The two sides of a call: for the hub, and a way to make the caller's once the key is known.
pub(super) fn pair(mirrors: Arc<[Mirror]>) -> (Desk, impl FnOnce(CallKey, Arc<Hub>) -> Calling) {
    let (news_in, news) = mpsc::channel(NEWS);
    let (outcome_in, outcome) = oneshot::channel();
    let (ended_in, ended) = oneshot::channel();
    let desk = Desk { news: news_in, outcome: Some(outcome_in), ended: Some(ended_in), mirrors };
    let outcome = Some(outcome);
    (desk, move |key, hub| Calling { key, hub, news, outcome, ended, is_over: false })
}

impl Calling {
    /// What the call is known by.
    pub fn key(&self) -> CallKey {
        self.key
    }

    /// The next step; to be called until the outcome, and for a subscription until its end. Cancel-safe.
    pub async fn next(&mut self) -> Step {
        let Some(outcome) = &mut self.outcome else {
            let ended = tokio::select! {
                biased;
                Some(news) = self.news.recv() => return Step::News(news),
                ended = &mut self.ended => ended,
            };
            self.is_over = true;
            return Step::Ended(ended.ok().flatten());
        };
        let done = tokio::select! {
            biased;
            Some(news) = self.news.recv() => return Step::News(news),
            done = outcome => done,
        };
        self.outcome = None;
        let gone = || Fault::new(FaultKind::Internal, "the connection was dropped").into();
        Step::Done(done.unwrap_or_else(|_| gone()))
    }

    /// What the call comes to; `on_news` is told what happens on the way. Cancel-safe.
    pub async fn outcome(&mut self, mut on_news: impl FnMut(News)) -> Outcome {
        loop {
            match self.next().await {
                Step::News(news) => on_news(news),
                Step::Done(outcome) => return outcome,
                Step::Ended(fault) => {
                    let over = || Fault::new(FaultKind::Internal, "the call is over already");
                    return fault.unwrap_or_else(over).into();
                }
            }
        }
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        if !self.is_over {
            self.hub.give_up(self.key);
        }
    }
}

impl fmt::Debug for Calling {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Calling").field("key", &self.key).finish_non_exhaustive()
    }
}
