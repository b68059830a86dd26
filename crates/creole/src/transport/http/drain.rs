//! The end of a server: no new connections, then no open ones, then nothing.

use std::sync::Arc;

use tokio::sync::watch;

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    stage: Arc<watch::Sender<Stage>>,
    /// Every connection holds a receiver: the end waits until there is none.
    present: Arc<watch::Sender<()>>,
}

impl Drain {
    /// A switch of a server that serves.
    pub fn new() -> Self {
        Self {
            stage: Arc::new(watch::Sender::new(Stage::Serving)),
            present: Arc::new(watch::Sender::new(())),
        }
    }

    /// How far the end has come.
    pub fn stage(&self) -> Stage {
        *self.stage.borrow()
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
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self.stage.subscribe().wait_for(|now| *now >= stage).await;
    }

    /// Something that the end waits for, and that can watch it come.
    pub(super) fn watch(&self) -> Watch {
        Watch { stage: self.stage.subscribe(), _present: self.present.subscribe() }
    }

    /// Resolves when every [`Watch`] is gone.
    pub(super) async fn finished(&self) {
        self.present.closed().await;
    }

    fn advance(&self, to: Stage) {
        self.stage.send_if_modified(|stage| {
            let later = to > *stage;
            *stage = to.max(*stage);
            later
        });
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
    stage: watch::Receiver<Stage>,
    _present: watch::Receiver<()>,
}

impl Watch {
    /// The stage after this one, once the end has come further. Cancel-safe.
    pub(super) async fn beyond(&mut self, stage: Stage) -> Stage {
        // A switch that is gone is an end too.
        self.stage.wait_for(|now| *now > stage).await.map_or(Stage::Ended, |now| *now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stages_only_go_forward_and_the_end_waits_for_every_watch() {
        let drain = Drain::new();
        let mut watch = drain.watch();
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
