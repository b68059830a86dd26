//! Who speaks on a connection, and the task that watches over it: the time it takes, and the server's end.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::time::{Instant, Sleep};

use super::drain::{Stage, Watch};
use super::limits::{GOODBYE, LAST_CALL};
use super::pace::{Overdue, Pace};

/// Something that speaks on a connection until it ends.
pub(super) trait Speaker {
    /// What is known at its end.
    type End;

    /// Goes on; ready at the end.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::End>;

    /// Asks for an end: what was begun is finished, nothing more is begun.
    fn conclude(&mut self);
}

/// Watches over those who speak on one connection, one after the other.
pub(super) struct Overseer<'a> {
    pub(super) pace: Arc<Pace>,
    pub(super) watch: &'a mut Watch,
    pub(super) timer: Pin<&'a mut Sleep>,
    pub(super) stage: Stage,
    /// Whether an end was asked for.
    pub(super) concluding: bool,
}

/// What an overseer hears of.
enum Heard<E> {
    /// Who spoke is done.
    End(E),
    /// The end of the server has come this far.
    Stage(Stage),
    /// It is time to look how long something takes.
    Time,
}

impl Overseer<'_> {
    /// Lets somebody speak to the end; nothing when it was cut off.
    pub(super) async fn listen<S: Speaker>(&mut self, speaker: &mut S) -> Option<S::End> {
        loop {
            match self.next(speaker).await {
                Heard::End(end) => return Some(end),
                Heard::Stage(Stage::Ended) => return None,
                Heard::Stage(reached) => {
                    self.stage = reached;
                    if self.pace.is_idle() {
                        // A request may be on its way already.
                        self.timer.as_mut().reset(Instant::now() + LAST_CALL);
                    } else {
                        self.concluding = true;
                        speaker.conclude();
                    }
                }
                Heard::Time => {
                    let now = Instant::now();
                    let late = match self.pace.check(now) {
                        Ok(_) if self.stage == Stage::Draining && !self.concluding => Overdue::Idle,
                        Ok(next) => {
                            self.timer.as_mut().reset(next);
                            continue;
                        }
                        Err(late) => late,
                    };
                    if self.concluding || late != Overdue::Idle {
                        tracing::debug!(target: "creole::http", ?late, "a connection was closed");
                        return None;
                    }
                    self.concluding = true;
                    speaker.conclude();
                    self.timer.as_mut().reset(now + GOODBYE);
                }
            }
        }
    }

    /// Waits for whatever comes first.
    async fn next<S: Speaker>(&mut self, speaker: &mut S) -> Heard<S::End> {
        let (watch, stage, timer) = (&*self.watch, self.stage, &mut self.timer);
        let mut beyond = pin!(watch.beyond(stage));
        let mut asked: Option<Waker> = None;
        poll_fn(|context| {
            if let Poll::Ready(end) = speaker.poll_end(context) {
                return Poll::Ready(Heard::End(end));
            }
            // Mostly it is a request that woke this task. Whom it has asked to wake it is not asked again.
            let is_asked = asked.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
            if is_asked && watch.stage() == stage && !timer.is_elapsed() {
                return Poll::Pending;
            }
            if let Poll::Ready(reached) = beyond.as_mut().poll(context) {
                return Poll::Ready(Heard::Stage(reached));
            }
            if timer.as_mut().poll(context).is_ready() {
                return Poll::Ready(Heard::Time);
            }
            asked = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
