//! The background party of a connection: waits for everything except the client's input, and finishes work that had to
//! wait.

use std::io;
use std::time::Duration;

use tokio::sync::broadcast::Receiver;
use tokio::time::{Instant, sleep_until, timeout};

use crate::registry::Announcement;
use crate::serve::lines::EndReason;
use crate::serve::lines::shared::{DRAIN, SharedConnection};
use crate::stream::ByteSink;

/// Runs a connection until it ends.
pub(crate) async fn run_background<O: ByteSink>(
    desk: &SharedConnection<O>,
    mut changes: Receiver<Announcement>,
) -> io::Result<EndReason> {
    loop {
        let wait = match desk.run_ready() {
            Ok(wait) if wait.is_over => return finish(desk).await,
            Ok(wait) => wait,
            Err(error) => return output_error(error),
        };
        tokio::select! {
            biased;
            () = desk.take_report(), if wait.room => {}
            // Only a signal: the connection itself has its own receiver for the changes.
            _ = changes.recv(), if wait.room => desk.announce_changes(),
            () = desk.wait_for_work() => {}
            writable = desk.output().writable(), if wait.sending => {
                if let Err(error) = writable {
                    return output_error(error);
                }
            }
            () = desk.output().closed(), if !wait.sending => return Ok(EndReason::OutputBroken),
            () = sleep_until(wait.deadline.unwrap_or_else(far_away)), if wait.deadline.is_some() => {}
        }
    }
}

/// Ends running calls and sends the remaining output.
async fn finish<O: ByteSink>(desk: &SharedConnection<O>) -> io::Result<EndReason> {
    desk.close();
    let last = async {
        while desk.run_ready()?.sending {
            desk.output().writable().await?;
        }
        desk.output().flush().await
    };
    match timeout(DRAIN, last).await {
        Ok(Ok(())) => Ok(EndReason::InputClosed),
        Ok(Err(error)) => output_error(error),
        Err(_) => Ok(EndReason::OutputBroken),
    }
}

/// A client that no longer reads ends the connection; anything else is an error.
fn output_error(error: io::Error) -> io::Result<EndReason> {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(EndReason::OutputBroken),
        _ => Err(error),
    }
}

fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}
