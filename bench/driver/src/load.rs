//! Keeps a fixed number of requests in flight to a server and checks every response: correct id, correct text, exactly
//! once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::dialect::{self, Era, Line};
use crate::server::Server;

const CHUNK: usize = 64 * 1024;

/// The result of a run.
pub struct Outcome {
    /// The latency of each request in nanoseconds. All responses were correct.
    pub latencies: Vec<u64>,
    /// The time from the first request to the last response.
    pub elapsed: Duration,
}

/// The client's state: the used ids, the pending ids, and the bytes of an incomplete line.
pub struct Conversation {
    era: Era,
    next_id: u64,
    waiting: VecDeque<(u64, Instant)>,
    latencies: Vec<u64>,
    requests: Vec<u8>,
    received: Vec<u8>,
    filled: usize,
}

impl Conversation {
    /// A client that has sent nothing yet.
    pub fn new(era: Era) -> Self {
        Self {
            era,
            next_id: 0,
            waiting: VecDeque::new(),
            latencies: Vec::new(),
            requests: Vec::with_capacity(CHUNK),
            received: vec![0; CHUNK],
            filled: 0,
        }
    }

    /// Sends the first request of a client of this era and waits for the response.
    pub fn first_answer(&mut self, server: &mut Server) -> Result<(), String> {
        match self.era {
            Era::Legacy => {
                self.next_id += 1;
                self.waiting.push_back((0, Instant::now()));
                server.send(dialect::INITIALIZE)?;
            }
            Era::Modern => self.ask(server, 1)?,
        }
        while !self.waiting.is_empty() {
            self.take_answers(server)?;
        }
        Ok(())
    }

    /// Ends the handshake if the era has one.
    pub fn finish_opening(&mut self, server: &mut Server) -> Result<(), String> {
        match self.era {
            Era::Legacy => server.send(dialect::INITIALIZED),
            Era::Modern => Ok(()),
        }
    }

    /// Keeps `window` calls in flight for `duration`, then waits for the outstanding responses.
    pub fn run(
        &mut self,
        server: &mut Server,
        window: usize,
        duration: Duration,
    ) -> Result<Outcome, String> {
        let began = Instant::now();
        self.latencies = Vec::with_capacity(1 << 16);
        self.ask(server, window)?;
        while !self.waiting.is_empty() {
            let answered = self.take_answers(server)?;
            if answered > 0 && began.elapsed() < duration {
                self.ask(server, answered)?;
            }
        }
        Ok(Outcome { latencies: std::mem::take(&mut self.latencies), elapsed: began.elapsed() })
    }

    /// Sends `count` calls in one write.
    fn ask(&mut self, server: &mut Server, count: usize) -> Result<(), String> {
        self.requests.clear();
        let now = Instant::now();
        for _ in 0..count {
            self.era.write_call(self.next_id, &mut self.requests);
            self.waiting.push_back((self.next_id, now));
            self.next_id += 1;
        }
        server.send(&self.requests)
    }

    /// Reads once and checks every complete line. Returns the number of responses.
    fn take_answers(&mut self, server: &mut Server) -> Result<usize, String> {
        if self.filled == self.received.len() {
            self.received.resize(self.filled * 2, 0);
        }
        self.filled += server.receive(&mut self.received[self.filled..])?;

        let now = Instant::now();
        let mut answers = 0;
        let mut read = 0;
        for end in memchr::memchr_iter(b'\n', &self.received[..self.filled]) {
            let line = &self.received[read..end];
            read = end + 1;
            if let Line::Answer(id, text) = dialect::read_line(line)? {
                let sent = check(self.era, &mut self.waiting, id, text.as_deref())?;
                let latency = now.duration_since(sent).as_nanos();
                self.latencies.push(u64::try_from(latency).unwrap_or(u64::MAX));
                answers += 1;
            }
        }
        self.received.copy_within(read..self.filled, 0);
        self.filled -= read;
        Ok(answers)
    }
}

/// Checks a response and returns the time at which its request was sent.
fn check(
    era: Era,
    waiting: &mut VecDeque<(u64, Instant)>,
    id: u64,
    text: Option<&str>,
) -> Result<Instant, String> {
    let position = waiting.iter().position(|(waiting, _)| *waiting == id);
    let Some((_, sent)) = position.and_then(|position| waiting.remove(position)) else {
        return Err(format!("the server responded to id {id}, which is not pending"));
    };

    let is_handshake = era == Era::Legacy && id == 0;
    let expected = dialect::message_of(id);
    if is_handshake || text == Some(expected.as_str()) {
        Ok(sent)
    } else {
        Err(format!("the response to id {id} contains {text:?} instead of {expected:?}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Instant;

    use super::check;
    use crate::dialect::Era;

    #[test]
    fn answers_may_come_in_any_order_but_only_once() {
        let now = Instant::now();
        let mut waiting = VecDeque::from([(1, now), (2, now)]);
        assert!(check(Era::Legacy, &mut waiting, 2, Some("0000000000000002")).is_ok());
        assert!(check(Era::Legacy, &mut waiting, 2, Some("0000000000000002")).is_err());
        assert!(check(Era::Legacy, &mut waiting, 1, Some("0000000000000002")).is_err());
    }

    #[test]
    fn only_the_handshake_may_answer_without_a_text() {
        let first = || VecDeque::from([(0, Instant::now())]);
        assert!(check(Era::Legacy, &mut first(), 0, None).is_ok());
        assert!(check(Era::Modern, &mut first(), 0, None).is_err());
    }
}
