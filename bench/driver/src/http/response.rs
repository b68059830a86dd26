//! Parses responses from the received bytes.

use memchr::memmem;

use crate::dialect::{self, Line};
use crate::http::requests::Asked;

/// A complete response.
#[derive(Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The status code.
    pub status: u16,
    /// The id of the session that it opens, if it opens one.
    pub session: Option<&'a str>,
    /// Whether it is an event stream.
    pub is_stream: bool,
    /// The body without its framing.
    pub body: &'a [u8],
    /// Its length in bytes.
    pub length: usize,
}

/// The head of a response.
pub struct Head<'a> {
    /// The status code.
    pub status: u16,
    text: &'a str,
    /// Its length in bytes.
    pub length: usize,
}

impl<'a> Head<'a> {
    /// Parses the head at the beginning of the received bytes, if it is complete.
    pub fn find(received: &'a [u8]) -> Result<Option<Self>, String> {
        let Some(end) = memmem::find(received, b"\r\n\r\n") else { return Ok(None) };
        let text = std::str::from_utf8(&received[..end]).map_err(|_| "the head is not UTF-8")?;
        let code = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = code.ok_or_else(|| format!("no HTTP response: {text:.200}"))?;
        Ok(Some(Self { status, text, length: end + 4 }))
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.text.split("\r\n").skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    /// Whether the body is an event stream.
    pub fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}

/// Parses the response at the beginning of the received bytes, if it is complete. A chunked body is assembled in
/// `whole`.
pub fn find<'a>(
    received: &'a [u8],
    whole: &'a mut Vec<u8>,
) -> Result<Option<Response<'a>>, String> {
    let Some(head) = Head::find(received)? else { return Ok(None) };
    let rest = &received[head.length..];
    let (body, length) = if let Some(length) = head.header("content-length") {
        let length: usize =
            length.parse().map_err(|_| format!("invalid Content-Length `{length}`"))?;
        match rest.get(..length) {
            Some(body) => (body, length),
            None => return Ok(None),
        }
    } else if head.header("transfer-encoding").is_some() {
        whole.clear();
        match join_chunks(rest, whole)? {
            Some(length) => (whole.as_slice(), length),
            None => return Ok(None),
        }
    } else {
        (&rest[..0], 0)
    };
    Ok(Some(Response {
        status: head.status,
        session: head.header("mcp-session-id"),
        is_stream: head.is_stream(),
        body,
        length: head.length + length,
    }))
}

/// Appends all chunks. Returns their length in bytes, or `None` if the last chunk is missing.
fn join_chunks(received: &[u8], whole: &mut Vec<u8>) -> Result<Option<usize>, String> {
    let mut read = 0;
    loop {
        let Some(end) = memmem::find(&received[read..], b"\r\n") else { return Ok(None) };
        let digits = std::str::from_utf8(&received[read..read + end]).unwrap_or("");
        let size = usize::from_str_radix(digits.split(';').next().unwrap_or("").trim(), 16)
            .map_err(|_| format!("invalid chunk size `{digits}`"))?;
        read += end + 2;
        let Some(chunk) = received.get(read..read + size + 2) else { return Ok(None) };
        whole.extend_from_slice(&chunk[..size]);
        read += size + 2;
        if size == 0 {
            return Ok(Some(read));
        }
    }
}

/// Checks that a response is the correct one for the request with this id.
pub fn check(response: &Response<'_>, asked: &Asked, id: u64) -> Result<(), String> {
    let shown = || String::from_utf8_lossy(&response.body[..response.body.len().min(400)]);
    if response.status != 200 {
        return Err(format!("status {} for id {id}: {}", response.status, shown()));
    }
    let message = if response.is_stream { answer_in(response.body)? } else { response.body };
    match asked {
        Asked::Call(_) => {
            let Line::Answer(answered, text) = dialect::read_line(message)? else {
                return Err(format!(
                    "a notification instead of the response to id {id}: {}",
                    shown()
                ));
            };
            let expected = dialect::message_of(id);
            if answered == id && text.as_deref() == Some(&expected) {
                return Ok(());
            }
            Err(format!("id {answered} with {text:?} instead of id {id} with {expected}"))
        }
        Asked::List(count) => {
            let found = memmem::find_iter(message, NAME).count();
            let answered = memmem::find(message, format!("\"id\":{id}").as_bytes());
            if found == *count && answered.is_some() {
                return Ok(());
            }
            Err(format!("{found} tools instead of {count} for id {id}: {}", shown()))
        }
    }
}

/// The beginning of each tool's name in the long list.
const NAME: &[u8] = br#""name":"tool_"#;

/// The last message of an event stream, which is the response.
fn answer_in(events: &[u8]) -> Result<&[u8], String> {
    events
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_prefix(b"data:"))
        .map(<[u8]>::trim_ascii)
        .rfind(|data| !data.is_empty())
        .ok_or_else(|| {
            format!("no message in the event stream: {}", String::from_utf8_lossy(events))
        })
}

#[cfg(test)]
mod tests {
    use super::{Asked, check, find};

    const ANSWER: &str = r#"{"id":7,"result":{"content":[{"text":"0000000000000007"}]}}"#;

    fn json() -> Vec<u8> {
        let length = ANSWER.len();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{ANSWER}").into_bytes()
    }

    fn stream() -> Vec<u8> {
        let (first, second) = (": hi\n\ndata:\n\n", format!("data: {ANSWER}\n\n"));
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\
             \r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
            first.len(),
            second.len()
        )
        .into_bytes()
    }

    #[test]
    fn a_response_is_found_when_all_of_it_is_there() {
        for bytes in [json(), stream()] {
            let mut whole = Vec::new();
            for cut in 0..bytes.len() {
                assert_eq!(find(&bytes[..cut], &mut whole), Ok(None), "{cut}");
            }
            let found = find(&bytes, &mut whole).unwrap().unwrap();
            assert_eq!(found.length, bytes.len());
            assert_eq!(check(&found, &Asked::Call("echo".to_owned()), 7), Ok(()));
        }
    }

    #[test]
    fn a_wrong_answer_is_an_error() {
        let bytes = json();
        let mut whole = Vec::new();
        let found = find(&bytes, &mut whole).unwrap().unwrap();
        assert!(check(&found, &Asked::Call("echo".to_owned()), 8).is_err());
        assert!(check(&found, &Asked::List(1), 7).is_err());
    }
}
