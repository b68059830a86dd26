//! Requests that go out together. Where one thread does everything, all tasks that are ready begin their calls, and only
//! then are these sent: a server finds all of them when it is woken, and is not woken by each.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Weak;
use std::task::{Context, Poll, Waker};

use creole_proto::client::CallKey;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::{Dispatcher, DispatcherState};
use crate::catch_panic::CatchPanic;
use crate::client::transport::Exchange;

/// Calls that wait for their turn to be sent.
#[derive(Default)]
pub(super) struct SendBatch {
    /// Whether they do at all.
    pub(super) is_enabled: bool,
    queued: VecDeque<CallKey>,
    /// Who lets them go, while there are none.
    flush_waker: Option<Waker>,
}

impl SendBatch {
    /// Has a call wait until those who are ready now have begun theirs.
    pub(super) fn queue(&mut self, call: CallKey) {
        self.queued.push_back(call);
        if let Some(usher) = self.flush_waker.take() {
            usher.wake();
        }
    }
}

impl DispatcherState {
    /// The next call whose turn it is, with what carries it and who waits for it.
    fn next_queued(&mut self) -> Option<(CallKey, Exchange, Waker)> {
        let Self { send_batch: turns, calls, .. } = self;
        while let Some(call) = turns.queued.pop_front() {
            if let Some((carrier, waker)) = calls.get_mut(call).and_then(|desk| desk.take_queued())
            {
                return Some((call, carrier, waker));
            }
        }
        None
    }
}

impl Dispatcher {
    /// Sees to turns, where a link leaves requests to those who wait for their answers.
    pub(super) fn enable_batching(&self) {
        let has_requests = self.transport.get().is_some_and(|link| link.has_headers());
        if has_requests && Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            self.lock().send_batch.is_enabled = true;
            let usher = tokio::spawn(flush_batch(Weak::clone(&self.weak_self)));
            let _ = self.flush_task.set(usher.abort_handle());
        }
    }

    /// Sends all calls that wait for their turn. Those who wait for them need not be woken for that.
    fn flush_queued(&self, context: &Context<'_>) {
        loop {
            let mut state = self.lock();
            let Some((call, mut carrier, waker)) = state.next_queued() else {
                state.send_batch.flush_waker = Some(context.waker().clone());
                return;
            };
            drop(state);
            let carried = CatchPanic(carrier.as_mut());
            let carried = std::pin::pin!(carried).poll(&mut Context::from_waker(&waker));
            if let Some(desk) = self.lock().calls.get_mut(call) {
                match carried {
                    Poll::Pending => desk.continue_exchange(carrier),
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => desk.end(None),
                }
            }
        }
    }
}

/// Lets calls go. Woken by the first of them, it has its turn after all who are ready by then.
async fn flush_batch(hub: Weak<Dispatcher>) {
    poll_fn(|context| match hub.upgrade() {
        Some(hub) => {
            hub.flush_queued(context);
            Poll::Pending
        }
        None => Poll::Ready(()),
    })
    .await;
}
