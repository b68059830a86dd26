//! Requests that go out together. Where one thread does everything, all tasks that are ready begin their calls, and only
//! then are these sent: a server finds all of them when it is woken, and is not woken by each.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Weak;
use std::task::{Context, Poll, Waker};

use creole_proto::client::CallKey;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::{Hub, State};
use crate::catch_panic::CatchPanic;
use crate::client::link::Carrier;

/// Calls that wait for their turn to be sent.
#[derive(Default)]
pub(super) struct Turns {
    /// Whether they do at all.
    pub(super) are_taken: bool,
    held: VecDeque<CallKey>,
    /// Who lets them go, while there are none.
    usher: Option<Waker>,
}

impl Turns {
    /// Has a call wait until those who are ready now have begun theirs.
    pub(super) fn hold(&mut self, call: CallKey) {
        self.held.push_back(call);
        if let Some(usher) = self.usher.take() {
            usher.wake();
        }
    }
}

impl State {
    /// The next call whose turn it is, with what carries it and who waits for it.
    fn next_held(&mut self) -> Option<(CallKey, Carrier, Waker)> {
        let Self { turns, calls, .. } = self;
        while let Some(call) = turns.held.pop_front() {
            if let Some((carrier, waker)) = calls.get_mut(call).and_then(|desk| desk.release()) {
                return Some((call, carrier, waker));
            }
        }
        None
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

    /// Sends all calls that wait for their turn. Those who wait for them need not be woken for that.
    fn send_held(&self, context: &Context<'_>) {
        loop {
            let mut state = self.lock();
            let Some((call, mut carrier, waker)) = state.next_held() else {
                state.turns.usher = Some(context.waker().clone());
                return;
            };
            drop(state);
            let carried = CatchPanic(carrier.as_mut());
            let carried = std::pin::pin!(carried).poll(&mut Context::from_waker(&waker));
            if let Some(desk) = self.lock().calls.get_mut(call) {
                match carried {
                    Poll::Pending => desk.carry_on(carrier),
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => desk.end(None),
                }
            }
        }
    }
}

/// Lets calls go. Woken by the first of them, it has its turn after all who are ready by then.
async fn usher(hub: Weak<Hub>) {
    poll_fn(|context| match hub.upgrade() {
        Some(hub) => {
            hub.send_held(context);
            Poll::Pending
        }
        None => Poll::Ready(()),
    })
    .await;
}
