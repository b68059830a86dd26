//! Who speaks on a connection, and the task that watches over it: the time it takes, and the server's end.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::time::{Instant, Sleep};

use crate::serve::http::conn::timeouts::{ConnectionTimeouts, ExpiredTimeout};
use crate::serve::http::web::drain::{DrainStage, DrainWatch};
use crate::serve::http::web::limits::{CLOSE_TIMEOUT, IDLE_DRAIN};

/// Something that speaks on a connection until it ends.
pub(crate) trait Drivable {
    /// What is known at its end.
    type End;

    /// Goes on; ready at the end.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::End>;

    /// Asks for an end: what was begun is finished, nothing more is begun.
    fn shut_down(&mut self);
}

/// Watches over those who speak on one connection, one after the other.
pub(crate) struct Supervisor<'a> {
    pub(crate) timeouts: Arc<ConnectionTimeouts>,
    pub(crate) drain: &'a mut DrainWatch,
    pub(crate) timer: Pin<&'a mut Sleep>,
    pub(crate) stage: DrainStage,
    /// Whether an end was asked for.
    pub(crate) is_shutting_down: bool,
}

/// What an overseer hears of.
enum SupervisorEvent<E> {
    /// Who spoke is done.
    End(E),
    /// The end of the server has come this far.
    Stage(DrainStage),
    /// It is time to look how long something takes.
    Time,
}

impl Supervisor<'_> {
    /// Lets somebody speak to the end; nothing when it was cut off.
    pub(crate) async fn supervise<S: Drivable>(&mut self, speaker: &mut S) -> Option<S::End> {
        loop {
            match self.next_event(speaker).await {
                SupervisorEvent::End(end) => return Some(end),
                SupervisorEvent::Stage(DrainStage::Ended) => return None,
                SupervisorEvent::Stage(reached) => {
                    self.stage = reached;
                    if self.timeouts.is_idle() {
                        // A request may be on its way already.
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

    /// Waits for whatever comes first.
    async fn next_event<S: Drivable>(&mut self, speaker: &mut S) -> SupervisorEvent<S::End> {
        let (watch, stage, timer) = (&*self.drain, self.stage, &mut self.timer);
        let mut beyond = pin!(watch.wait_beyond(stage));
        let mut asked: Option<Waker> = None;
        poll_fn(|context| {
            if let Poll::Ready(end) = speaker.poll_end(context) {
                return Poll::Ready(SupervisorEvent::End(end));
            }
            // Mostly it is a request that woke this task. Whom it has asked to wake it is not asked again.
            let is_asked = asked.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
            if is_asked && watch.stage() == stage && !timer.is_elapsed() {
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
