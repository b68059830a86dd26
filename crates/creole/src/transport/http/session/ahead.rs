//! Calls of a session that run where their client waits: most are over soon, and a task for each would cost more than they
//! do. Those that are not, or whose client has left, go on in tasks.

use std::sync::Arc;
use std::task::Context;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use super::super::conversation::{Conversation, Pending, StreamKey};

/// Calls that run where their client waits. When this is dropped they go on in tasks.
pub(super) struct Ahead {
    conversation: Arc<Conversation>,
    calls: Vec<Pending>,
    /// Whether they were polled in this task and nobody was woken since.
    is_driven: bool,
}

impl Ahead {
    /// Calls that were just begun in this task.
    pub(super) fn new(conversation: &Arc<Conversation>, calls: Vec<Pending>) -> Self {
        Self { conversation: Arc::clone(conversation), calls, is_driven: true }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Lets the calls go on, unless they were just begun; whoever does that looks at their stream right afterwards.
    pub(super) fn drive(&mut self, stream: StreamKey, context: &mut Context<'_>) {
        if std::mem::take(&mut self.is_driven) {
            return;
        }
        self.conversation.drive(&mut self.calls, stream, context);
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Without a runtime there is nobody left to answer.
        let Ok(runtime) = Handle::try_current() else { return };
        for call in self.calls.drain(..) {
            let key = call.key;
            if self.conversation.is_open(key) {
                let task = runtime.spawn(run(Arc::clone(&self.conversation), call));
                self.conversation.runs_in(key, task.abort_handle());
            }
        }
    }
}

/// Runs a call to its end, and lets the machine know when it has taken too long.
async fn run(conversation: Arc<Conversation>, mut call: Pending) {
    loop {
        let deadline = conversation.deadline();
        tokio::select! {
            outcome = &mut call.future => return conversation.finish(call.key, outcome),
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                conversation.tick();
                if !conversation.is_open(call.key) {
                    return;
                }
            }
        }
    }
}
