//! Questions of servers of the handshake generation, which are requests of theirs.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::calls::Expect;
use super::outbox::{Happening, Noise, Outbox, QuestionKey, Refusal, Sending};
use super::receive::{Arrival, shorten};
use super::{CallKey, Machine, Opening};
use crate::adapt::lower_sampled;
use crate::encode;
use crate::meta;
use crate::model::{Ask, ClientCapabilities, Question};
use crate::revision::Asking;
use crate::wire::{FieldError, Id, Object, Raw};

/// Questions that wait for answers.
#[derive(Debug, Default)]
pub(super) struct Questions {
    last: u64,
    open: BTreeMap<QuestionKey, Open>,
}

#[derive(Debug)]
struct Open {
    id: Id,
    call: Option<CallKey>,
    /// Whether a model is asked.
    is_sample: bool,
    /// What the server wants to be told of progress under, and how often it was.
    token: Option<Id>,
    beats: u64,
}

impl Questions {
    fn with_id(&self, id: &Id) -> Option<QuestionKey> {
        self.open.iter().find(|(_, open)| open.id == *id).map(|(key, _)| *key)
    }

    fn of_call(&self, call: Option<CallKey>) -> Vec<QuestionKey> {
        self.open.iter().filter(|(_, open)| open.call == call).map(|(key, _)| *key).collect()
    }
}

impl Machine {
    /// Answers a question of the server: with the result as it is to be sent, or not.
    pub fn answer(
        &mut self,
        question: QuestionKey,
        answer: Result<Raw, Refusal>,
        out: &mut Outbox,
    ) {
        let Some(open) = self.forget_question(question) else { return };
        let answer = match answer {
            Ok(result) if open.is_sample && !self.rules.sampling_details => {
                lower_sampled(&result).ok_or_else(unsayable)
            }
            answer => answer,
        };
        match answer {
            Ok(result) => out.frame(Sending::Response, |bytes| {
                encode::response(bytes, &open.id, |bytes| {
                    bytes.extend_from_slice(result.as_str().as_bytes());
                });
            }),
            Err(refusal) => send_refusal(&open.id, &refusal, out),
        }
    }

    /// The id that the server gave a question, if it is open.
    pub fn id_of(&self, question: QuestionKey) -> Option<&Id> {
        self.questions.open.get(&question).map(|open| &open.id)
    }

    /// Tells a server that a question of its own is still being answered, if it wants to be told: most stop waiting
    /// for those that make no progress (every revision, progress).
    pub fn keep_waiting(&mut self, question: QuestionKey, out: &mut Outbox) {
        let Some(open) = self.questions.open.get_mut(&question) else { return };
        let Some(token) = &open.token else { return };
        open.beats += 1;
        let (token, beats) = (token.raw(), open.beats);
        out.frame(Sending::Notification { about: None }, |bytes| {
            encode::notification(bytes, "notifications/progress", |bytes| {
                encode::foreign_member(bytes, "progressToken", token);
                encode::key(bytes, "progress");
                bytes.extend_from_slice(beats.to_string().as_bytes());
            });
        });
    }

    /// Takes a request of the server.
    pub(super) fn take_question(
        &mut self,
        id: &str,
        method: &str,
        params: Object<'_>,
        arrival: Arrival,
        out: &mut Outbox,
    ) {
        let Ok(id) = Id::parse_number(id) else {
            return self.make_noise(Noise::NoMessage("an `id` of no allowed kind".into()), out);
        };
        if self.rules.asking == Asking::Reentrant {
            // A client must not answer there (2026-07-28 basic, responses).
            return self.make_noise(Noise::Request(shorten(method)), out);
        }
        if method == "ping" {
            return out.frame(Sending::Response, |bytes| {
                encode::response(bytes, &id, |bytes| bytes.extend_from_slice(b"{}"));
            });
        }
        match self.check_question(&id, method, params) {
            Ok(question) if self.may_be_asked(&question) => {
                self.ask(id, question, params, arrival, out);
            }
            Ok(what) => {
                send_refusal(&id, &not_offered(method), out);
                let task = related_task(params);
                let call = self.asker(task.as_deref(), arrival.origin);
                out.tell(Happening::NotOffered { call, what });
            }
            Err(refusal) => send_refusal(&id, &refusal, out),
        }
    }

    fn check_question(
        &self,
        id: &Id,
        method: &str,
        params: Object<'_>,
    ) -> Result<Question, Refusal> {
        let refused = |code, message: String| Err(Refusal { code, message });
        if self.questions.with_id(id).is_some() {
            return refused(-32600, "a request with this id is in flight".into());
        }
        if params.text().len() > self.profile.limits.question_bytes {
            return refused(-32602, "the question is too long".into());
        }
        match read_question(method, params) {
            Ok(Some(question)) => Ok(question),
            Ok(None) => Err(not_offered(method)),
            Err(error) => refused(-32602, format!("Invalid params: {error}")),
        }
    }

    /// Whether the server was told that it may ask this.
    fn may_be_asked(&self, question: &Question) -> bool {
        match &self.opening {
            Opening::Handshake { capabilities, .. } => {
                question.is_allowed(capabilities) && question.is_sayable(self.rules)
            }
            Opening::Stateless { .. } => false,
        }
    }

    fn ask(
        &mut self,
        id: Id,
        what: Question,
        params: Object<'_>,
        arrival: Arrival,
        out: &mut Outbox,
    ) {
        let task = related_task(params);
        let call = self.asker(task.as_deref(), arrival.origin);
        if self.questions.of_call(call).len() >= self.profile.limits.questions {
            let message = "too many questions wait for answers".to_string();
            return send_refusal(&id, &Refusal { code: -32603, message }, out);
        }
        if let Some(pending) = call.and_then(|call| self.calls.get_mut(call)) {
            pending.questions += 1;
            pending.touch(arrival.now);
        }
        self.questions.last += 1;
        let question = QuestionKey(self.questions.last);
        let (is_sample, token) = (matches!(what, Question::Sample { .. }), own_token(params));
        self.questions.open.insert(question, Open { id, call, is_sample, token, beats: 0 });
        out.tell(Happening::Asked { call, question, what, task });
    }

    /// The call that a question belongs to. Without a channel of its own, only one call that may ask can be in
    /// flight for this to be known: nothing in the message says so.
    fn asker(&self, task: Option<&str>, origin: Option<CallKey>) -> Option<CallKey> {
        let origin = origin.filter(|call| self.is_open(*call));
        origin
            .or_else(|| {
                self.calls.only(|pending| {
                    pending.expect == Expect::TaskResult && Some(pending.subject.as_str()) == task
                })
            })
            .or_else(|| {
                let asks = |pending: &super::calls::Pending| {
                    pending.sent && pending.expect.may_ask_inline()
                };
                self.calls.only(asks).filter(|_| task.is_none())
            })
    }

    /// Takes the server's word that a question needs no answer any more.
    pub(super) fn withdraw(&mut self, id: &Id, out: &mut Outbox) {
        if let Some(question) = self.questions.with_id(id) {
            self.forget_question(question);
            out.tell(Happening::Withdrawn(question));
        }
    }

    /// Withdraws the questions of a call that is over, and says so to a server that still waits.
    pub(super) fn drop_questions(&mut self, call: CallKey, out: &mut Outbox) {
        for question in self.questions.of_call(Some(call)) {
            let Some(open) = self.forget_question(question) else { continue };
            let message = "the call that this belongs to is over".to_string();
            send_refusal(&open.id, &Refusal { code: -32603, message }, out);
            out.tell(Happening::Withdrawn(question));
        }
    }

    /// Withdraws the questions of a call, which somebody else answers.
    pub(super) fn leave_questions(&mut self, call: CallKey, out: &mut Outbox) {
        for question in self.questions.of_call(Some(call)) {
            if self.forget_question(question).is_some() {
                out.tell(Happening::Withdrawn(question));
            }
        }
    }

    /// Withdraws every question: the server is gone.
    pub(super) fn withdraw_all(&mut self, out: &mut Outbox) {
        for question in core::mem::take(&mut self.questions.open).into_keys() {
            out.tell(Happening::Withdrawn(question));
        }
    }

    fn forget_question(&mut self, question: QuestionKey) -> Option<Open> {
        let open = self.questions.open.remove(&question)?;
        if let Some(pending) = open.call.and_then(|call| self.calls.get_mut(call)) {
            pending.questions -= 1;
        }
        Some(open)
    }
}

fn not_offered(method: &str) -> Refusal {
    let method = shorten(method);
    Refusal::unsupported(format!("Method not found: {method}: the client did not offer it"))
}

/// What a server is told whose revision has no words for what the model answered.
fn unsayable() -> Refusal {
    let message =
        "the model answered with more than one block that is no text, or with the use of a tool";
    Refusal { code: -32603, message: message.to_string() }
}

fn send_refusal(id: &Id, refusal: &Refusal, out: &mut Outbox) {
    out.frame(Sending::Response, |bytes| {
        encode::refusal(bytes, id, refusal.code, &refusal.message);
    });
}

/// What a server wants to be told of progress under; only a string or a number can be one.
fn own_token(params: Object<'_>) -> Option<Id> {
    let token = params.get("_meta").and_then(Object::new)?.get("progressToken")?;
    Id::parse_number(token).ok()
}

/// The task that a message belongs to.
fn related_task(params: Object<'_>) -> Option<String> {
    let about = params.get("_meta").and_then(Object::new)?;
    let task = about.get(meta::RELATED_TASK).and_then(Object::new)?;
    task.string("taskId").ok().flatten().map(Cow::into_owned)
}

/// Reads the questions of an `input_required` result or of a task, each allowed by what the client offered if that
/// is known.
pub(super) fn read_asks(
    requests: Object<'_>,
    client: Option<&Arc<ClientCapabilities>>,
    most: usize,
) -> Result<Vec<Ask>, String> {
    let mut asks = Vec::new();
    for (key, request) in requests.members() {
        if asks.len() == most {
            return Err(format!("the server asks more than {most} questions at once"));
        }
        let request = Object::new(request).unwrap_or(Object::EMPTY);
        let method = request.string("method").ok().flatten().unwrap_or_default();
        let params = request.get("params").and_then(Object::new).unwrap_or(Object::EMPTY);
        let question = match read_question(&method, params) {
            Ok(Some(question)) => question,
            Ok(None) => {
                return Err(format!("the server asks `{}`, which is unknown", shorten(&method)));
            }
            Err(error) => return Err(format!("a question of the server is incomplete: {error}")),
        };
        if client.is_some_and(|client| !question.is_allowed(client)) {
            let needed = question.needed_words();
            return Err(format!("the server asks for {needed}, which was not offered to it"));
        }
        asks.push(Ask { key: key.into_owned(), question });
    }
    Ok(asks)
}

/// Reads a question; `None` for a method that asks nothing we know.
fn read_question(method: &str, params: Object<'_>) -> Result<Option<Question>, FieldError> {
    Ok(Some(match method {
        "roots/list" => Question::Roots,
        "sampling/createMessage" => Question::Sample { params: without_reserved(params) },
        "elicitation/create" => read_elicitation(params)?,
        _ => return Ok(None),
    }))
}

/// An elicitation; without a mode it is a form, as that was the first shape.
fn read_elicitation(params: Object<'_>) -> Result<Question, FieldError> {
    let message = params.required_string("message")?.into_owned();
    if params.string("mode")?.as_deref() != Some("url") {
        let schema = params.object("requestedSchema")?.unwrap_or(Object::EMPTY);
        return Ok(Question::Form { message, schema: Raw::trusted(schema.text()) });
    }
    let url = params.required_string("url")?.into_owned();
    let id = params.string("elicitationId")?.unwrap_or_default().into_owned();
    Ok(Question::Url { message, url, id })
}

/// A page to visit, of an error that asks for it (2025-11-25 client/elicitation, URL elicitation required).
pub(super) fn read_page(elicitation: Object<'_>) -> Option<Question> {
    let read = read_elicitation(elicitation).ok()?;
    matches!(read, Question::Url { .. }).then_some(read)
}

/// Params without what concerns only this connection.
fn without_reserved(params: Object<'_>) -> Raw {
    let own = |name: &str| matches!(name, "_meta" | "task");
    if !params.members().any(|(name, _)| own(&name)) {
        return Raw::trusted(params.text());
    }
    let mut out = Vec::new();
    out.push(b'{');
    for (name, value) in params.members().filter(|(name, _)| !own(name)) {
        encode::foreign_member(&mut out, &name, value);
    }
    out.push(b'}');
    Raw::trusted(&String::from_utf8(out).unwrap_or_default())
}
