//! The redaction layer: removes secrets from results, input requests and arguments.

mod redactor;

use std::sync::Arc;

use creole::{BoxFuture, Call, Context, Middleware, Next};
use creole_proto::fault::Fault;
use creole_proto::model::{Content, Contents, InputRequest};
use creole_proto::operation::{Event, Operation, Outcome, Payload, RelayedResult};
use creole_proto::wire::Raw;

use crate::layers::definitions::json_edit::{Edit, edit_members};
pub use redactor::Redactor;

/// The part of a call that is redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedactScope {
    /// The response direction: results, the text of faults and input requests, and progress and log messages.
    Results,
    /// The arguments of tools and prompts.
    Arguments,
    /// Both directions.
    Both,
}

/// A layer that removes secrets from results and arguments.
#[derive(Clone, Debug)]
pub struct Redact {
    redactor: Arc<Redactor>,
    from: RedactScope,
}

impl Redact {
    /// A layer with this redactor.
    pub fn new(redactor: Redactor, from: RedactScope) -> Self {
        Self { redactor: Arc::new(redactor), from }
    }
}

/// Each function returns whether something changed.
impl Redactor {
    fn redact_outcome(&self, outcome: &mut Outcome) -> bool {
        match outcome {
            Outcome::Complete(payload) => self.redact_payload(payload),
            Outcome::Fail(fault) => self.redact_fault(fault),
            Outcome::InputRequired { requests, .. } => {
                any_of(requests, |ask| self.redact_input_request(&mut ask.question))
            }
            Outcome::Detach(_) => false,
        }
    }

    fn redact_payload(&self, payload: &mut Payload) -> bool {
        match payload {
            Payload::Tool(result) => {
                let is_changed = any_of(&mut result.content, |block| self.redact_block(block));
                self.redact_raw(&mut result.structured) | is_changed
            }
            Payload::Contents(contents, _) => any_of(contents, |it| self.redact_contents(it)),
            Payload::Prompt(result) => {
                any_of(&mut result.messages, |message| self.redact_block(&mut message.content))
            }
            Payload::Relayed(relayed) => self.redact_relayed(relayed),
            _ => false,
        }
    }

    fn redact_block(&self, block: &mut Content) -> bool {
        match block {
            Content::Text { text, .. } => self.redact_text(text),
            Content::Resource { resource } => self.redact_contents(resource),
            _ => false,
        }
    }

    fn redact_contents(&self, contents: &mut Contents) -> bool {
        contents.text.as_mut().is_some_and(|text| self.redact_text(text))
    }

    fn redact_relayed(&self, relayed: &mut RelayedResult) -> bool {
        let mut is_changed = false;
        let change = |key: &str, value: &str| {
            let redacted = match key {
                "structuredContent" | "_meta" | "completion" => {
                    let data = Raw::parse(value).ok().and_then(|data| self.redact_data(&data));
                    data.map(|data| data.as_str().to_owned())
                }
                "content" | "contents" | "messages" | "description" => self.redact_blocks(value),
                _ => None,
            };
            is_changed |= redacted.is_some();
            redacted.map_or(Edit::Keep, Edit::Set)
        };
        let redacted = edit_members(relayed.result().as_str(), change);
        if let Some(result) = redacted.and_then(|text| Raw::parse(&text).ok()) {
            relayed.set_result(result);
        }
        is_changed
    }

    fn redact_fault(&self, fault: &mut Fault) -> bool {
        self.redact_text(&mut fault.detail) | self.redact_raw(&mut fault.data)
    }

    fn redact_arguments(&self, operation: &mut Operation) -> bool {
        match operation {
            Operation::CallTool { arguments, .. } | Operation::GetPrompt { arguments, .. } => {
                self.redact_raw(arguments)
            }
            _ => false,
        }
    }

    fn redact_raw(&self, data: &mut Option<Raw>) -> bool {
        let redacted = data.as_ref().and_then(|data| self.redact_data(data));
        let is_changed = redacted.is_some();
        if is_changed {
            *data = redacted;
        }
        is_changed
    }

    /// Redacts the text of an input request. Its schema stays, since the response has to fit it.
    fn redact_input_request(&self, input_request: &mut InputRequest) -> bool {
        match input_request {
            InputRequest::Form { message, .. } | InputRequest::Url { message, .. } => {
                self.redact_text(message)
            }
            InputRequest::Sample { params } => {
                let mut is_changed = false;
                let redacted = edit_members(params.as_str(), |key, value| {
                    let is_text = matches!(key, "messages" | "systemPrompt");
                    let redacted = is_text.then(|| self.redact_blocks(value)).flatten();
                    is_changed |= redacted.is_some();
                    redacted.map_or(Edit::Keep, Edit::Set)
                });
                if let Some(redacted) = redacted.and_then(|text| Raw::parse(&text).ok()) {
                    *params = redacted;
                }
                is_changed
            }
            InputRequest::Roots => false,
        }
    }

    /// Redacts progress and log messages.
    fn redact_event(&self, mut event: Event) -> Event {
        match &mut event {
            Event::Progress { message, .. } => {
                message.iter_mut().for_each(|message| _ = self.redact_text(message));
            }
            Event::Log { logger, data, .. } => {
                logger.iter_mut().for_each(|logger| _ = self.redact_text(logger));
                if let Some(redacted) = self.redact_data(data) {
                    *data = redacted;
                }
            }
            Event::ElicitationCompleted(_) => {}
        }
        event
    }
}

impl Middleware for Redact {
    fn kind(&self) -> &'static str {
        "redact"
    }

    fn redact_text(&self, text: &str) -> Option<String> {
        Some(self.redactor.redact_message(text))
    }

    fn handle<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let observed = call.context.observes_layers().then(|| call.context.clone());
        if self.from != RedactScope::Results {
            let is_changed = self.redactor.redact_arguments(&mut call.operation);
            record_change(observed.as_ref(), is_changed);
        }
        if self.from == RedactScope::Arguments {
            return next.call(call);
        }
        let [events, redactor] = [(); 2].map(|()| Arc::clone(&self.redactor));
        let context = call.context.map_events(move |event| Some(events.redact_event(event)));
        call.context = context.map_input_requests(move |mut input_request| {
            redactor.redact_input_request(&mut input_request);
            input_request
        });
        Box::pin(async move {
            let mut outcome = next.call(call).await;
            let is_changed = self.redactor.redact_outcome(&mut outcome);
            record_change(observed.as_ref(), is_changed);
            outcome
        })
    }

    fn rewrite_input_request(&self, input_request: &mut InputRequest) {
        if self.from != RedactScope::Arguments {
            self.redactor.redact_input_request(input_request);
        }
    }
}

/// Records that the layer changed something, if it did and its decisions are observed.
fn record_change(context: Option<&Context>, is_changed: bool) {
    if let Some(context) = context.filter(|_| is_changed) {
        context.record_change();
    }
}

/// Changes all items. Returns whether one of them changed.
fn any_of<T>(items: &mut [T], mut change: impl FnMut(&mut T) -> bool) -> bool {
    items.iter_mut().fold(false, |is_changed, item| change(item) | is_changed)
}

#[cfg(test)]
mod tests;
