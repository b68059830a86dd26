//! A task whose caller cancelled it is cancelled at the server that works on it.

use creole::call::Context;
use creole::client::Connection;
use creole::proto::client::CallRequest;
use tokio::runtime::Handle;

/// Held while a task of a server is followed. Dropped because the caller cancelled, it tells the server.
pub(crate) struct CancelOnDrop {
    connection: Connection,
    context: Context,
    /// What tells the server; nothing once the task came to an end here.
    cancellation: Option<CallRequest>,
}

impl CancelOnDrop {
    pub(crate) fn new(connection: Connection, context: Context, cancellation: CallRequest) -> Self {
        Self { connection, context, cancellation: Some(cancellation) }
    }

    /// There is nothing to cancel any more.
    pub(crate) fn disarm(mut self) {
        self.cancellation = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(cancellation) = self.cancellation.take() else { return };
        // Who merely left, or restarts, may come back for the task.
        if !self.context.is_cancelled() {
            return;
        }
        let connection = self.connection.clone();
        if let Ok(runtime) = Handle::try_current() {
            // Whatever the server says to it, nobody waits for the task.
            runtime.spawn(async move { drop(connection.call_without_input(cancellation).await) });
        }
    }
}
