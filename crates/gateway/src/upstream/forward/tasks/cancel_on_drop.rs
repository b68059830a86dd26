//! Cancels a task at its upstream when the caller cancels it.

use creole::Context;
use creole::internal::client::Connection;
use creole::proto::client::CallRequest;
use tokio::runtime::Handle;

/// Held while a task of an upstream is followed. If it is dropped because the caller cancelled, it cancels the task.
pub(crate) struct CancelOnDrop {
    connection: Connection,
    context: Context,
    /// The cancellation request. `None` once the task has ended.
    cancellation: Option<CallRequest>,
}

impl CancelOnDrop {
    pub(crate) fn new(connection: Connection, context: Context, cancellation: CallRequest) -> Self {
        Self { connection, context, cancellation: Some(cancellation) }
    }

    /// Drops the guard without a cancellation.
    pub(crate) fn disarm(mut self) {
        self.cancellation = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(cancellation) = self.cancellation.take() else { return };
        // A caller that disconnects or restarts may return for the task.
        if !self.context.is_cancelled() {
            return;
        }
        let connection = self.connection.clone();
        if let Ok(runtime) = Handle::try_current() {
            // The response does not matter: no caller waits for the task.
            runtime.spawn(async move { drop(connection.call_without_input(cancellation).await) });
        }
    }
}
