//! The size limit layer: refuses arguments and results that are too large.

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::operation::{Event, Operation, Outcome};
use creole_proto::wire::Raw;

use crate::layers::results::result_size::result_size;

/// A layer that refuses arguments and results that are too large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeLimit {
    /// The maximum size of a call's arguments in bytes.
    pub arguments: Option<usize>,
    /// The maximum size of a result in bytes. Also applies to the text of progress and log messages.
    pub results: Option<usize>,
}

impl SizeLimit {
    fn check_arguments(&self, operation: &Operation) -> Result<(), Fault> {
        let size = operation.arguments().map_or(0, |arguments: &Raw| arguments.as_str().len());
        let Some(limit) = self.arguments.filter(|limit| size > *limit) else { return Ok(()) };
        let detail = format!("the arguments have {size} bytes; the limit is {limit}");
        let kind = match operation {
            Operation::CallTool { .. } => FaultKind::InvalidArguments,
            _ => FaultKind::InvalidParams,
        };
        Err(Fault::new(kind, detail).with_subject(operation.target()))
    }
}

fn too_large(size: usize, limit: usize, is_tool: bool) -> Fault {
    let detail = format!("the result has {size} bytes; the limit is {limit}");
    Fault::new(if is_tool { FaultKind::ToolFailed } else { FaultKind::Internal }, detail)
}

/// An event within the limit: progress values are kept, text that is too long is removed.
fn shorten_event(mut event: Event, limit: usize) -> Event {
    match &mut event {
        Event::Progress { message, .. } => {
            *message = message.take().filter(|message| message.len() <= limit);
        }
        Event::Log { data, .. } => {
            let size = data.as_str().len();
            if size > limit {
                let words = format!("the message has {size} bytes; the limit is {limit}");
                *data = Raw::from_value(&words);
            }
        }
        Event::ElicitationCompleted(_) => {}
    }
    event
}

impl Middleware for SizeLimit {
    fn kind(&self) -> &'static str {
        "size-limit"
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if let Err(fault) = self.check_arguments(&call.operation) {
            return Box::pin(async move { fault.into() });
        }
        let Some(limit) = self.results else { return next.call(call) };
        let mut call = call;
        call.context = call.context.map_events(move |event| Some(shorten_event(event, limit)));
        let is_tool = matches!(call.operation, Operation::CallTool { .. });
        let subject = call.operation.target().to_owned();
        Box::pin(async move {
            let outcome = next.call(call).await;
            let Outcome::Complete(payload) = &outcome else { return outcome };
            match result_size(payload).filter(|size| *size > limit) {
                Some(size) => too_large(size, limit, is_tool).with_subject(&subject).into(),
                None => outcome,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::testing::{FlakyTools, ask, call, events_of, fault, text};

    fn serve(arguments: Option<usize>, results: Option<usize>) -> creole::Service {
        let limit = SizeLimit { arguments, results };
        FlakyTools::serve(limit, Fault::new(FaultKind::Internal, ""), 0).0
    }

    #[tokio::test]
    async fn arguments_that_are_too_large_do_not_reach_the_tool() {
        let service = serve(Some(7), None);
        assert_eq!(text(&call(&service, "a", "read", r#"{"a":1}"#).await), "done");
        let refused = fault(call(&service, "a", "read", r#"{"a":12}"#).await);
        assert_eq!(refused.kind, FaultKind::InvalidArguments);
        assert_eq!(refused.detail, "the arguments have 8 bytes; the limit is 7");
    }

    #[tokio::test]
    async fn results_that_are_too_large_do_not_reach_the_client() {
        assert_eq!(text(&call(&serve(None, Some(4)), "a", "read", "{}").await), "done");
        let service = serve(None, Some(3));
        let refused = fault(call(&service, "a", "read", "{}").await);
        assert_eq!(refused.detail, "the result has 4 bytes; the limit is 3");
        let read = Operation::ReadResource { uri: "test://open".to_owned() };
        assert_eq!(fault(ask(&service, "a", read).await).kind, FaultKind::Internal);
    }

    #[tokio::test]
    async fn messages_that_are_too_large_are_told_in_short_and_progress_without_words() {
        let limit = SizeLimit { arguments: None, results: Some(6) };
        let events = events_of(limit, "work", "{\"k\":1}").await;
        let [Event::Progress { progress, message, .. }, Event::Log { data, .. }] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!((*progress, message.as_deref()), (1.0, Some("work")));
        assert_eq!(data.as_str(), r#""the message has 7 bytes; the limit is 6""#);
        let events = events_of(limit, "worked on", "12").await;
        let [Event::Progress { message, .. }, Event::Log { data, .. }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!((message, data.as_str()), (&None, "12"));
    }
}
