//! Handles messages that cannot be read as a whole. The call that such a message responds to fails at once instead of
//! at its deadline.

use alloc::format;
use alloc::string::{String, ToString};

use super::calls::ExpectedResult;
use super::outbox::{Outbox, ProtocolViolation};
use super::receive::{MAX_ECHO_CHARS, MessageOrigin, shorten};
use super::{CallKey, Machine};
use crate::fault::{Fault, FaultKind};
use crate::wire;
use crate::wire::{Fields, Frame, Object, ScanError, ScanErrorKind, ScanLimits};

/// Maximum nesting depth in the search for the id of a response.
const MAX_PROBE_DEPTH: usize = 100_000;

/// The reason why a message was dropped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// It exceeds the maximum size of a message.
    TooLong,
    /// Other messages use the memory available for messages.
    NoMemory,
}

impl DropReason {
    /// The fault detail for the caller whose response was dropped.
    fn detail(self) -> &'static str {
        match self {
            Self::TooLong => "the server's response is longer than the limit",
            Self::NoMemory => {
                "the memory budget for the server's response is exhausted; try again later"
            }
        }
    }

    /// The log text about the message.
    fn violation_text(self) -> &'static str {
        match self {
            Self::TooLong => "the message is longer than the limit",
            Self::NoMemory => "the memory budget for the message is exhausted",
        }
    }
}

/// The conclusion from the start of a message.
#[derive(Debug, PartialEq, Eq)]
enum MessageStart {
    /// It is the response to the call with this id.
    Response(String),
    /// It is not a response.
    NotAResponse,
    /// It may be a response; its id comes later.
    Undecided,
}

impl Machine {
    /// Handles bytes that the scan rejected. In a list that is nested too deeply, the other items remain usable.
    pub(super) fn take_unreadable(
        &mut self,
        bytes: &[u8],
        error: ScanError,
        arrival: MessageOrigin,
        out: &mut Outbox,
    ) {
        let look =
            ScanLimits { max_depth: MAX_PROBE_DEPTH, max_nodes: usize::MAX, max_batch: usize::MAX };
        let seen = (!error.kind.is_syntax()).then(|| wire::scan(bytes, &look).ok()).flatten();
        let fields = seen.and_then(|frame| match frame {
            Frame::One(fields) => Some(fields),
            Frame::Batch(_) => None,
        });
        if let Some(list) = fields.as_ref().filter(|fields| self.is_page(fields))
            && error.kind == ScanErrorKind::TooDeep
        {
            return self.take_message(list, arrival, out);
        }
        let start = shorten(&String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_ECHO_CHARS)]));
        self.report_violation(ProtocolViolation::Unreadable(error.to_string(), start), out);
        let key = match &fields {
            Some(fields) => self.call_answered_by(fields),
            None => self.call_answered_by_bytes(bytes),
        };
        // Bytes that are not JSON are no response on the channel of a call. The response may still arrive.
        let origin = arrival.call.filter(|_| !error.kind.is_syntax());
        let detail = format!("the server's response is malformed: {error}");
        if let Some(call) = key.or(origin) {
            self.fail_unreadable(call, &detail, out);
        }
    }

    /// Handles the first bytes of a dropped message. `origin` is the call whose channel it came on, if calls have
    /// channels.
    pub fn take_dropped_start(
        &mut self,
        start: &[u8],
        reason: DropReason,
        origin: Option<CallKey>,
        out: &mut Outbox,
    ) {
        self.report_violation(
            ProtocolViolation::Unreadable(reason.violation_text().into(), String::new()),
            out,
        );
        let beginning = read_message_start(start);
        let is_open = origin.is_none() && beginning == MessageStart::Undecided;
        self.unattributed_drop = is_open.then_some(reason);
        let key = match &beginning {
            MessageStart::Response(id) => self.find_call(id),
            MessageStart::NotAResponse | MessageStart::Undecided => None,
        };
        if let Some(call) = key.or(origin) {
            self.fail_unreadable(call, reason.detail(), out);
        }
    }

    /// Handles the last bytes of a dropped message. If neither its start nor its end identifies its call, every waiting
    /// call fails, because one of them would wait until its deadline.
    pub fn take_dropped_end(&mut self, end: &[u8], out: &mut Outbox) {
        let Some(reason) = self.unattributed_drop.take() else { return };
        let calls = match last_id(end) {
            Some(id) => self.find_call(id).into_iter().collect(),
            None => self.calls.keys(),
        };
        for call in calls {
            self.fail_unreadable(call, reason.detail(), out);
        }
    }

    /// Whether this is the response to a list request.
    fn is_page(&self, fields: &Fields<'_>) -> bool {
        let pending = self.call_answered_by(fields).and_then(|call| self.calls.get(call));
        pending.is_some_and(|in_flight_call| {
            matches!(in_flight_call.expected, ExpectedResult::Page(_) | ExpectedResult::Directory)
        })
    }

    /// The call that a message responds to.
    fn call_answered_by(&self, fields: &Fields<'_>) -> Option<CallKey> {
        let is_answer = fields.method.is_none() && fields.result.or(fields.error).is_some();
        fields.id.filter(|_| is_answer).and_then(|id| self.find_call(id))
    }

    fn call_answered_by_bytes(&self, bytes: &[u8]) -> Option<CallKey> {
        match read_message_start(&bytes[..bytes.len().min(MAX_START_BYTES)]) {
            MessageStart::Response(id) => self.find_call(&id),
            MessageStart::NotAResponse | MessageStart::Undecided => None,
        }
    }

    /// Fails a call whose response is unreadable. A listener stays open.
    fn fail_unreadable(&mut self, call: CallKey, detail: &str, out: &mut Outbox) {
        if self.calls.get(call).is_some_and(|pending| pending.is_sent && !pending.is_listening) {
            self.finish_call(call, Fault::new(FaultKind::BackendUnavailable, detail).into(), out);
        }
    }
}

/// Maximum number of bytes that count as the start of a message.
const MAX_START_BYTES: usize = 512;

/// Reads the first members of a message whose rest is missing or invalid.
fn read_message_start(start: &[u8]) -> MessageStart {
    let readable = match core::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) => core::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default(),
    };
    let Some(object) = Object::new(readable) else {
        // An array may contain a response. Text that is not JSON, such as a banner, contains none.
        let may_answer =
            matches!(readable.trim_ascii_start().as_bytes().first(), None | Some(b'['));
        return if may_answer { MessageStart::Undecided } else { MessageStart::NotAResponse };
    };
    let [id, method] = object.get_many(["id", "method"]);
    let is_answer =
        object.enter_member("result").is_some() || object.enter_member("error").is_some();
    match id {
        _ if method.is_some() => MessageStart::NotAResponse,
        Some(id) if is_answer => MessageStart::Response(id.into()),
        _ => MessageStart::Undecided,
    }
}

/// The id at the end of a message, before or after `jsonrpc`, where many servers write it. The last brace closes the
/// message itself, so the id cannot belong to a nested object.
fn last_id(end: &[u8]) -> Option<&str> {
    let members = end.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let before_version = strip_member(members, b"\"jsonrpc\"", |byte| byte != b',');
    let members = match before_version {
        Some((rest, b"\"2.0\"")) => rest.strip_suffix(b",")?.trim_ascii_end(),
        _ => members,
    };
    let (rest, id) = strip_member(members, b"\"id\"", |byte| byte.is_ascii_digit())?;
    let is_member = rest.ends_with(b",") || rest.ends_with(b"{");
    core::str::from_utf8(id).ok().filter(|id| is_member && !id.is_empty())
}

/// Removes the last member, if it has this key and its value consists of such bytes.
fn strip_member<'a>(
    members: &'a [u8],
    key: &[u8],
    is_value: impl Fn(u8) -> bool,
) -> Option<(&'a [u8], &'a [u8])> {
    let length = members.iter().rev().take_while(|byte| is_value(**byte) && **byte != b':').count();
    let (rest, value) = members.split_at(members.len() - length);
    let rest = rest.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end().strip_suffix(key)?;
    Some((rest.trim_ascii_end(), value.trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_message_contains_its_id() {
        for (start, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"te"#,
                MessageStart::Response("7".into()),
            ),
            (r#" {"id":7,"error":{"code":1,"mess"#, MessageStart::Response("7".into())),
            (r#"{"result":{"id":9,"content":["#, MessageStart::Undecided),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"#,
                MessageStart::NotAResponse,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"#,
                MessageStart::NotAResponse,
            ),
            ("garbage", MessageStart::NotAResponse),
            (r#"[{"jsonrpc":"2.0""#, MessageStart::Undecided),
            ("", MessageStart::Undecided),
        ] {
            assert_eq!(read_message_start(start.as_bytes()), expected, "{start}");
        }
        assert_eq!(
            read_message_start(b"{\"id\":7,\"result\":{\"a\":\"\xc3"),
            MessageStart::Response("7".into())
        );
    }

    #[test]
    fn the_end_of_a_message_contains_its_id() {
        for (end, expected) in [
            (r#"xx"}]},"jsonrpc":"2.0","id":12}"#, Some("12")),
            (r#"xx"}]},"id":12,"jsonrpc":"2.0"}"#, Some("12")),
            ("xx\"}]} , \"id\" : 12 } \r", Some("12")),
            (r#"xx"}]},"jsonrpc":"2.0"}"#, None),
            (r#"xx"}],"id":12}}"#, None),
            (r#""a\"id":12}"#, None),
            (r#","id":"12"}"#, None),
            (r#","id":}"#, None),
            ("", None),
        ] {
            assert_eq!(last_id(end.as_bytes()), expected, "{end}");
        }
    }
}
