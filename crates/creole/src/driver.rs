//! The one loop that feeds a protocol machine from a pair of byte streams and obeys it.

mod connection;

use std::io;
use std::time::Duration;

use creole_proto::op::Change;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use crate::server::Service;
use crate::transport::{Sink, Source};
use connection::Connection;

/// Bytes that may wait to be served, and that one read takes at most.
const CHUNK: usize = 64 * 1024;

/// How long calls may go on after the client has closed its side.
const DRAIN: Duration = Duration::from_secs(10);

/// Why a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client closed its side; all that it asked for was answered or given up.
    InputClosed,
    /// The client no longer reads.
    OutputBroken,
}

/// Serves one connection until it ends.
pub(crate) async fn serve(
    service: Service,
    mut input: impl Source,
    mut output: impl Sink,
) -> io::Result<Ended> {
    let mut changes = service.registry().changes();
    let mut connection = Connection::new(service);
    let mut received = Received::default();
    loop {
        received.serve(&mut connection);
        if let Err(error) = flush_now(&mut connection, &mut output) {
            return broken(error);
        }
        if received.is_over() && connection.is_idle() || connection.is_drained() {
            connection.close();
            return finish_output(connection, output).await;
        }
        if received.is_waiting() && connection.has_room() {
            continue;
        }
        let deadline = connection.deadline();
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            // Here and not only below: a flood of requests must not keep the time from passing.
            connection.tick();
        }
        let room = connection.has_room();
        let (reports, unsent) = connection.waiting();
        tokio::select! {
            biased;
            report = reports.recv(), if room => connection.take_report(report),
            change = changes.recv(), if room => connection.take_change(change_or_all(change)),
            read = input.read(&mut received.bytes, CHUNK), if received.may_read() => {
                if read? == 0 {
                    received.ended = true;
                    connection.begin_drain(DRAIN);
                }
            }
            sent = send(&mut output, unsent) => match sent {
                Ok(sent) => connection.sent(sent),
                Err(error) => return broken(error),
            },
            () = sleep_until(deadline.unwrap_or_else(far_away)), if deadline.is_some() => {
                connection.tick();
            }
        }
    }
}

/// Bytes that were read and wait until there is room for their answers. Reading goes on for a little while
/// they do, so that the end of the input is noticed.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    served: usize,
    ended: bool,
    told: bool,
}

impl Received {
    /// Serves what there is room for.
    fn serve(&mut self, connection: &mut Connection) {
        if self.is_waiting() {
            self.served += connection.take_bytes(&self.bytes[self.served..]);
        }
        if !self.is_waiting() || self.served >= CHUNK {
            // What was served goes, also when a slow client always leaves something waiting.
            self.bytes.drain(..self.served);
            self.served = 0;
        }
        if self.ended && !self.is_waiting() && !self.told {
            connection.end_of_input();
            self.told = true;
        }
    }

    fn is_waiting(&self) -> bool {
        self.served < self.bytes.len()
    }

    fn may_read(&self) -> bool {
        !self.ended && self.bytes.len() - self.served < CHUNK
    }

    /// Whether nothing more will come.
    fn is_over(&self) -> bool {
        self.told
    }
}

/// A client that no longer reads is the end of a conversation; anything else is an error.
fn broken(error: io::Error) -> io::Result<Ended> {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(Ended::OutputBroken),
        _ => Err(error),
    }
}

/// Writes what the client takes at once, without waiting: the common case costs one system call.
fn flush_now(connection: &mut Connection, output: &mut impl Sink) -> io::Result<()> {
    connection.log_unsent();
    while !connection.unsent().is_empty() {
        match output.try_write(connection.unsent())? {
            Some(sent) => connection.sent(sent),
            None => break,
        }
    }
    Ok(())
}

/// Waits until the client takes more, or, with nothing to send, until it is gone.
async fn send(output: &mut impl Sink, unsent: &[u8]) -> io::Result<usize> {
    if unsent.is_empty() {
        output.closed().await;
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    output.write(unsent).await
}

async fn finish_output(mut connection: Connection, mut output: impl Sink) -> io::Result<Ended> {
    let last = async {
        while !connection.unsent().is_empty() {
            let sent = output.write(connection.unsent()).await?;
            connection.sent(sent);
        }
        output.flush().await
    };
    match tokio::time::timeout(DRAIN, last).await {
        Ok(Ok(())) => Ok(Ended::InputClosed),
        Ok(Err(error)) => broken(error),
        Err(_) => Ok(Ended::OutputBroken),
    }
}

/// A connection that lagged behind is told that everything changed: too often rather than never.
fn change_or_all(change: Result<Change, RecvError>) -> Option<Change> {
    change.ok()
}

fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}
