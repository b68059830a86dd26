//! The invariants that hold for any bytes: one function per fuzz target, which panics on a violation.
//!
//! The same functions serve libFuzzer (`targets/`) and the short deterministic run on a stable toolchain
//! (`src/bin/smoke.rs`). A new target needs a function, an entry in [`TARGETS`], a file in `targets/` with its
//! `[[bin]]`, and a directory in `seeds/`.

mod conversation;
mod oauth;
pub mod reference;

pub use conversation::conversation;
pub use oauth::{callback_query, challenge, jwk_set, jws, metadata};

use creole_proto::framing::sse::encode_event;
use creole_proto::framing::{FramedLine, LineDecoder, SseDecoder, SseError, SseEvent, SseEventRef};
use creole_proto::wire::{
    Fields, Frame, Id, Object, Raw, RawError, ScanLimits, canonical, one_line, quote, scan, unquote,
};
use serde_json::Value;

/// Every target by its name, which is also the name of its directory in `seeds/`.
pub const TARGETS: &[(&str, Check)] = &[
    ("envelope", envelope),
    ("lines", lines),
    ("sse", sse),
    ("conversation", conversation),
    ("challenge", challenge),
    ("metadata", metadata),
    ("callback_query", callback_query),
    ("jws", jws),
    ("jwk_set", jwk_set),
];

/// Panics if the invariant of a target does not hold for these bytes.
pub type Check = fn(&[u8]);

/// The scan agrees with `serde_json`, and every accessor on accepted text agrees with the scan.
pub fn envelope(bytes: &[u8]) {
    let theirs = reference::read(bytes);
    let frame = match scan(bytes, &ScanLimits::default()) {
        Ok(frame) => frame,
        Err(refusal) => {
            assert!(refusal.at <= bytes.len());
            assert!(
                theirs.is_err() || !refusal.kind.is_syntax(),
                "only our scanner rejects it: {refusal}"
            );
            return unchecked(bytes);
        }
    };
    if let Err(error) = &theirs {
        assert!(reference::is_stricter(error), "only serde_json rejects it: {error}");
    }
    let text = std::str::from_utf8(bytes).expect("the scan accepts UTF-8 only");
    let messages = match frame {
        Frame::One(fields) => vec![fields],
        Frame::Batch(messages) => messages,
    };
    let repeated = messages.iter().any(|fields| fields.repeated);
    if let Ok(theirs) = theirs {
        assert_eq!(repeated, theirs.repeated, "repeated keys are detected incorrectly");
    }
    assert_eq!(Raw::parse(text).err(), repeated.then_some(RawError::RepeatedKey));
    messages.iter().for_each(message);
    if !repeated {
        rewritten(text);
    }
}

/// Lines do not depend on how the stream is split, and match the definition.
pub fn lines(bytes: &[u8]) {
    let (limit, cuts, stream) = split_controls(bytes);
    let expected: Vec<_> = stream
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| line.len() > limit || !line.iter().all(|byte| b" \t\r".contains(byte)))
        .map(|line| (line.len() <= limit).then(|| line.to_vec()))
        .collect();
    assert_eq!(lines_of(limit, [stream]), expected);
    assert_eq!(lines_of(limit, stream.chunks(1)), expected);
    assert_eq!(lines_of(limit, cut(stream, cuts)), expected);
}

/// Events do not depend on how the stream is split, and each event is unchanged after it is encoded and decoded again.
pub fn sse(bytes: &[u8]) {
    let (limit, cuts, stream) = split_controls(bytes);
    let events = events_of(limit, [stream]);
    assert_eq!(events_of(limit, stream.chunks(1)), events);
    assert_eq!(events_of(limit, cut(stream, cuts)), events);
    for event in events.into_iter().flatten() {
        assert_eq!(sent(&SseEventRef::from(&event)), event);
    }
    let text = String::from_utf8_lossy(stream);
    let event =
        sent(&SseEventRef { id: Some(&text), event: Some(&text), data: &text, retry: None });
    assert_eq!(event.data, text.replace("\r\n", "\n").replace('\r', "\n"));
}

/// The accessors neither panic nor loop forever on rejected text.
fn unchecked(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    canonical(&text);
    if let Some(object) = Object::new(&text) {
        assert!(object.members().count() <= text.len());
    }
    if let Ok(id) = Id::parse(&text) {
        assert_eq!(id.raw(), text);
    }
    let mut token = Vec::new();
    quote(&mut token, &text);
    let token = String::from_utf8(token).expect("quoting keeps UTF-8");
    assert_eq!(unquote(&token).as_deref(), Some(&*text));
}

fn message(fields: &Fields<'_>) {
    let raw =
        [fields.jsonrpc, fields.method, fields.params, fields.result, fields.error, fields.id];
    assert!(fields.is_object || raw.iter().all(Option::is_none));
    if let Some(id) = fields.id
        && let Ok(parsed) = Id::parse(id)
    {
        assert_eq!(parsed.raw(), id);
        if let Some(text) = unquote(id) {
            assert_eq!(parsed, Id::from_text(&text));
        }
    }
    for text in raw.into_iter().flatten() {
        let value = serde_json::from_str::<Value>(text);
        assert_eq!(unquote(text).as_deref(), value.as_ref().ok().and_then(Value::as_str));
        let Some(object) = Object::new(text) else { continue };
        assert_eq!(object.text(), text);
        if let (Ok(Value::Object(members)), false) = (value, fields.repeated) {
            assert_eq!(object.members().count(), members.len());
            for (key, value) in &members {
                let raw = object.get(key).expect("a member serde_json sees");
                assert_eq!(serde_json::from_str::<Value>(raw).ok().as_ref(), Some(value));
            }
        }
    }
}

/// Rewritten forms of accepted text have the same meaning.
fn rewritten(text: &str) {
    let form = canonical(text);
    assert_eq!(canonical(&form), form, "the canonical form of canonical text differs");
    assert_eq!(canonical(&one_line(text)), form);
    assert!(!one_line(text).contains(['\r', '\n']));
    assert!(Raw::parse(&form).is_ok(), "canonical text is rejected");
    let raw = Raw::parse(text).expect("accepted before");
    let embedded = serde_json::to_string(&[&raw]).expect("valid text embeds");
    assert_eq!(embedded, format!("[{}]", text.trim_ascii()));
}

/// The first bytes of an input choose the limit and the split positions; the rest is the stream.
fn split_controls(bytes: &[u8]) -> (usize, &[u8], &[u8]) {
    let (limit, rest) = bytes.split_first().unwrap_or((&0, b""));
    let (cuts, stream) = rest.split_at(rest.len().min(3));
    (usize::from(*limit), cuts, stream)
}

/// Splits `stream` into chunks whose lengths cycle through `lengths`.
fn cut<'a>(stream: &'a [u8], lengths: &[u8]) -> Vec<&'a [u8]> {
    let mut rest = stream;
    let mut chunks = Vec::new();
    let mut lengths = lengths.iter().map(|&length| usize::from(length)).cycle();
    while !rest.is_empty() && chunks.len() < 1000 {
        let length = lengths.next().unwrap_or(rest.len()).min(rest.len());
        let (chunk, after) = rest.split_at(length);
        chunks.push(chunk);
        rest = after;
    }
    // Three lengths of zero would loop forever.
    chunks.push(rest);
    chunks
}

fn lines_of<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Option<Vec<u8>>> {
    let kept = |line: FramedLine<'_>| match line {
        FramedLine::Complete(bytes) => Some(Some(bytes.to_vec())),
        FramedLine::TooLong(_) => Some(None),
        FramedLine::TooLongEnd(_) => None,
    };
    let mut seen = Vec::new();
    let mut lines = LineDecoder::new(limit);
    chunks.into_iter().for_each(|chunk| lines.feed(chunk, |line| seen.extend(kept(line))));
    seen.extend(lines.finish().and_then(kept));
    assert_eq!(lines.finish(), None);
    seen
}

fn events_of<'a>(
    limit: usize,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Result<SseEvent, SseError>> {
    let mut seen = Vec::new();
    let mut decoder = SseDecoder::new(limit);
    chunks.into_iter().for_each(|chunk| decoder.feed(chunk, |event| seen.push(event)));
    seen
}

/// Encodes `event` and decodes it. The result must be exactly one event.
fn sent(event: &SseEventRef<'_>) -> SseEvent {
    let mut stream = Vec::new();
    encode_event(&mut stream, event);
    let mut received = events_of(usize::MAX, [&*stream]);
    assert_eq!(received.len(), 1, "{received:?}");
    received.remove(0).expect("our own event")
}
