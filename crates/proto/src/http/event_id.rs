//! Event ids, with which a client of the handshake era resumes a stream
//! (2025-11-25 basic/transports, resumability and redelivery).

use core::fmt;

/// The stream within its session, and the position within the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// The stream, numbered by the session.
    pub stream: u64,
    /// The event, counted from 1; 0 is the position before the first.
    pub event: u64,
}

impl EventId {
    /// Parses an id that this program wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let (stream, event) = text.split_once('-')?;
        let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse().ok(),
            false => None,
        };
        Some(Self { stream: number(stream)?, event: number(event)? })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.stream, self.event)
    }
}

#[cfg(test)]
mod tests {
    use super::EventId;
    use alloc::string::ToString;

    #[test]
    fn an_id_is_read_as_it_was_written_and_nothing_else_is_one() {
        let id = EventId { stream: 7, event: 12 };
        assert_eq!(EventId::parse(&id.to_string()), Some(id));
        for other in ["", "7", "7-", "-1", "7-+1", "a-1", "7-99999999999999999999", "7-1-1"] {
            assert_eq!(EventId::parse(other), None, "{other}");
        }
    }
}
