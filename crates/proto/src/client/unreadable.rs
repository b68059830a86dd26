//! Messages that cannot be read as a whole: the call that one of them answers fails at once instead of waiting.

use alloc::format;
use alloc::string::{String, ToString};

use super::calls::ExpectedResult;
use super::outbox::{Outbox, ProtocolViolation};
use super::receive::{MAX_ECHO_CHARS, MessageOrigin, shorten};
use super::{CallKey, Machine};
use crate::fault::{Fault, FaultKind};
use crate::wire;
use crate::wire::{Fields, Frame, Object, ScanError, ScanErrorKind, ScanLimits};

/// How deep a message is looked into to find out whose answer it is.
const MAX_PROBE_DEPTH: usize = 100_000;

/// Why a message was dropped before its end was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// It is longer than the longest message that is read.
    TooLong,
    /// Other messages take the memory that there is for them.
    NoMemory,
}

impl DropReason {
    /// What the caller reads whose answer was dropped.
    fn detail(self) -> &'static str {
        match self {
            Self::TooLong => "the server's answer is longer than what is read",
            Self::NoMemory => "there is no memory left for the server's answer; try again later",
        }
    }

    /// What the log says of the message.
    fn violation_text(self) -> &'static str {
        match self {
            Self::TooLong => "the message is longer than what is read",
            Self::NoMemory => "there is no memory left for the message",
        }
    }
}

/// What the beginning of a message tells of it.
#[derive(Debug, PartialEq, Eq)]
enum MessageStart {
    /// It is the answer to a call of this id.
    Response(String),
    /// It is no answer.
    NotAResponse,
    /// It may be an answer; its id comes later.
    Undecided,
}

impl Machine {
    /// Takes bytes that the scan refused. Of a list that is nested too deep the items that are not can still be used.
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
        let found = match &fields {
            Some(fields) => self.call_answered_by(fields),
            None => self.call_answered_by_bytes(bytes),
        };
        // What is no JSON at all was no answer on the channel of a call: that may still come.
        let origin = arrival.call.filter(|_| !error.kind.is_syntax());
        let detail = format!("the server's answer cannot be read: {error}");
        if let Some(call) = found.or(origin) {
            self.fail_unreadable(call, &detail, out);
        }
    }

    /// Takes the first bytes of a message that is dropped; `origin` is the call on whose own channel it came, where
    /// calls have one.
    pub fn take_dropped_start(
        &mut self,
        start: &[u8],
        why: DropReason,
        origin: Option<CallKey>,
        out: &mut Outbox,
    ) {
        self.report_violation(
            ProtocolViolation::Unreadable(why.violation_text().into(), String::new()),
            out,
        );
        let beginning = read_message_start(start);
        let is_open = origin.is_none() && beginning == MessageStart::Undecided;
        self.unattributed_drop = is_open.then_some(why);
        let found = match &beginning {
            MessageStart::Response(id) => self.find_call(id),
            MessageStart::NotAResponse | MessageStart::Undecided => None,
        };
        if let Some(call) = found.or(origin) {
            self.fail_unreadable(call, why.detail(), out);
        }
    }

    /// Takes the last bytes of a message that was dropped. If neither its beginning nor its end tells whose answer it
    /// is, every call that waits for one fails: one of them would wait in vain.
    pub fn take_dropped_end(&mut self, end: &[u8], out: &mut Outbox) {
        let Some(why) = self.unattributed_drop.take() else { return };
        let calls = match last_id(end) {
            Some(id) => self.find_call(id).into_iter().collect(),
            None => self.calls.keys(),
        };
        for call in calls {
            self.fail_unreadable(call, why.detail(), out);
        }
    }

    /// Whether this is the answer to a request for a list.
    fn is_page(&self, fields: &Fields<'_>) -> bool {
        let pending = self.call_answered_by(fields).and_then(|call| self.calls.get(call));
        pending.is_some_and(|it| {
            matches!(it.expected, ExpectedResult::Page(_) | ExpectedResult::Directory)
        })
    }

    /// The call that a message answers.
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

    /// Fails a call whose answer cannot be read; a listener goes on.
    fn fail_unreadable(&mut self, call: CallKey, detail: &str, out: &mut Outbox) {
        if self.calls.get(call).is_some_and(|pending| pending.is_sent && !pending.is_listening) {
            self.finish_call(call, Fault::new(FaultKind::BackendUnavailable, detail).into(), out);
        }
    }
}

/// How much of a message is looked at as its beginning.
const MAX_START_BYTES: usize = 512;

/// Reads the first members of a message whose rest is missing or wrong.
fn read_message_start(start: &[u8]) -> MessageStart {
    let readable = match core::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) => core::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default(),
    };
    let Some(object) = Object::new(readable) else {
        // An array may hold an answer; what is no JSON, such as a banner, holds none.
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

/// The id that stands last in a message, before or after `jsonrpc`: many servers write it there. What the last brace
/// closes is the message itself, so no id of something inside is meant.
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

/// Takes the last member off, if it has this key and a value of such bytes.
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
    fn the_beginning_tells_whose_answer_a_message_is() {
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
    fn the_end_tells_whose_answer_a_message_was() {
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
