//! The background worker of a connection: waits for everything except the client's input. It never runs a handler.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::Receiver;
use tokio::time::{Instant, sleep_until, timeout};

use crate::registry::Announcement;
use crate::serve::lines::EndReason;
use crate::serve::lines::connection::{DRAIN, LineConnection};
use crate::stream::{ByteSink, ByteSource};

/// Runs a connection until it ends.
pub(crate) async fn run_background<I, O>(
    connection: &Arc<LineConnection<I, O>>,
    mut changes: Receiver<Announcement>,
) -> io::Result<EndReason>
where
    I: ByteSource + 'static,
    O: ByteSink + 'static,
{
    loop {
        let wait = match connection.run_ready() {
            Ok(wait) if wait.is_over => return finish(connection).await,
            Ok(wait) => wait,
            Err(error) => return output_error(error),
        };
        tokio::select! {
            biased;
            // Only a signal: the connection itself has its own receiver for the changes.
            _ = changes.recv(), if wait.room => connection.announce_changes(),
            () = connection.wait_for_work() => {}
            writable = connection.output().writable(), if wait.sending => {
                if let Err(error) = writable {
                    return output_error(error);
                }
            }
            () = connection.output().closed(), if !wait.sending => return Ok(EndReason::OutputBroken),
            () = sleep_until(wait.deadline.unwrap_or_else(far_away)), if wait.deadline.is_some() => {}
        }
    }
}

/// Ends running calls and sends the remaining output.
async fn finish<I, O>(connection: &Arc<LineConnection<I, O>>) -> io::Result<EndReason>
where
    I: ByteSource + 'static,
    O: ByteSink + 'static,
{
    connection.close();
    let last = async {
        while connection.run_ready()?.sending {
            connection.output().writable().await?;
        }
        connection.output().flush().await
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
