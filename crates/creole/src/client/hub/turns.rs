//! Requests that go out together. Where one thread does everything, all tasks that are ready begin their calls, and only
//! then are these sent: a server finds all of them when it is woken, and is not woken by each.

use std::future::poll_fn;
use std::sync::Weak;
use std::task::{Context, Poll, Waker};

use creole_proto::client::CallKey;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::{Hub, State};

/// Calls that wait for their turn to be sent.
#[derive(Default)]
pub(super) struct Turns {
    /// Whether they do at all.
    pub(super) are_taken: bool,
    held: Vec<CallKey>,
    /// Who lets them go, while there are none.
    usher: Option<Waker>,
}

impl Turns {
    /// Has a call wait until those who are ready now have begun theirs.
    pub(super) fn hold(&mut self, call: CallKey) {
        self.held.push(call);
        if let Some(usher) = self.usher.take() {
            usher.wake();
        }
    }
}

impl State {
    /// Lets all calls go that wait for their turn.
    fn release(&mut self, context: &Context<'_>) {
        let Self { turns, calls, .. } = self;
        for call in turns.held.drain(..) {
            if let Some(desk) = calls.get_mut(call) {
                desk.release();
            }
        }
        turns.usher = Some(context.waker().clone());
    }
}

impl Hub {
    /// Sees to turns, where a link leaves requests to those who wait for their answers.
    pub(super) fn take_turns(&self) {
        let has_requests = self.link.get().is_some_and(|link| link.has_headers());
        if has_requests && Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            self.lock().turns.are_taken = true;
            let usher = tokio::spawn(usher(Weak::clone(&self.own)));
            let _ = self.usher.set(usher.abort_handle());
        }
    }
}

/// Lets calls go. Woken by the first of them, it has its turn after all who are ready by then.
async fn usher(hub: Weak<Hub>) {
    poll_fn(|context| match hub.upgrade() {
        Some(hub) => {
            hub.lock().release(context);
            Poll::Pending
        }
        None => Poll::Ready(()),
    })
    .await;
}
