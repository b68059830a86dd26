//! Drives one connection and enforces its timeouts and the server's shutdown.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::time::{Instant, Sleep};

use crate::serve::http::conn::timeouts::{ConnectionTimeouts, ExpiredTimeout};
use crate::serve::http::web::drain::{DrainStage, DrainWatch};
use crate::serve::http::web::limits::{CLOSE_TIMEOUT, IDLE_DRAIN};

/// A phase of a connection that runs until it ends.
pub(crate) trait Drivable {
    /// The result of the phase.
    type End;

    /// Makes progress; ready at the end.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::End>;

    /// Requests the end: running requests finish, no new one starts.
    fn shut_down(&mut self);
}

/// Supervises the phases of one connection, one after the other.
pub(crate) struct Supervisor<'a> {
    pub(crate) timeouts: Arc<ConnectionTimeouts>,
    pub(crate) drain: &'a mut DrainWatch,
    pub(crate) timer: Pin<&'a mut Sleep>,
    pub(crate) stage: DrainStage,
    /// Whether the end was requested.
    pub(crate) is_shutting_down: bool,
}

/// An event that the supervisor handles.
enum SupervisorEvent<E> {
    /// The phase ended.
    End(E),
    /// The drain reached this stage.
    Stage(DrainStage),
    /// A timeout must be checked.
    Time,
}

impl Supervisor<'_> {
    /// Runs a phase to its end; `None` when it was cut off.
    pub(crate) async fn supervise<S: Drivable>(&mut self, speaker: &mut S) -> Option<S::End> {
        loop {
            match self.next_event(speaker).await {
                SupervisorEvent::End(end) => return Some(end),
                SupervisorEvent::Stage(DrainStage::Ended) => return None,
                SupervisorEvent::Stage(phase) => {
                    self.stage = phase;
                    if self.timeouts.is_idle() {
                        // A request may already be in transit.
                        self.timer.as_mut().reset(Instant::now() + IDLE_DRAIN);
                    } else {
                        self.is_shutting_down = true;
                        speaker.shut_down();
                    }
                }
                SupervisorEvent::Time => {
                    let now = Instant::now();
                    let late = match self.timeouts.check(now) {
                        Ok(_) if self.stage == DrainStage::Draining && !self.is_shutting_down => {
                            ExpiredTimeout::Idle
                        }
                        Ok(next) => {
                            self.timer.as_mut().reset(next);
                            continue;
                        }
                        Err(late) => late,
                    };
                    if self.is_shutting_down || late != ExpiredTimeout::Idle {
                        tracing::debug!(target: "creole::http", ?late, "a connection was closed");
                        return None;
                    }
                    self.is_shutting_down = true;
                    speaker.shut_down();
                    self.timer.as_mut().reset(now + CLOSE_TIMEOUT);
                }
            }
        }
    }

    /// Waits for the first event.
    async fn next_event<S: Drivable>(&mut self, speaker: &mut S) -> SupervisorEvent<S::End> {
        let (watch, phase, timer) = (&*self.drain, self.stage, &mut self.timer);
        let mut beyond = pin!(watch.wait_beyond(phase));
        let mut asked: Option<Waker> = None;
        poll_fn(|context| {
            if let Poll::Ready(end) = speaker.poll_end(context) {
                return Poll::Ready(SupervisorEvent::End(end));
            }
            // Mostly a request woke this task. A source that already holds this task's waker is not polled again.
            let is_asked = asked.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
            if is_asked && !watch.is_beyond(phase) && !timer.is_elapsed() {
                return Poll::Pending;
            }
            if let Poll::Ready(reached) = beyond.as_mut().poll(context) {
                return Poll::Ready(SupervisorEvent::Stage(reached));
            }
            if timer.as_mut().poll(context).is_ready() {
                return Poll::Ready(SupervisorEvent::Time);
            }
            asked = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
