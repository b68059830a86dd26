//! The background task of an endpoint: announces changes to hosts, and expires unused sessions.

use std::sync::Weak;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use crate::registry::Announcement;
use crate::serve::http::mcp::change_fanout::ChangeFanout;
use crate::serve::http::mcp::sessions::Sessions;

/// Runs until the endpoint is dropped.
pub(crate) async fn run(
    mut changes: Receiver<Announcement>,
    fanout: Weak<ChangeFanout>,
    sessions: Weak<Sessions>,
) {
    let Some(begun) = sessions.upgrade().map(|sessions| sessions.first_session()) else { return };
    loop {
        let Some(expiry) = sessions.upgrade().map(|sessions| sessions.expire()) else { return };
        let change = tokio::select! {
            change = changes.recv() => match change {
                Ok(change) => Some(change),
                Err(RecvError::Lagged(_)) => None,
                Err(RecvError::Closed) => return,
            },
            () = sleep_until(expiry.unwrap_or_else(far_away)), if expiry.is_some() => continue,
            () = begun.notified() => continue,
        };
        let Some(fanout) = fanout.upgrade() else { return };
        fanout.announce(change.as_ref());
    }
}

fn far_away() -> Instant {
    Instant::now() + std::time::Duration::from_secs(86_400)
}
