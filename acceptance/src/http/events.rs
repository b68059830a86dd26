//! Parses server-sent events by the rules of the WHATWG.

use std::io::{BufRead, BufReader, Read};

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Its kind, if it is not `message`.
    pub kind: Option<String>,
    /// Its data, lines joined by newlines.
    pub data: String,
    /// The reconnection time, if it states one.
    pub retry: Option<u64>,
}

/// The events of a body, as they arrive.
pub struct Events<R>(BufReader<R>);

impl<R: Read> Events<R> {
    /// Reads events from a body.
    #[must_use]
    pub fn new(body: R) -> Self {
        Self(BufReader::new(body))
    }
}

impl<R: Read> Iterator for Events<R> {
    type Item = Event;

    /// The next event, also one without data. `None` when the body has ended or broke off.
    fn next(&mut self) -> Option<Event> {
        let mut event = Event::default();
        let mut data: Vec<String> = Vec::new();
        let mut exists = false;
        loop {
            let mut line = Vec::new();
            self.0.read_until(b'\n', &mut line).ok().filter(|read| *read > 0)?;
            let line = String::from_utf8_lossy(&line).into_owned();
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() && exists {
                event.data = data.join("\n");
                return Some(event);
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            exists |= ["data", "event", "id", "retry"].contains(&field);
            match field {
                "data" => data.push(value),
                "event" => event.kind = Some(value),
                "id" => event.id = Some(value),
                "retry" => event.retry = value.parse().ok(),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_with_all_that_they_carry_and_comments_are_passed_over() {
        let body = ":\n\nid: 1-0\ndata: \n\nid: 1-1\r\nevent: x\r\ndata: a\r\ndata:b\r\n\r\nretry: 50\n\ndata: cut";
        let events: Vec<Event> = Events::new(body.as_bytes()).collect();
        let primed = Event { id: Some("1-0".into()), ..Event::default() };
        let event = Event {
            id: Some("1-1".into()),
            kind: Some("x".into()),
            data: "a\nb".into(),
            retry: None,
        };
        let retry = Event { retry: Some(50), ..Event::default() };
        assert_eq!(events, [primed, event, retry]);
    }
}
