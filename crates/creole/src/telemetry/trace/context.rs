//! The trace context: `traceparent` and `tracestate` (W3C Trace Context, level 1).

use std::fmt::Write as _;

/// The id of a trace.
pub type TraceId = [u8; 16];

/// The id of a span.
pub type SpanId = [u8; 8];

/// A span of another call that a span is related to.
pub type Link = TraceContext;

/// The length of `traceparent`.
const LENGTH: usize = 55;

/// The flag of a sampled trace.
const SAMPLED: u8 = 1;

/// The maximum length of `tracestate` in bytes.
const MAX_STATE: usize = 512;

/// The maximum number of members of `tracestate`.
const MAX_STATE_MEMBERS: usize = 32;

/// The maximum length of the key and of the value of a member.
const MAX_STATE_PART: usize = 256;

/// A span, and the trace that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace, not zero.
    pub trace_id: TraceId,
    /// The span, not zero.
    pub span_id: SpanId,
    /// The flags as received.
    pub flags: u8,
}

impl TraceContext {
    /// The context of a sampled span.
    pub fn sampled(trace_id: TraceId, span_id: SpanId) -> Self {
        Self { trace_id, span_id, flags: SAMPLED }
    }

    /// Reads `traceparent`. Only version 00 in lower case is accepted, and only ids that are not zero.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text: &[u8; LENGTH] = text.try_into().ok()?;
        let is_divided = text.starts_with(b"00-") && text[35] == b'-' && text[52] == b'-';
        if !is_divided {
            return None;
        }
        let context = Self {
            trace_id: unhex(&text[3..35])?,
            span_id: unhex(&text[36..52])?,
            flags: unhex::<1>(&text[53..55])?[0],
        };
        let is_valid = context.trace_id != [0; 16] && context.span_id != [0; 8];
        is_valid.then_some(context)
    }

    /// Whether the sender recorded the span.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The context as `traceparent`.
    pub fn to_text(self) -> String {
        format!("00-{}-{}-{:02x}", hex(&self.trace_id), hex(&self.span_id), self.flags)
    }
}

/// Bytes as hexadecimal digits in lower case.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn unhex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// Whether a text is a valid `tracestate`.
pub(super) fn is_tracestate(text: &str) -> bool {
    if text.is_empty() || text.len() > MAX_STATE {
        return false;
    }
    let mut keys: Vec<&str> = Vec::new();
    for member in text.split(',') {
        let member = member.trim_matches([' ', '\t']);
        // Empty members are allowed.
        if member.is_empty() {
            continue;
        }
        let Some((key, value)) = member.split_once('=') else { return false };
        if keys.len() == MAX_STATE_MEMBERS
            || keys.contains(&key)
            || !is_state_key(key)
            || !is_state_value(value)
        {
            return false;
        }
        keys.push(key);
    }
    !keys.is_empty()
}

/// Whether this is a key of `tracestate`: a name, or a tenant and a system.
fn is_state_key(key: &str) -> bool {
    let (tenant, system) = key.split_once('@').map_or((key, None), |(a, b)| (a, Some(b)));
    let is_rest =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(&byte);
    let is_name = |name: &str, may_start_with_digit: bool| {
        let first = name.bytes().next();
        let is_first =
            |byte: u8| byte.is_ascii_lowercase() || may_start_with_digit && byte.is_ascii_digit();
        first.is_some_and(is_first) && name.bytes().all(is_rest)
    };
    let is_system = |system: &str| system.len() <= 14 && is_name(system, false);
    key.len() <= MAX_STATE_PART && is_name(tenant, system.is_some()) && system.is_none_or(is_system)
}

fn is_state_value(value: &str) -> bool {
    let is_value = |byte: u8| matches!(byte, b' '..=b'~') && !b",=".contains(&byte);
    !value.is_empty() && value.len() <= MAX_STATE_PART && value.bytes().all(is_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_valid_traceparent_is_read_and_written_again() {
        for text in [VALID, &VALID.replace("-01", "-00"), &VALID.replace("-01", "-ff")] {
            let context = TraceContext::parse(text.as_bytes()).unwrap();
            assert_eq!(context.to_text(), text);
            assert_eq!(context.is_sampled(), !text.ends_with("-00"));
        }
    }

    #[test]
    fn any_other_form_of_traceparent_is_refused() {
        let invalid = [
            String::new(),
            VALID.to_uppercase(),
            VALID.replace("0af7", "0AF7"),
            VALID.replacen("00-", "ff-", 1),
            VALID.replacen("00-", "01-", 1),
            VALID.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            VALID.replace("b7ad6b7169203331", &"0".repeat(16)),
            VALID.replace('-', "_"),
            VALID.replace("b7ad", "b7ag"),
            format!("{VALID}-00"),
            format!("{VALID} "),
            format!("\n{VALID}"),
            VALID[..54].to_owned(),
            VALID.replace("-01", "-1"),
            "0".repeat(65536),
            VALID.replace("b7ad", "b7\u{e9}"),
        ];
        for text in invalid {
            assert_eq!(TraceContext::parse(text.as_bytes()), None, "{text:.80}");
        }
    }

    #[test]
    fn tracestate_has_its_form_and_its_limits() {
        let long_key = "k".repeat(256);
        let members = |count: usize| {
            (0..count).map(|number| format!("k{number}=v")).collect::<Vec<_>>().join(",")
        };
        for valid in [
            "a=1",
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
            " a=1 ,\tb=2,,",
            "1t@sys=x y",
            "a_-*/9=!~",
            &format!("{long_key}=v"),
            &members(32),
        ] {
            assert!(is_tracestate(valid), "{valid}");
        }
        for invalid in [
            "",
            ",",
            "a",
            "a=",
            "=1",
            "A=1",
            "1a=1",
            "a@=1",
            "@s=1",
            "a@1=2",
            "a@b@c=1",
            &format!("a@{}=1", "s".repeat(15)),
            "a=1,a=2",
            "a=1=2",
            "a=\n",
            "a=\u{e9}",
            &format!("k{long_key}=v"),
            &format!("a={}", "v".repeat(257)),
            &members(33),
            &format!("a={},b={},c=1", "v".repeat(254), "v".repeat(254)),
        ] {
            assert!(!is_tracestate(invalid), "{invalid}");
        }
    }
}
