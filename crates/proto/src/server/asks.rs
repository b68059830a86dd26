//! Questions to a client of the handshake generation, as requests of the server.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::calls::Pending;
use super::outbox::{Action, Answer, AskKey, Outbox, Route};
use super::{CallKey, Machine, Now};
use crate::encode::{self, key, question_params};
use crate::lifecycle::Phase;
use crate::model::Question;
use crate::revision::Asking;
use crate::wire::{Fields, Id, Object, Raw, unquote};

/// Withdrawn questions that are remembered, because their answers may be on their way.
const WITHDRAWN: usize = 64;

/// The most questions that belong to no call and wait for answers.
const OF_SESSION: usize = 16;

/// Questions that wait for answers.
#[derive(Debug, Default)]
pub(super) struct Asks {
    last: u64,
    open: BTreeMap<AskKey, Open>,
    withdrawn: VecDeque<Id>,
    /// Questions that belong to no call, while the client has not confirmed the handshake.
    early: Vec<(AskKey, Question)>,
}

#[derive(Debug)]
struct Open {
    id: Id,
    /// The call that it belongs to; nothing for a question of the session.
    call: Option<CallKey>,
    end: Now,
}

impl Open {
    fn route(&self) -> Route {
        self.call.map_or(Route::Session, Route::Call)
    }
}

impl Asks {
    pub(super) fn deadline(&self) -> Option<Now> {
        self.open.values().map(|open| open.end).min()
    }

    /// A new question.
    fn mint(&mut self, call: Option<CallKey>, end: Now) -> (AskKey, Id) {
        self.last += 1;
        let (ask, id) = (AskKey(self.last), Id::from_text(&format!("creole-{}", self.last)));
        self.open.insert(ask, Open { id: id.clone(), call, end });
        (ask, id)
    }

    fn answered(&self, id: &Id) -> Option<AskKey> {
        self.open.iter().find(|(_, open)| open.id == *id).map(|(key, _)| *key)
    }

    /// Remembers that a question is no longer asked.
    fn note_withdrawn(&mut self, id: Id) {
        if self.withdrawn.len() >= WITHDRAWN {
            self.withdrawn.pop_front();
        }
        self.withdrawn.push_back(id);
    }

    fn of_call(&self, call: CallKey) -> Vec<AskKey> {
        self.open.iter().filter(|(_, open)| open.call == Some(call)).map(|(key, _)| *key).collect()
    }

    fn expired(&self, now: Now) -> Vec<AskKey> {
        self.open.iter().filter(|(_, open)| open.end <= now).map(|(key, _)| *key).collect()
    }
}

impl Machine {
    /// Asks the client something on behalf of a call; the answer comes as [`Action::Answer`].
    /// `None` when the call is over, or is of a revision where servers send no requests.
    pub fn ask(
        &mut self,
        call: CallKey,
        question: &Question,
        now: Now,
        out: &mut Outbox,
    ) -> Option<AskKey> {
        let inline = |pending: &&mut Pending| pending.rules.asking == Asking::Inline;
        let pending = self.calls.get_mut(call).filter(inline)?;
        pending.open_asks += 1;
        let (ask, id) = self.asks.mint(Some(call), now + self.profile.limits.question);
        let params = question_params(question, pending.rules, pending.related_task());
        out.frame(Route::Call(call), |bytes| {
            encode::request(bytes, &id, question.method(), params.as_deref());
        });
        Some(ask)
    }

    /// Asks the client of the session something that belongs to no call; the answer comes as [`Action::Answer`]. Before
    /// the client has confirmed the handshake, the question waits. `None` without a session, for what the client has
    /// not declared, and while too many such questions are open.
    pub fn ask_session(
        &mut self,
        question: &Question,
        now: Now,
        out: &mut Outbox,
    ) -> Option<AskKey> {
        let session = &self.session;
        let is_open = matches!(session.phase, Phase::Initializing | Phase::Operating);
        let can_answer =
            session.capabilities.as_ref().is_some_and(|client| question.is_allowed(client));
        let asks = session.rules.asking == Asking::Inline && question.is_sayable(session.rules);
        let of_session = self.asks.open.values().filter(|open| open.call.is_none()).count();
        if !is_open || !can_answer || !asks || of_session >= OF_SESSION {
            return None;
        }
        let (ask, id) = self.asks.mint(None, now + self.profile.limits.question);
        match self.session.phase {
            Phase::Operating => self.send_session_ask(&id, question, out),
            _ => self.asks.early.push((ask, question.clone())),
        }
        Some(ask)
    }

    /// Sends the questions that waited for the client to confirm the handshake.
    pub(super) fn send_early_asks(&mut self, out: &mut Outbox) {
        for (ask, question) in core::mem::take(&mut self.asks.early) {
            if let Some(id) = self.asks.open.get(&ask).map(|open| open.id.clone()) {
                self.send_session_ask(&id, &question, out);
            }
        }
    }

    fn send_session_ask(&self, id: &Id, question: &Question, out: &mut Outbox) {
        let params = question_params(question, self.session.rules, None);
        out.frame(Route::Session, |bytes| {
            encode::request(bytes, id, question.method(), params.as_deref());
        });
    }

    /// Whether this answers a question that is open, or was withdrawn a moment ago: then the answer crossed the
    /// withdrawal, and is dropped (2025-11-25 basic/utilities/cancellation, timing considerations).
    pub fn awaits(&self, fields: &Fields<'_>) -> bool {
        let id = fields.id.and_then(|raw| Id::parse(raw).ok());
        id.is_some_and(|id| self.asks.answered(&id).is_some() || self.asks.withdrawn.contains(&id))
    }

    /// Takes the client's response to a question; one that answers nothing is dropped.
    pub(super) fn take_answer(
        &mut self,
        id: &Id,
        answer: Result<&str, &str>,
        now: Now,
        out: &mut Outbox,
    ) {
        self.asks.withdrawn.retain(|withdrawn| withdrawn != id);
        if let Some(ask) = self.asks.answered(id) {
            self.settle_ask(ask, answer.map(Raw::trusted).map_err(refusal), now, out);
        }
    }

    /// Ends the questions whose time is over.
    pub(super) fn expire_asks(&mut self, now: Now, out: &mut Outbox) {
        for ask in self.asks.expired(now) {
            self.withdraw(ask, "nobody answered in time", out);
            self.settle_ask(ask, Err("nobody answered in time".into()), now, out);
        }
    }

    /// Ends all questions: a client that has closed its side cannot answer.
    pub fn end_of_input(&mut self, now: Now, out: &mut Outbox) {
        let open: Vec<_> = self.asks.open.keys().copied().collect();
        for ask in open {
            self.withdraw(ask, "the client has closed its side", out);
            self.settle_ask(ask, Err("the client has closed its side".into()), now, out);
        }
    }

    /// Withdraws the questions of a call that is over.
    pub(super) fn withdraw_asks(&mut self, call: CallKey, reason: &str, out: &mut Outbox) {
        for ask in self.asks.of_call(call) {
            self.withdraw(ask, reason, out);
            self.asks.open.remove(&ask);
        }
    }

    fn withdraw(&mut self, ask: AskKey, reason: &str, out: &mut Outbox) {
        let Some(open) = self.asks.open.get(&ask) else { return };
        if self.asks.early.iter().any(|(early, _)| *early == ask) {
            return self.asks.early.retain(|(early, _)| *early != ask);
        }
        out.frame(open.route(), |bytes| {
            encode::notification(bytes, "notifications/cancelled", |bytes| {
                key(bytes, "requestId");
                bytes.extend_from_slice(open.id.raw().as_bytes());
                key(bytes, "reason");
                crate::wire::quote(bytes, reason);
            });
        });
        let id = open.id.clone();
        self.asks.note_withdrawn(id);
    }

    fn settle_ask(&mut self, ask: AskKey, answer: Answer, now: Now, out: &mut Outbox) {
        let Some(open) = self.asks.open.remove(&ask) else { return };
        let limits = self.profile.limits;
        if let Some(pending) = open.call.and_then(|call| self.calls.get_mut(call)) {
            pending.open_asks -= 1;
            // The time that a person took to answer is not the call's.
            pending.begin_anew(&limits, now);
        }
        out.act(Action::Answer(ask, answer));
    }
}

/// What an error response says, in words.
fn refusal(error: &str) -> String {
    let message = Object::new(error).and_then(|error| error.get("message")).and_then(unquote);
    message.unwrap_or("the client refused".into()).to_string()
}
