//! A stream of events that a client reads as they arrive, and resumes after it ended.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use creole_acceptance::http::{Connection, Event, Events, Head, Request};
use serde_json::Value;

/// How long an event may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// An open stream.
pub(crate) struct EventStream {
    /// The head of its response.
    pub(crate) head: Head,
    /// The id of the last event.
    pub(crate) last_id: Option<String>,
    /// The reconnection time, if the stream stated one.
    pub(crate) retry: Option<u64>,
    events: Receiver<Event>,
}

impl EventStream {
    /// Sends a request that a stream responds to.
    #[track_caller]
    pub(crate) fn open(address: SocketAddr, request: &Request) -> Self {
        let mut connection = Connection::open(address).unwrap();
        connection.write(&request.bytes(address)).unwrap();
        let head = connection.head().unwrap();
        assert!(head.is_events(), "{head:?}");
        let (sender, events) = channel();
        let theirs = head.clone();
        thread::spawn(move || {
            for event in Events::new(connection.body(&theirs)) {
                // The test may have seen enough.
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Self { head, last_id: None, retry: None, events }
    }

    /// The next message; `None` at the end of the stream.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<Value> {
        match self.within(PATIENCE) {
            Ok(message) => message,
            Err(Late) => panic!("no event within {PATIENCE:?}"),
        }
    }

    /// The next message, if it arrives in time; `None` at the end of the stream.
    pub(crate) fn within(&mut self, time: Duration) -> Result<Option<Value>, Late> {
        loop {
            let event = match self.events.recv_timeout(time) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => return Err(Late),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            };
            self.last_id = event.id.or(self.last_id.take());
            self.retry = event.retry.or(self.retry);
            if !event.data.is_empty() {
                return Ok(Some(serde_json::from_str(&event.data).unwrap()));
            }
        }
    }

    /// Asserts that no message arrives within this time, and that the stream stays open.
    #[track_caller]
    pub(crate) fn is_silent_for(&mut self, time: Duration) {
        assert!(self.within(time).is_err(), "a message came twice, or the stream ended");
    }
}

/// No message arrived in time.
#[derive(Debug, PartialEq)]
pub(crate) struct Late;
