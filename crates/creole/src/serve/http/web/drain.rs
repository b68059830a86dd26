//! Graceful shutdown of a server: first no new connections, then no open ones.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;

/// The stage of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DrainStage {
    /// Requests are served.
    Serving,
    /// Requests are served, but no session opens and the server is not ready: load balancers send new clients elsewhere.
    Leaving,
    /// Running calls may finish; nothing new starts.
    Draining,
    /// All open connections are closed.
    Ended,
}

/// Controls the shutdown of a server. Clones control the same server.
#[derive(Clone, Debug)]
pub struct Drain {
    progress: Arc<DrainProgress>,
    /// Every connection holds a receiver: the shutdown is complete when there is none.
    connections: Arc<watch::Sender<()>>,
}

/// The current stage. Every request reads it, so reading takes no lock.
#[derive(Debug)]
struct DrainProgress {
    stage: AtomicU8,
    advanced: Notify,
}

impl DrainProgress {
    fn stage(&self) -> DrainStage {
        match self.stage.load(Ordering::Acquire) {
            stage if stage == DrainStage::Serving as u8 => DrainStage::Serving,
            stage if stage == DrainStage::Leaving as u8 => DrainStage::Leaving,
            stage if stage == DrainStage::Draining as u8 => DrainStage::Draining,
            _ => DrainStage::Ended,
        }
    }

    /// Waits until the shutdown has reached this stage; returns the current one. Cancel-safe.
    async fn wait_for(&self, phase: DrainStage) -> DrainStage {
        loop {
            let mut advanced = pin!(self.advanced.notified());
            advanced.as_mut().enable();
            let now = self.stage();
            if now >= phase {
                return now;
            }
            advanced.await;
        }
    }
}

impl Drain {
    /// The control of a running server.
    pub fn new() -> Self {
        Self {
            progress: Arc::new(DrainProgress {
                stage: AtomicU8::new(DrainStage::Serving as u8),
                advanced: Notify::new(),
            }),
            connections: Arc::new(watch::Sender::new(())),
        }
    }

    /// The current stage.
    pub fn stage(&self) -> DrainStage {
        self.progress.stage()
    }

    /// Starts draining: running calls finish, nothing new starts.
    pub fn begin(&self) {
        self.advance(DrainStage::Draining);
    }

    /// Starts draining after a delay, in which load balancers learn that the server is no longer ready. It still accepts
    /// and serves until then. The end of the server cuts the delay short.
    pub async fn begin_after(&self, delay: Duration) {
        if !delay.is_zero() {
            self.advance(DrainStage::Leaving);
            // An error is the end of the delay.
            let _ = timeout(delay, self.wait_for(DrainStage::Draining)).await;
        }
        self.begin();
    }

    /// Closes all open connections.
    pub fn end(&self) {
        self.advance(DrainStage::Ended);
    }

    /// Resolves when the shutdown has reached this stage.
    pub async fn wait_for(&self, phase: DrainStage) {
        self.progress.wait_for(phase).await;
    }

    /// A watch that the shutdown waits for and that observes its stages.
    pub(crate) fn watch(&self) -> DrainWatch {
        DrainWatch { progress: Arc::clone(&self.progress), _present: self.connections.subscribe() }
    }

    /// Resolves when every [`DrainWatch`] is dropped.
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

/// One connection's view of the shutdown.
#[derive(Debug)]
pub(crate) struct DrainWatch {
    progress: Arc<DrainProgress>,
    _present: watch::Receiver<()>,
}

impl DrainWatch {
    /// Whether [`wait_beyond`](Self::wait_beyond) this stage would return at once.
    pub(crate) fn is_beyond(&self, phase: DrainStage) -> bool {
        self.progress.stage() >= next_for_connections(phase)
    }

    /// Waits until the shutdown is beyond this stage, for a connection, which `Leaving` does not concern; returns the current one. Cancel-safe.
    pub(crate) async fn wait_beyond(&self, phase: DrainStage) -> DrainStage {
        self.progress.wait_for(next_for_connections(phase)).await
    }
}

/// The next stage that concerns open connections.
fn next_for_connections(phase: DrainStage) -> DrainStage {
    if phase < DrainStage::Draining { DrainStage::Draining } else { DrainStage::Ended }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn phases_only_advance_and_the_end_waits_for_every_guard() {
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

    #[tokio::test(start_paused = true)]
    async fn a_delay_precedes_the_drain_and_the_end_cuts_it_short() {
        const DELAY: Duration = Duration::from_secs(5);
        let drain = Drain::new();
        let watch = drain.watch();
        let leaving = drain.clone();
        let leaving = tokio::spawn(async move { leaving.begin_after(DELAY).await });
        drain.wait_for(DrainStage::Leaving).await;
        assert!(!watch.is_beyond(DrainStage::Serving));
        tokio::time::advance(DELAY / 2).await;
        assert_eq!(drain.stage(), DrainStage::Leaving);
        assert_eq!(watch.wait_beyond(DrainStage::Serving).await, DrainStage::Draining);
        leaving.await.unwrap();

        let drain = Drain::new();
        let leaving = drain.clone();
        let leaving = tokio::spawn(async move { leaving.begin_after(DELAY).await });
        drain.wait_for(DrainStage::Leaving).await;
        let before = tokio::time::Instant::now();
        drain.end();
        leaving.await.unwrap();
        assert_eq!(before.elapsed(), Duration::ZERO);
        assert_eq!(drain.stage(), DrainStage::Ended);

        let drain = Drain::new();
        drain.begin_after(Duration::ZERO).await;
        assert_eq!(drain.stage(), DrainStage::Draining);
    }
}
