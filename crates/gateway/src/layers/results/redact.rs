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

impl Redactor {
    fn redact_payload(&self, payload: &mut Payload) {
        match payload {
            Payload::Tool(result) => {
                result.content.iter_mut().for_each(|block| self.redact_block(block));
                self.redact_raw(&mut result.structured);
            }
            Payload::Contents(contents, _) => {
                contents.iter_mut().for_each(|it| self.redact_contents(it))
            }
            Payload::Prompt(result) => {
                result
                    .messages
                    .iter_mut()
                    .for_each(|message| self.redact_block(&mut message.content));
            }
            Payload::Relayed(relayed) => self.redact_relayed(relayed),
            _ => {}
        }
    }

    fn redact_block(&self, block: &mut Content) {
        match block {
            Content::Text { text, .. } => self.redact_text(text),
            Content::Resource { resource } => self.redact_contents(resource),
            _ => {}
        }
    }

    fn redact_contents(&self, contents: &mut Contents) {
        if let Some(text) = &mut contents.text {
            self.redact_text(text);
        }
    }

    fn redact_relayed(&self, relayed: &mut RelayedResult) {
        let change = |key: &str, value: &str| {
            let redacted = match key {
                "structuredContent" | "_meta" | "completion" => {
                    let data = Raw::parse(value).ok().and_then(|data| self.redact_data(&data));
                    data.map(|data| data.as_str().to_owned())
                }
                "content" | "contents" | "messages" | "description" => self.redact_blocks(value),
                _ => None,
            };
            redacted.map_or(Edit::Keep, Edit::Set)
        };
        let redacted = edit_members(relayed.result().as_str(), change);
        if let Some(result) = redacted.and_then(|text| Raw::parse(&text).ok()) {
            relayed.set_result(result);
        }
    }

    fn redact_fault(&self, fault: &mut Fault) {
        self.redact_text(&mut fault.detail);
        self.redact_raw(&mut fault.data);
    }

    fn redact_arguments(&self, operation: &mut Operation) {
        if let Operation::CallTool { arguments, .. } | Operation::GetPrompt { arguments, .. } =
            operation
        {
            self.redact_raw(arguments);
        }
    }

    fn redact_raw(&self, data: &mut Option<Raw>) {
        if let Some(redacted) = data.as_ref().and_then(|data| self.redact_data(data)) {
            *data = Some(redacted);
        }
    }

    /// Redacts the text of an input request. Its schema stays, since the response has to fit it.
    fn redact_input_request(&self, input_request: &mut InputRequest) {
        match input_request {
            InputRequest::Form { message, .. } | InputRequest::Url { message, .. } => {
                self.redact_text(message)
            }
            InputRequest::Sample { params } => {
                let redacted = edit_members(params.as_str(), |key, value| match key {
                    "messages" | "systemPrompt" => {
                        self.redact_blocks(value).map_or(Edit::Keep, Edit::Set)
                    }
                    _ => Edit::Keep,
                });
                if let Some(redacted) = redacted.and_then(|text| Raw::parse(&text).ok()) {
                    *params = redacted;
                }
            }
            InputRequest::Roots => {}
        }
    }

    /// Redacts progress and log messages.
    fn redact_event(&self, mut event: Event) -> Event {
        match &mut event {
            Event::Progress { message, .. } => {
                message.iter_mut().for_each(|message| self.redact_text(message));
            }
            Event::Log { logger, data, .. } => {
                logger.iter_mut().for_each(|logger| self.redact_text(logger));
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
        // Compared only for a record of the call.
        let recorded = call.context.record().is_some().then(|| call.context.clone());
        if self.from != RedactScope::Results {
            let before = recorded.as_ref().map(|_| call.operation.clone());
            self.redactor.redact_arguments(&mut call.operation);
            record_change(recorded.as_ref(), before.as_ref(), &call.operation);
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
            let before = recorded.as_ref().map(|_| outcome.clone());
            match &mut outcome {
                Outcome::Complete(payload) => self.redactor.redact_payload(payload),
                Outcome::Fail(fault) => self.redactor.redact_fault(fault),
                Outcome::InputRequired { requests: input_requests, .. } => {
                    input_requests
                        .iter_mut()
                        .for_each(|ask| self.redactor.redact_input_request(&mut ask.question));
                }
                Outcome::Detach(_) => {}
            }
            record_change(recorded.as_ref(), before.as_ref(), &outcome);
            outcome
        })
    }

    fn rewrite_input_request(&self, input_request: &mut InputRequest) {
        if self.from != RedactScope::Arguments {
            self.redactor.redact_input_request(input_request);
        }
    }
}

/// Records that the layer changed something, if it did and the call is recorded.
fn record_change<T: PartialEq>(context: Option<&Context>, before: Option<&T>, after: &T) {
    if let Some(context) = context.filter(|_| before != Some(after)) {
        context.record_change();
    }
}

#[cfg(test)]
mod tests;
