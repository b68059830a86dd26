//! The messages of one response, in order, which a client may resume.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::server::FrameRole;
use tokio::time::Instant;

/// Unread bytes from which the calls of a slow client have to wait; also the bytes that are kept for a client that
/// resumes.
const HIGH_WATER: usize = 256 * 1024;

/// Events that are kept for a client that resumes.
const MAX_KEPT_EVENTS: usize = 1024;

/// How long an event of a session counts as recent.
const RECENT: Duration = Duration::from_secs(1);

/// A message and its role for the request that it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct StreamEvent {
    pub(crate) role: FrameRole,
    pub(crate) text: Bytes,
}

/// What a reader gets.
#[derive(Debug)]
pub(crate) enum NextEvent {
    /// An event, with its number.
    Event(u64, StreamEvent),
    /// The stream is over.
    Over,
    /// The reader must reconnect after this time, or another reader replaced it.
    Released(Option<Duration>),
}

/// The id of a reader; only the latest one reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReaderId(u64);

/// The messages of one response.
#[derive(Debug)]
pub(crate) struct ResponseStream {
    /// Whether events are kept after they were read, so that the stream can be resumed.
    is_resumable: bool,
    /// Whether a response ends the stream.
    ends_with_response: bool,
    events: VecDeque<StreamEvent>,
    /// The number of the first stored event; numbers start at 1.
    first: u64,
    /// The number of the next event to read.
    cursor: u64,
    /// The size of the unread events.
    unread: usize,
    /// Whether the stream is over.
    is_over: bool,
    /// Since when it is over, if it is resumable.
    over_since: Option<Instant>,
    release: Option<Duration>,
    /// The numbers of the recent events and when they came, if the stream is that of a session.
    recent: Option<VecDeque<(u64, Instant)>>,
    reader: u64,
    waker: Option<Waker>,
}

impl ResponseStream {
    /// A stream that drops events when they are read.
    pub(crate) fn transient() -> Self {
        Self {
            is_resumable: false,
            ends_with_response: true,
            events: VecDeque::new(),
            first: 1,
            cursor: 1,
            unread: 0,
            is_over: false,
            over_since: None,
            release: None,
            recent: None,
            reader: 0,
            waker: None,
        }
    }

    /// A stream that keeps events for a while.
    pub(crate) fn resumable() -> Self {
        Self { is_resumable: true, ..Self::transient() }
    }

    /// The stream of a session for messages that belong to no request. Other replicas have one as well.
    pub(crate) fn of_session() -> Self {
        Self { recent: Some(VecDeque::new()), ..Self::resumable() }
    }

    /// A stream that no response ends.
    pub(crate) fn endless() -> Self {
        Self { ends_with_response: false, ..Self::transient() }
    }

    /// Adds an event.
    pub(crate) fn push(&mut self, event: StreamEvent) {
        if self.is_over {
            return;
        }
        self.unread += event.text.len();
        let is_last = self.ends_with_response && matches!(event.role, FrameRole::Response(_));
        self.note_recent();
        self.events.push_back(event);
        self.trim();
        match is_last {
            true => self.end(),
            false => self.wake(),
        }
    }

    /// Records when the next event came.
    fn note_recent(&mut self) {
        let number = self.next_number();
        let Some(recent) = &mut self.recent else { return };
        while recent.front().is_some_and(|(_, at)| at.elapsed() >= RECENT)
            || recent.len() >= MAX_KEPT_EVENTS
        {
            recent.pop_front();
        }
        recent.push_back((number, Instant::now()));
    }

    /// Ends the stream. Its reader should reconnect after this time.
    pub(crate) fn end_for_reconnection(&mut self, retry: Duration) {
        self.end();
        self.release = Some(retry);
    }

    /// Ends the stream.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
        self.release = None;
        if self.is_resumable {
            self.over_since.get_or_insert_with(Instant::now);
        }
        self.wake();
    }

    /// Since when a resumable stream is over.
    pub(crate) fn over_since(&self) -> Option<Instant> {
        self.over_since
    }

    /// Makes the reader reconnect later, if the stream is resumable.
    pub(crate) fn release(&mut self, retry: Duration) {
        if self.is_resumable && !self.is_over {
            self.release = Some(retry);
            self.wake();
        }
    }

    /// Whether more may be written before the client has read the unread events.
    pub(crate) fn has_room(&self) -> bool {
        self.unread < HIGH_WATER || self.is_over
    }

    /// Attaches a reader, from the event after `last` on; it replaces the previous reader.
    pub(crate) fn attach(&mut self, last: Option<u64>) -> ReaderId {
        self.wake();
        self.reader += 1;
        if !self.is_over {
            self.release = None;
        }
        if let Some(last) = last {
            self.cursor = last.saturating_add(1).clamp(self.first, self.next_number());
            let read = (self.cursor - self.first) as usize;
            self.unread = self.events.iter().skip(read).map(|event| event.text.len()).sum();
        }
        ReaderId(self.reader)
    }

    /// Attaches the reader of a client that read the events of another replica until now. Unread events are dropped that
    /// the client got there: those that are not recent, and those that `is_read` names.
    pub(crate) fn take_over(&mut self, is_read: impl Fn(&[u8]) -> bool) -> ReaderId {
        let next = self.next_number();
        let mut recent = self.recent.iter().flatten().filter(|(_, at)| at.elapsed() < RECENT);
        self.cursor = self.cursor.max(recent.next().map_or(next, |(number, _)| *number));
        let mut unread = self.events.split_off((self.cursor - self.first) as usize);
        unread.retain(|event| !is_read(&event.text));
        self.unread = unread.iter().map(|event| event.text.len()).sum();
        self.events.append(&mut unread);
        let (numbers, now) = (self.cursor..self.next_number(), Instant::now());
        if let Some(recent) = &mut self.recent {
            *recent = numbers.map(|number| (number, now)).collect();
        }
        self.attach(None)
    }

    /// The number of the last event that was read.
    pub(crate) fn last_read(&self) -> u64 {
        self.cursor - 1
    }

    /// The next event for this reader.
    pub(crate) fn poll(&mut self, reader: ReaderId, context: &Context<'_>) -> Poll<NextEvent> {
        if reader.0 != self.reader {
            return Poll::Ready(NextEvent::Released(None));
        }
        if let Some(event) = self.take_next() {
            return Poll::Ready(NextEvent::Event(self.cursor - 1, event));
        }
        if self.is_over {
            let end = |retry| NextEvent::Released(Some(retry));
            return Poll::Ready(self.release.map_or(NextEvent::Over, end));
        }
        if let Some(retry) = self.release.take() {
            self.reader += 1;
            return Poll::Ready(NextEvent::Released(Some(retry)));
        }
        self.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// The role of the next event, if there is one.
    pub(crate) fn peek(&self) -> Option<FrameRole> {
        self.events.get((self.cursor - self.first) as usize).map(|event| event.role)
    }

    /// Whether the reader is to reconnect.
    pub(crate) fn is_releasing(&self) -> bool {
        self.release.is_some()
    }

    /// The size of all stored events.
    pub(crate) fn size(&self) -> usize {
        self.events.iter().map(|event| event.text.len()).sum()
    }

    fn take_next(&mut self) -> Option<StreamEvent> {
        let event = match self.is_resumable {
            true => self.events.get((self.cursor - self.first) as usize)?.clone(),
            false => {
                self.first += 1;
                self.events.pop_front().or_else(|| {
                    self.first -= 1;
                    None
                })?
            }
        };
        self.cursor += 1;
        self.unread -= event.text.len();
        Some(event)
    }

    fn next_number(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Drops the oldest events beyond the limits: they were read, or have no reader.
    fn trim(&mut self) {
        if !self.is_resumable {
            return;
        }
        let mut size = self.size();
        while self.events.len() > MAX_KEPT_EVENTS || size > 2 * HIGH_WATER && self.events.len() > 1
        {
            let Some(event) = self.events.pop_front() else { return };
            size -= event.text.len();
            self.first += 1;
            if self.cursor < self.first {
                self.cursor = self.first;
                self.unread -= event.text.len();
            }
        }
    }

    /// Clears this waker; the next poll, which follows at once, registers it again.
    pub(crate) fn clear_waker(&mut self, waker: &Waker) {
        self.waker.take_if(|own| own.will_wake(waker));
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aside(text: &'static str) -> StreamEvent {
        StreamEvent { role: FrameRole::Intermediate, text: Bytes::from_static(text.as_bytes()) }
    }

    fn answer(text: &'static str) -> StreamEvent {
        StreamEvent { role: FrameRole::Response(None), text: Bytes::from_static(text.as_bytes()) }
    }

    fn read(stream: &mut ResponseStream, reader: ReaderId) -> Vec<String> {
        let mut found = Vec::new();
        loop {
            match stream.poll(reader, &Context::from_waker(Waker::noop())) {
                Poll::Ready(NextEvent::Event(number, event)) => {
                    found.push(format!("{number}:{}", String::from_utf8_lossy(&event.text)));
                }
                Poll::Ready(NextEvent::Over) => found.push("over".into()),
                Poll::Ready(NextEvent::Released(_)) => found.push("released".into()),
                Poll::Pending => found.push("pending".into()),
            }
            if found.last().is_some_and(|last| !last.contains(':')) {
                return found;
            }
        }
    }

    #[test]
    fn events_are_in_order_and_the_response_is_the_last() {
        let mut stream = ResponseStream::transient();
        let reader = stream.attach(None);
        stream.push(aside("a"));
        assert_eq!(read(&mut stream, reader), ["1:a", "pending"]);
        stream.push(answer("b"));
        stream.push(aside("late"));
        assert_eq!(read(&mut stream, reader), ["2:b", "over"]);
        assert_eq!(stream.size(), 0);
    }

    #[test]
    fn a_returning_reader_gets_missed_events_and_replaces_the_old_one() {
        let mut stream = ResponseStream::resumable();
        let first = stream.attach(None);
        ["a", "b", "c"].into_iter().for_each(|text| stream.push(aside(text)));
        assert_eq!(read(&mut stream, first), ["1:a", "2:b", "3:c", "pending"]);
        let second = stream.attach(Some(1));
        assert_eq!(read(&mut stream, first), ["released"]);
        assert_eq!(read(&mut stream, second), ["2:b", "3:c", "pending"]);
        stream.release(Duration::from_millis(5));
        assert_eq!(read(&mut stream, second), ["released"]);
        stream.push(answer("d"));
        let third = stream.attach(Some(99));
        assert_eq!(read(&mut stream, third), ["over"]);
        let fourth = stream.attach(Some(3));
        assert_eq!(read(&mut stream, fourth), ["4:d", "over"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_of_another_replica_gets_only_what_it_may_have_missed() {
        let mut stream = ResponseStream::of_session();
        let reader = stream.attach(None);
        ["a", "b"].into_iter().for_each(|text| stream.push(aside(text)));
        assert_eq!(read(&mut stream, reader), ["1:a", "2:b", "pending"]);
        stream.push(aside("old"));
        tokio::time::advance(RECENT).await;
        ["c", "d", "e"].into_iter().for_each(|text| stream.push(aside(text)));
        let reader = stream.take_over(|text| text == b"d");
        assert_eq!(stream.unread, 2);
        assert_eq!((stream.last_read(), stream.size()), (3, 7));
        assert_eq!(read(&mut stream, reader), ["4:c", "5:e", "pending"]);
        stream.push(aside("f"));
        assert_eq!(read(&mut stream, reader), ["6:f", "pending"]);
        tokio::time::advance(RECENT).await;
        let reader = stream.take_over(|_| false);
        assert_eq!(read(&mut stream, reader), ["pending"]);
    }

    #[test]
    fn the_reader_of_a_stream_that_ends_for_a_while_is_told_when_to_reconnect() {
        let mut stream = ResponseStream::resumable();
        let reader = stream.attach(None);
        stream.push(aside("a"));
        stream.end_for_reconnection(Duration::from_millis(5));
        assert_eq!(read(&mut stream, reader), ["1:a", "released"]);
        let late = stream.attach(Some(1));
        assert_eq!(read(&mut stream, late), ["released"]);
    }

    #[test]
    fn unread_events_are_bounded() {
        let mut stream = ResponseStream::resumable();
        for _ in 0..5000 {
            stream.push(aside("0123456789"));
        }
        assert!(stream.events.len() <= MAX_KEPT_EVENTS && stream.unread == stream.size());
        let big = Bytes::from(vec![b'x'; HIGH_WATER]);
        for _ in 0..10 {
            stream.push(StreamEvent { role: FrameRole::Intermediate, text: big.clone() });
        }
        assert!(stream.size() <= 2 * HIGH_WATER && !stream.has_room());
    }
}
