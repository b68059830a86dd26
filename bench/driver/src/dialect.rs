//! The messages that the driver sends in each era of the protocol, and the parser for the responses.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The two eras of the protocol: with a handshake, and stateless.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: `initialize` first.
    Legacy,
    /// 2026-07-28: no handshake, the version in every request.
    Modern,
}

impl Era {
    /// Parses the name of an era.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "legacy" => Ok(Self::Legacy),
            "modern" => Ok(Self::Modern),
            _ => Err(format!("unknown era `{name}`: use `legacy` or `modern`")),
        }
    }

    /// Appends a call of the `echo` tool as a line. Its 16-byte message is derived from `id`.
    pub fn write_call(self, id: u64, out: &mut Vec<u8>) {
        self.write_call_of("echo", id, out);
        out.push(b'\n');
    }

    /// Appends a call of a tool. Its 16-byte message is derived from `id`.
    pub fn write_call_of(self, tool: &str, id: u64, out: &mut Vec<u8>) {
        let tail = match self {
            Self::Legacy => "\"}}}",
            Self::Modern => MODERN_TAIL,
        };
        let (id_text, message) = (id.to_string(), message_of(id));
        for part in [CALL_HEAD, &id_text, CALL_NAME, tool, CALL_MESSAGE, &message, tail] {
            out.extend_from_slice(part.as_bytes());
        }
    }
}

/// The 16-byte message that call number `id` sends and expects back.
pub fn message_of(id: u64) -> String {
    format!("{id:016x}")
}

const CALL_HEAD: &str = r#"{"jsonrpc":"2.0","id":"#;

const CALL_NAME: &str = r#","method":"tools/call","params":{"name":""#;

const CALL_MESSAGE: &str = r#"","arguments":{"message":""#;

/// The handshake's request; its id is the first one, 0.
pub const INITIALIZE: &[u8] = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"bench-driver","version":"0.1.0"}}}"#,
    "\n"
)
.as_bytes();

/// The notification that ends the handshake.
pub const INITIALIZED: &[u8] =
    concat!(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "\n").as_bytes();

const MODERN_TAIL: &str = concat!(
    r#""},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench-driver","version":"0.1.0"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
);

/// A parsed line from the server.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The response to the request with this id, with its text if it has one.
    Answer(u64, Option<Cow<'a, str>>),
    /// A notification, which the benchmark does not count.
    Notification,
}

/// Parses one line from the server. An error response is an error.
pub fn read_line(line: &[u8]) -> Result<Line<'_>, String> {
    let shown = || String::from_utf8_lossy(&line[..line.len().min(400)]).into_owned();
    let message: Message<'_> = serde_json::from_slice(line).map_err(|error| {
        format!("the server wrote a line that is not a response ({error}): {}", shown())
    })?;
    match message {
        Message { id: Some(id), result: Some(result), .. } if !result.is_error => {
            Ok(Line::Answer(id, result.content.into_iter().next().and_then(|block| block.text)))
        }
        Message { id: None, method: Some(_), .. } => Ok(Line::Notification),
        _ => Err(format!("the server did not respond with a result: {}", shown())),
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    method: Option<IgnoredAny>,
    #[serde(borrow)]
    result: Option<CallResult<'a>>,
}

#[derive(Deserialize)]
struct CallResult<'a> {
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
    #[serde(default, rename = "isError")]
    is_error: bool,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

#[cfg(test)]
mod tests {
    use super::{Era, Line, message_of, read_line};

    #[test]
    fn a_call_is_one_line_of_json_with_a_message_of_16_bytes() {
        for era in [Era::Legacy, Era::Modern] {
            let mut out = Vec::new();
            era.write_call(42, &mut out);
            assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
            let call: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(call["id"], 42);
            assert_eq!(call["params"]["arguments"]["message"], "000000000000002a");
            assert_eq!(call["params"]["_meta"].is_object(), era == Era::Modern);
        }
    }

    #[test]
    fn an_answer_gives_its_id_and_text() {
        let line = br#"{"id":7,"result":{"content":[{"type":"text","text":"0000000000000007"}]}}"#;
        assert_eq!(read_line(line), Ok(Line::Answer(7, Some(message_of(7).into()))));
    }

    #[test]
    fn an_error_is_not_an_answer() {
        let refused = br#"{"id":7,"error":{"code":-32602,"message":"no"}}"#;
        let failed = br#"{"id":7,"result":{"content":[],"isError":true}}"#;
        assert!(read_line(refused).is_err());
        assert!(read_line(failed).is_err());
        assert!(read_line(b"hello").is_err());
    }
}
