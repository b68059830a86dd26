//! The requests of HTTP/2 connections: each is a task, and one whose client reads nothing is ended alone.
//!
//! Behind a proxy one connection carries the requests of many clients. Progress on the socket does not imply progress
//! of a single request, so each request has its own timeout.

use crate::sync::Mutex;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::rt::Executor;
use tokio::time::{Instant, sleep};

/// Runs the requests of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Http2Executor {
    /// How long a client may read nothing.
    pub(crate) write_timeout: Duration,
}

impl<F> Executor<F> for Http2Executor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, request: F) {
        let progress = Arc::new(Http2Progress::default());
        let watched = run_with_timeout(request, Arc::clone(&progress), self.write_timeout);
        tokio::spawn(PROGRESS.scope(progress, watched));
    }
}

tokio::task_local! {
    /// The progress of the request that this task serves.
    static PROGRESS: Arc<Http2Progress>;
}

/// Whether the client has unread data of this request, and since when.
#[derive(Debug, Default)]
pub(crate) struct Http2Progress(Mutex<Option<Instant>>);

impl Http2Progress {
    /// The progress of the request that the current task serves, if it is an HTTP/2 request.
    pub(crate) fn current() -> Option<Arc<Self>> {
        PROGRESS.try_with(Arc::clone).ok()
    }

    /// Data for the client was handed over.
    pub(crate) fn set_pending(&self) {
        *self.lock() = Some(Instant::now());
    }

    /// The client took the data.
    pub(crate) fn set_taken(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.0.lock()
    }
}

/// Serves a request until it is done, or until its client has read nothing for too long. Dropping it resets the stream
/// and does not affect the connection.
async fn run_with_timeout<F: Future<Output = ()>>(
    request: F,
    progress: Arc<Http2Progress>,
    timeout: Duration,
) {
    let mut request = pin!(request);
    let mut alarm = pin!(sleep(timeout));
    poll_fn(|context| {
        if request.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let Some(since) = *progress.lock() else { return Poll::Pending };
        if alarm.deadline() != since + timeout {
            alarm.as_mut().reset(since + timeout);
        }
        alarm.as_mut().poll(context).map(|()| {
            tracing::debug!(target: "creole::http", "an HTTP/2 stream was reset: the client does not read");
        })
    })
    .await;
}
