//! The end of a server: no new connections, then no open ones, then nothing.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::{Notify, watch};

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    /// Requests are served.
    Serving,
    /// Calls that run may finish; nothing new begins.
    Draining,
    /// Whatever is still open is closed.
    Ended,
}

/// A switch that moves a server to its end. Clones are the same switch.
#[derive(Clone, Debug)]
pub struct Drain {
    progress: Arc<Progress>,
    /// Every connection holds a receiver: the end waits until there is none.
    present: Arc<watch::Sender<()>>,
}

/// How far the end has come. Every request looks at it, so looking takes no lock.
#[derive(Debug)]
struct Progress {
    stage: AtomicU8,
    advanced: Notify,
}

impl Progress {
    fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            stage if stage == Stage::Serving as u8 => Stage::Serving,
            stage if stage == Stage::Draining as u8 => Stage::Draining,
            _ => Stage::Ended,
        }
    }

    /// The stage, once the end has come this far. Cancel-safe.
    async fn reached(&self, stage: Stage) -> Stage {
        loop {
            let mut advanced = pin!(self.advanced.notified());
            advanced.as_mut().enable();
            let now = self.stage();
            if now >= stage {
                return now;
            }
            advanced.await;
        }
    }
}

impl Drain {
    /// A switch of a server that serves.
    pub fn new() -> Self {
        Self {
            progress: Arc::new(Progress {
                stage: AtomicU8::new(Stage::Serving as u8),
                advanced: Notify::new(),
            }),
            present: Arc::new(watch::Sender::new(())),
        }
    }

    /// How far the end has come.
    pub fn stage(&self) -> Stage {
        self.progress.stage()
    }

    /// Lets calls finish and nothing new begin.
    pub fn begin(&self) {
        self.advance(Stage::Draining);
    }

    /// Closes whatever is still open.
    pub fn end(&self) {
        self.advance(Stage::Ended);
    }

    /// Resolves when the end has come this far.
    pub async fn reached(&self, stage: Stage) {
        self.progress.reached(stage).await;
    }

    /// Something that the end waits for, and that can watch it come.
    pub(super) fn watch(&self) -> Watch {
        Watch { progress: Arc::clone(&self.progress), _present: self.present.subscribe() }
    }

    /// Resolves when every [`Watch`] is gone.
    pub(super) async fn finished(&self) {
        self.present.closed().await;
    }

    fn advance(&self, to: Stage) {
        self.progress.stage.fetch_max(to as u8, Ordering::AcqRel);
        self.progress.advanced.notify_waiters();
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}

/// One connection's view of the end.
#[derive(Debug)]
pub(super) struct Watch {
    progress: Arc<Progress>,
    _present: watch::Receiver<()>,
}

impl Watch {
    /// How far the end has come.
    pub(super) fn stage(&self) -> Stage {
        self.progress.stage()
    }

    /// The stage after this one, once the end has come further. Cancel-safe.
    pub(super) async fn beyond(&self, stage: Stage) -> Stage {
        let next = if stage == Stage::Serving { Stage::Draining } else { Stage::Ended };
        self.progress.reached(next).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stages_only_go_forward_and_the_end_waits_for_every_watch() {
        let drain = Drain::new();
        let watch = drain.watch();
        drain.begin();
        assert_eq!(watch.beyond(Stage::Serving).await, Stage::Draining);
        drain.end();
        drain.begin();
        assert_eq!(drain.stage(), Stage::Ended);
        assert_eq!(watch.beyond(Stage::Draining).await, Stage::Ended);
        drain.reached(Stage::Ended).await;
        let ended = drain.clone();
        let waits = tokio::spawn(async move { ended.finished().await });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        let asks = drain.clone();
        let asks = tokio::spawn(async move { asks.reached(Stage::Ended).await });
        drop(watch);
        waits.await.unwrap();
        asks.await.unwrap();
    }
}
