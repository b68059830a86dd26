//! Parses server-sent events incrementally.

use serde_json::Value;

/// The maximum number of bytes of one event.
const MOST: usize = 32 * 1024 * 1024;

/// Assembles the messages of a stream from pieces of any size.
#[derive(Debug, Default)]
pub(super) struct Events {
    unread: Vec<u8>,
    data: String,
}

impl Events {
    /// Takes a piece of the stream and returns the messages that it completes. Comments, event ids and events without
    /// data, with which a server keeps a stream alive or primes it, are not messages.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<Vec<Value>, String> {
        self.unread.extend_from_slice(piece);
        if self.unread.len() + self.data.len() > MOST {
            return Err(format!("an event of more than {MOST} bytes"));
        }
        let mut messages = Vec::new();
        let mut begin = 0;
        while let Some(length) = self.unread[begin..].iter().position(|byte| *byte == b'\n') {
            let line = self.unread[begin..begin + length].to_vec();
            begin += length + 1;
            let line = String::from_utf8(line).map_err(|_| "a line that is no UTF-8")?;
            messages.extend(self.line(line.trim_end_matches('\r'))?);
        }
        self.unread.drain(..begin);
        Ok(messages)
    }

    fn line(&mut self, line: &str) -> Result<Option<Value>, String> {
        if let Some(data) = line.strip_prefix("data:") {
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            return Ok(None);
        }
        if !line.is_empty() || self.data.is_empty() {
            return Ok(None);
        }
        let data = std::mem::take(&mut self.data);
        let message = serde_json::from_str(&data);
        message.map(Some).map_err(|error| format!("an event that is no JSON: {error}: {data}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Events;

    #[test]
    fn messages_are_found_in_every_split_of_the_stream() {
        let stream = b": hello\r\nid: 1\r\ndata:\r\n\r\nevent: message\ndata: {\"a\":1}\n\ndata:{\"b\":\ndata: 2}\n\n";
        for size in 1..stream.len() {
            let mut events = Events::default();
            let mut values = Vec::new();
            for piece in stream.chunks(size) {
                values.extend(events.take(piece).unwrap());
            }
            assert_eq!(values, [json!({"a": 1}), json!({"b": 2})], "pieces of {size}");
        }
    }

    #[test]
    fn invalid_json_is_an_error() {
        assert!(Events::default().take(b"data: hello\n\n").is_err());
    }
}
