//! The arguments and results of tools in spans, if the configuration wants them.

use creole::internal::telemetry::{CallRecord, FrameDirection};
use creole_proto::wire::Object;

use super::attributes::{Attributes, shorten};
use crate::semconv;
use opentelemetry_proto::tonic::common::v1::any_value::Value;

/// The maximum length of the arguments and of the result in bytes.
const MAX_PAYLOAD: usize = 8 * 1024;

/// Adds the arguments and the result of a call, as the redaction of the server shows them. A message that was too long
/// to be kept whole has none.
pub(super) fn add_payloads(record: &CallRecord, attributes: &mut Attributes) {
    let frames = record.frames();
    let redact = |text: &str| match record.redactor() {
        Some(redact) => redact(text),
        None => text.to_owned(),
    };
    let whole = |direction: FrameDirection| {
        let is_whole = move |frame: &&creole::internal::telemetry::CapturedFrame| {
            frame.direction == direction && frame.text.len() == frame.length
        };
        frames.iter().filter(is_whole)
    };
    let arguments = whole(FrameDirection::ClientIn).find_map(|frame| {
        let message = Object::new(&frame.text)?;
        message.object("params").ok()??.get("arguments").map(redact)
    });
    let result = whole(FrameDirection::ClientOut)
        .filter_map(|frame| Object::new(&frame.text)?.get("result").map(redact))
        .next_back();
    for (key, text) in [(semconv::ARGUMENTS, arguments), (semconv::RESULT, result)] {
        if let Some(text) = text {
            let text = shorten(&text, MAX_PAYLOAD).to_owned();
            attributes.value(key, Value::StringValue(text));
        }
    }
}
