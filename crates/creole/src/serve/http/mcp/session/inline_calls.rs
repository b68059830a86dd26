//! Calls of a session that run where their client waits: most are over soon, and a task for each would cost more than they
//! do. Those that are not, or whose client has left, go on in tasks.

use std::sync::Arc;
use std::task::Context;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use crate::serve::http::mcp::machine_host::{MachineHost, StreamKey, UnfinishedCall};

/// Calls that run where their client waits. When this is dropped they go on in tasks.
pub(crate) struct InlineCalls {
    host: Arc<MachineHost>,
    calls: Vec<UnfinishedCall>,
    /// Whether they were polled in this task and nobody was woken since.
    is_just_polled: bool,
}

impl InlineCalls {
    /// Calls that were just begun in this task.
    pub(crate) fn new(conversation: &Arc<MachineHost>, calls: Vec<UnfinishedCall>) -> Self {
        Self { host: Arc::clone(conversation), calls, is_just_polled: true }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Lets the calls go on, unless they were just begun; whoever does that looks at their stream right afterwards.
    pub(crate) fn poll_calls(&mut self, stream: StreamKey, context: &mut Context<'_>) {
        if std::mem::take(&mut self.is_just_polled) {
            return;
        }
        self.host.poll_calls(&mut self.calls, stream, context);
    }
}

impl Drop for InlineCalls {
    fn drop(&mut self) {
        // Without a runtime there is nobody left to answer.
        let Ok(runtime) = Handle::try_current() else { return };
        for call in self.calls.drain(..) {
            let key = call.key;
            if self.host.is_call_open(key) {
                let task = runtime.spawn(run_call(Arc::clone(&self.host), call));
                self.host.set_task(key, task.abort_handle());
            }
        }
    }
}

/// Runs a call to its end, and lets the machine know when it has taken too long.
async fn run_call(conversation: Arc<MachineHost>, mut call: UnfinishedCall) {
    loop {
        let deadline = conversation.deadline();
        tokio::select! {
            outcome = &mut call.future => return conversation.finish_call(call.key, outcome),
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                conversation.tick();
                if !conversation.is_call_open(call.key) {
                    return;
                }
            }
        }
    }
}
