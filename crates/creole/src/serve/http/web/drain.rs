//! The end of a server: no new connections, then no open ones, then nothing.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::{Notify, watch};

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DrainStage {
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
    progress: Arc<DrainProgress>,
    /// Every connection holds a receiver: the end waits until there is none.
    connections: Arc<watch::Sender<()>>,
}

/// How far the end has come. Every request looks at it, so looking takes no lock.
#[derive(Debug)]
struct DrainProgress {
    stage: AtomicU8,
    advanced: Notify,
}

impl DrainProgress {
    fn stage(&self) -> DrainStage {
        match self.stage.load(Ordering::Acquire) {
            stage if stage == DrainStage::Serving as u8 => DrainStage::Serving,
            stage if stage == DrainStage::Draining as u8 => DrainStage::Draining,
            _ => DrainStage::Ended,
        }
    }

    /// The stage, once the end has come this far. Cancel-safe.
    async fn wait_for(&self, stage: DrainStage) -> DrainStage {
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
            progress: Arc::new(DrainProgress {
                stage: AtomicU8::new(DrainStage::Serving as u8),
                advanced: Notify::new(),
            }),
            connections: Arc::new(watch::Sender::new(())),
        }
    }

    /// How far the end has come.
    pub fn stage(&self) -> DrainStage {
        self.progress.stage()
    }

    /// Lets calls finish and nothing new begin.
    pub fn begin(&self) {
        self.advance(DrainStage::Draining);
    }

    /// Closes whatever is still open.
    pub fn end(&self) {
        self.advance(DrainStage::Ended);
    }

    /// Resolves when the end has come this far.
    pub async fn wait_for(&self, stage: DrainStage) {
        self.progress.wait_for(stage).await;
    }

    /// Something that the end waits for, and that can watch it come.
    pub(crate) fn watch(&self) -> DrainWatch {
        DrainWatch { progress: Arc::clone(&self.progress), _present: self.connections.subscribe() }
    }

    /// Resolves when every [`DrainWatch`] is gone.
    pub(crate) async fn wait_finished(&self) {
        self.connections.closed().await;
    }

    fn advance(&self, to: DrainStage) {
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
pub(crate) struct DrainWatch {
    progress: Arc<DrainProgress>,
    _present: watch::Receiver<()>,
}

impl DrainWatch {
    /// How far the end has come.
    pub(crate) fn stage(&self) -> DrainStage {
        self.progress.stage()
    }

    /// The stage after this one, once the end has come further. Cancel-safe.
    pub(crate) async fn wait_beyond(&self, stage: DrainStage) -> DrainStage {
        let next =
            if stage == DrainStage::Serving { DrainStage::Draining } else { DrainStage::Ended };
        self.progress.wait_for(next).await
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
        assert_eq!(watch.wait_beyond(DrainStage::Serving).await, DrainStage::Draining);
        drain.end();
        drain.begin();
        assert_eq!(drain.stage(), DrainStage::Ended);
        assert_eq!(watch.wait_beyond(DrainStage::Draining).await, DrainStage::Ended);
        drain.wait_for(DrainStage::Ended).await;
        let ended = drain.clone();
        let waits = tokio::spawn(async move { ended.wait_finished().await });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        let asks = drain.clone();
        let asks = tokio::spawn(async move { asks.wait_for(DrainStage::Ended).await });
        drop(watch);
        waits.await.unwrap();
        asks.await.unwrap();
    }
}
