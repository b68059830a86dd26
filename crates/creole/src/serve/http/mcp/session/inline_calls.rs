//! Calls of a session that run in the task of the waiting request: most finish soon, and a task for each would cost
//! more than the call. Calls that take longer, or whose client has disconnected, continue in tasks.

use std::sync::Arc;
use std::task::Context;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use crate::host::{HostedCall, StreamKey};
use crate::serve::http::mcp::streams::HttpHost;

/// Calls that run in the task of the waiting request. Dropping this moves them to tasks.
pub(crate) struct InlineCalls {
    host: Arc<HttpHost>,
    calls: Vec<HostedCall>,
    /// Whether they were polled in this task and not woken since.
    is_just_polled: bool,
}

impl InlineCalls {
    /// Calls that were just started in this task.
    pub(crate) fn new(host: &Arc<HttpHost>, calls: Vec<HostedCall>) -> Self {
        Self { host: Arc::clone(host), calls, is_just_polled: true }
    }

    /// Whether there are no calls.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Polls the calls, unless they were just started. The caller reads their stream right afterwards.
    pub(crate) fn poll_calls(&mut self, stream: StreamKey, context: &mut Context<'_>) {
        if std::mem::take(&mut self.is_just_polled) {
            return;
        }
        self.host.poll_calls(&mut self.calls, stream, context);
    }
}

impl Drop for InlineCalls {
    fn drop(&mut self) {
        // Without a runtime, no response can be delivered any more.
        let Ok(runtime) = Handle::try_current() else { return };
        for call in self.calls.drain(..) {
            let key = call.key;
            if !call.is_cancelled() {
                let task = runtime.spawn(run_call(Arc::clone(&self.host), call));
                self.host.set_task(key, task.abort_handle());
            }
        }
    }
}

/// Runs a call to its end, and reports to the machine when its deadline has passed.
async fn run_call(host: Arc<HttpHost>, mut call: HostedCall) {
    loop {
        let deadline = host.deadline();
        tokio::select! {
            outcome = &mut call.future => return host.finish_call(call.key, outcome),
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                host.tick();
                if call.is_cancelled() {
                    return;
                }
            }
        }
    }
}
