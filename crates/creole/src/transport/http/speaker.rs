//! Who speaks on a connection, and the task that watches over it: the time it takes, and the server's end.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

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

impl Overseer<'_> {
    /// Lets somebody speak to the end; nothing when it was cut off.
    pub(super) async fn listen<S: Speaker>(&mut self, speaker: &mut S) -> Option<S::End> {
        loop {
            tokio::select! {
                ended = poll_fn(|context| speaker.poll_end(context)) => return Some(ended),
                reached = self.watch.beyond(self.stage) => {
                    self.stage = reached;
                    if self.stage == Stage::Ended {
                        return None;
                    }
                    if self.pace.is_idle() {
                        // A request may be on its way already.
                        self.timer.as_mut().reset(Instant::now() + LAST_CALL);
                    } else {
                        self.concluding = true;
                        speaker.conclude();
                    }
                }
                () = self.timer.as_mut() => {
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
}
