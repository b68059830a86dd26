//! The messages of a call as the API shows them.

use creole::internal::telemetry::{CallRecord, CapturedFrame, FrameDirection, StepKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::clock;
use crate::live::captures::secrets::redact;

/// A message of a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct FrameView {
    /// `client_in`, `upstream_out`, `upstream_in` or `client_out`.
    side: &'static str,
    /// When, since the start of the call.
    at_ms: f64,
    /// The upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// The step that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u16>,
    /// The length of the whole message.
    bytes: usize,
    /// The message, with secrets replaced. Empty if it was too long to be searched for them.
    pub(super) text: String,
    /// Whether the text is not the whole message.
    truncated: bool,
    /// Whether something was replaced.
    redacted: bool,
    /// The number of an earlier message whose arguments or result have the same bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    same_as: Option<usize>,
}

/// The messages of a call, without secrets.
pub(super) fn views(record: &CallRecord, frames: &[CapturedFrame]) -> Vec<FrameView> {
    let steps = record.steps();
    let upstream_of = |step: Option<u16>| match &steps.get(usize::from(step?))?.kind {
        StepKind::UpstreamRequest { upstream, .. } => Some(upstream.to_string()),
        _ => None,
    };
    let contents: Vec<Option<&str>> = frames.iter().map(|frame| content(&frame.text)).collect();
    let view = |(index, frame): (usize, &CapturedFrame)| {
        let truncated = frame.text.len() < frame.length;
        let hidden = if truncated { None } else { redact(record, &frame.text) };
        let (text, redacted) = hidden.unwrap_or_default();
        let same = contents[..index].iter().position(|it| it.is_some() && *it == contents[index]);
        FrameView {
            side: match frame.direction {
                FrameDirection::ClientIn => "client_in",
                FrameDirection::UpstreamOut => "upstream_out",
                FrameDirection::UpstreamIn => "upstream_in",
                FrameDirection::ClientOut => "client_out",
            },
            at_ms: clock::ms(frame.at),
            upstream: upstream_of(frame.step),
            step: frame.step,
            bytes: frame.length,
            text,
            truncated,
            redacted,
            same_as: same,
        }
    };
    frames.iter().enumerate().map(view).collect()
}

/// The arguments or the result of a message, as its bytes.
fn content(text: &str) -> Option<&str> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        params: Option<Parameters<'a>>,
        #[serde(borrow)]
        result: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Parameters<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let message: Message<'_> = serde_json::from_str(text).ok()?;
    message.result.or_else(|| message.params?.arguments).map(RawValue::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_of_a_message_is_its_bytes() {
        assert_eq!(content(r#"{"params":{"arguments":{"a": 1}}}"#), Some(r#"{"a": 1}"#));
        assert_eq!(content(r#"{"id":1,"result":{ }}"#), Some("{ }"));
        assert_eq!(content(r#"{"id":1,"error":{}}"#), None);
        assert_eq!(content("{"), None);
    }
}
