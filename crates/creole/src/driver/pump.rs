//! The pump of a connection: waits for all that is not the client's input, and finishes what has to wait.

use std::io;
use std::time::Duration;

use tokio::sync::broadcast::Receiver;
use tokio::time::{Instant, sleep_until, timeout};

use super::Ended;
use super::desk::{DRAIN, Desk};
use crate::registry::Announcement;
use crate::transport::Sink;

/// Keeps a connection going until it ends.
pub(super) async fn pump<O: Sink>(
    desk: &Desk<O>,
    mut changes: Receiver<Announcement>,
) -> io::Result<Ended> {
    loop {
        let wait = match desk.work() {
            Ok(wait) if wait.over => return finish(desk).await,
            Ok(wait) => wait,
            Err(error) => return broken(error),
        };
        tokio::select! {
            biased;
            () = desk.report(), if wait.room => {}
            // Only that something changed: what it was, the connection has kept for itself.
            _ = changes.recv(), if wait.room => desk.changes(),
            () = desk.news() => {}
            writable = desk.output().writable(), if wait.sending => {
                if let Err(error) = writable {
                    return broken(error);
                }
            }
            () = desk.output().closed(), if !wait.sending => return Ok(Ended::OutputBroken),
            () = sleep_until(wait.deadline.unwrap_or_else(far_away)), if wait.deadline.is_some() => {}
        }
    }
}

/// Ends what runs and sends what is left.
async fn finish<O: Sink>(desk: &Desk<O>) -> io::Result<Ended> {
    desk.close();
    let last = async {
        while desk.work()?.sending {
            desk.output().writable().await?;
        }
        desk.output().flush().await
    };
    match timeout(DRAIN, last).await {
        Ok(Ok(())) => Ok(Ended::InputClosed),
        Ok(Err(error)) => broken(error),
        Err(_) => Ok(Ended::OutputBroken),
    }
}

/// A client that no longer reads is the end of a conversation; anything else is an error.
fn broken(error: io::Error) -> io::Result<Ended> {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(Ended::OutputBroken),
        _ => Err(error),
    }
}

fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}
