//! A conversation with a server that keeps a fixed number of requests in flight and checks every
//! answer: right id, right text, each exactly once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::dialect::{self, Era, Line};
use crate::server::Server;

const CHUNK: usize = 64 * 1024;

/// What a run of requests took.
pub struct Outcome {
    /// The nanoseconds that each request took, all of them answered rightly.
    pub latencies: Vec<u64>,
    /// From the first request to the last answer.
    pub elapsed: Duration,
}

/// The client's side: which ids are used, which are waiting, and bytes of an unfinished line.
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
    /// A conversation in which nothing was said yet.
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

    /// Asks the first thing that a client of this era asks and waits for the answer.
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

    /// Ends the handshake of an era that has one.
    pub fn finish_opening(&mut self, server: &mut Server) -> Result<(), String> {
        match self.era {
            Era::Legacy => server.send(dialect::INITIALIZED),
            Era::Modern => Ok(()),
        }
    }

    /// Keeps `window` calls in flight for `duration`, then waits for the answers still missing.
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

    /// Reads once and checks every complete line; returns how many were answers.
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

/// Checks an answer, and tells when its request was sent.
fn check(
    era: Era,
    waiting: &mut VecDeque<(u64, Instant)>,
    id: u64,
    text: Option<&str>,
) -> Result<Instant, String> {
    let position = waiting.iter().position(|(waiting, _)| *waiting == id);
    let Some((_, sent)) = position.and_then(|position| waiting.remove(position)) else {
        return Err(format!("the server answered id {id}, which is not waiting for an answer"));
    };

    let is_handshake = era == Era::Legacy && id == 0;
    let expected = dialect::message_of(id);
    if is_handshake || text == Some(expected.as_str()) {
        Ok(sent)
    } else {
        Err(format!("the answer to id {id} says {text:?} where {expected:?} was sent"))
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
