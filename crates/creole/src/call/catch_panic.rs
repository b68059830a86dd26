//! Panic isolation: a handler that panics fails its own call with a fault and affects nothing else.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A panic that was caught.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CaughtPanic {
    /// Its message.
    pub message: String,
    /// Its stack trace, if panics are traced.
    pub trace: Option<String>,
}

thread_local! {
    /// The trace of the panic that is unwinding on this thread.
    static TRACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Logs panics as events instead of raw text on stderr; with `traced` their stack is kept too.
pub fn install_hook(traced: bool) {
    set_hook(Box::new(move |info| {
        let location = info.location().map(ToString::to_string).unwrap_or_default();
        let message = message_of(info.payload());
        tracing::error!(target: "creole", %location, %message, "a handler panicked");
        if traced {
            let trace = Backtrace::force_capture().to_string();
            TRACE.with_borrow_mut(|slot| *slot = Some(trace));
        }
    }));
}

/// A future that returns its panics as results.
pub(crate) struct CatchPanic<F>(pub(crate) F);

impl<F: Future + Unpin> Future for CatchPanic<F> {
    type Output = Result<F::Output, CaughtPanic>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = Pin::new(&mut self.0);
        // The future is not polled again after a panic, so its partial state is never seen.
        match catch_unwind(AssertUnwindSafe(|| inner.poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(CaughtPanic {
                message: message_of(&*payload),
                trace: TRACE.with_borrow_mut(Option::take),
            })),
        }
    }
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".to_owned())
}
