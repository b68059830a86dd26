//! Takes secrets out of results, questions and arguments.

mod redactor;

use std::sync::Arc;

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::Fault;
use creole_proto::model::{Content, Contents, InputRequest};
use creole_proto::operation::{Event, Operation, Outcome, Payload, RelayedResult};
use creole_proto::wire::Raw;

use super::edit::{Edit, members};
pub use redactor::Redactor;

/// What secrets are taken out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedactFrom {
    /// What comes back: results, the words of faults and questions, and progress and log messages.
    Results,
    /// What tools and prompts are given.
    Arguments,
    /// All of that.
    Both,
}

/// A layer that takes secrets out of results and arguments.
#[derive(Clone, Debug)]
pub struct Redact {
    redactor: Arc<Redactor>,
    from: RedactFrom,
}

impl Redact {
    /// A layer that takes this out.
    pub fn new(redactor: Redactor, from: RedactFrom) -> Self {
        Self { redactor: Arc::new(redactor), from }
    }
}

impl Redactor {
    fn payload(&self, payload: &mut Payload) {
        match payload {
            Payload::Tool(result) => {
                result.content.iter_mut().for_each(|block| self.block(block));
                self.replace(&mut result.structured);
            }
            Payload::Contents(contents, _) => contents.iter_mut().for_each(|it| self.contents(it)),
            Payload::Prompt(result) => {
                result.messages.iter_mut().for_each(|message| self.block(&mut message.content));
            }
            Payload::Relayed(relayed) => self.relayed(relayed),
            _ => {}
        }
    }

    fn block(&self, block: &mut Content) {
        match block {
            Content::Text { text, .. } => self.text(text),
            Content::Resource { resource } => self.contents(resource),
            _ => {}
        }
    }

    fn contents(&self, contents: &mut Contents) {
        if let Some(text) = &mut contents.text {
            self.text(text);
        }
    }

    fn relayed(&self, relayed: &mut RelayedResult) {
        let change = |key: &str, value: &str| {
            let redacted = match key {
                "structuredContent" | "_meta" | "completion" => {
                    let data = Raw::parse(value).ok().and_then(|data| self.data(&data));
                    data.map(|data| data.as_str().to_owned())
                }
                "content" | "contents" | "messages" | "description" => self.blocks(value),
                _ => None,
            };
            redacted.map_or(Edit::Keep, Edit::Set)
        };
        let redacted = members(relayed.result().as_str(), change);
        if let Some(result) = redacted.and_then(|text| Raw::parse(&text).ok()) {
            relayed.set_result(result);
        }
    }

    fn fault(&self, fault: &mut Fault) {
        self.text(&mut fault.detail);
        self.replace(&mut fault.data);
    }

    fn arguments(&self, operation: &mut Operation) {
        if let Operation::CallTool { arguments, .. } | Operation::GetPrompt { arguments, .. } =
            operation
        {
            self.replace(arguments);
        }
    }

    fn replace(&self, data: &mut Option<Raw>) {
        if let Some(redacted) = data.as_ref().and_then(|data| self.data(data)) {
            *data = Some(redacted);
        }
    }

    /// What a question says; what is answered stays, since the answer has to fit it.
    fn question(&self, question: &mut InputRequest) {
        match question {
            InputRequest::Form { message, .. } | InputRequest::Url { message, .. } => {
                self.text(message)
            }
            InputRequest::Sample { params } => {
                let redacted = members(params.as_str(), |key, value| match key {
                    "messages" | "systemPrompt" => self.blocks(value).map_or(Edit::Keep, Edit::Set),
                    _ => Edit::Keep,
                });
                if let Some(redacted) = redacted.and_then(|text| Raw::parse(&text).ok()) {
                    *params = redacted;
                }
            }
            InputRequest::Roots => {}
        }
    }

    /// Progress and log messages without what is taken out.
    fn event(&self, mut event: Event) -> Event {
        match &mut event {
            Event::Progress { message, .. } => {
                message.iter_mut().for_each(|message| self.text(message));
            }
            Event::Log { logger, data, .. } => {
                logger.iter_mut().for_each(|logger| self.text(logger));
                if let Some(redacted) = self.data(data) {
                    *data = redacted;
                }
            }
            Event::ElicitationCompleted(_) => {}
        }
        event
    }
}

impl Middleware for Redact {
    fn handle<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if self.from != RedactFrom::Results {
            self.redactor.arguments(&mut call.operation);
        }
        if self.from == RedactFrom::Arguments {
            return next.call(call);
        }
        let [events, questions] = [(); 2].map(|()| Arc::clone(&self.redactor));
        let context = call.context.map_events(move |event| Some(events.event(event)));
        call.context = context.map_input_requests(move |mut question| {
            questions.question(&mut question);
            question
        });
        Box::pin(async move {
            let mut outcome = next.call(call).await;
            match &mut outcome {
                Outcome::Complete(payload) => self.redactor.payload(payload),
                Outcome::Fail(fault) => self.redactor.fault(fault),
                Outcome::InputRequired { requests: asks, .. } => {
                    asks.iter_mut().for_each(|ask| self.redactor.question(&mut ask.question));
                }
                Outcome::Detach(_) => {}
            }
            outcome
        })
    }

    fn rewrite_input_request(&self, question: &mut InputRequest) {
        if self.from != RedactFrom::Arguments {
            self.redactor.question(question);
        }
    }
}

#[cfg(test)]
mod tests;
