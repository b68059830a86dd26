//! Being there for others: said again and again, for as long as something is kept for them.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use super::errand::{self, Errand};
use super::{ALIVE, BEAT, Shared, presence_path};
use crate::state::{StateError, Subscription, Told};

/// Has somebody say that this process is there, unless somebody does.
pub(super) fn start(shared: &Arc<Shared>) {
    let mut kept = shared.kept();
    if !kept.runs {
        kept.runs = true;
        tokio::spawn(run(Arc::clone(shared)));
    }
}

async fn run(shared: Arc<Shared>) {
    loop {
        if let Err(error) = be_there(&shared).await {
            tracing::warn!(%error, "other processes cannot find what waits in this one");
            tokio::time::sleep(BEAT).await;
        }
        shared.present.send_replace(false);
        // What is kept from now on waits until this process is found again.
        _ = shared.state.remove(&presence_path(&shared.name)).await;
        let mut kept = shared.kept();
        if kept.takers.is_empty() {
            kept.runs = false;
            return;
        }
    }
}

/// Listens, and says so, until nothing is kept any more.
async fn be_there(shared: &Arc<Shared>) -> Result<(), StateError> {
    let path = presence_path(&shared.name);
    let mut news = shared.state.subscribe(&path).await?;
    loop {
        shared.state.put(&path, Bytes::new(), Some(ALIVE)).await?;
        shared.present.send_replace(true);
        listen_until(Instant::now() + BEAT, &mut news, shared).await;
        if shared.kept().takers.is_empty() {
            return Ok(());
        }
    }
}

async fn listen_until(end: Instant, news: &mut Subscription, shared: &Arc<Shared>) {
    loop {
        let told = tokio::select! {
            told = news.next() => told,
            () = sleep_until(end) => return,
        };
        match told {
            Some(Told::Message(id)) => take(&id, shared),
            // Who sent an errand tells of it again until it is taken.
            Some(Told::Missed) => {}
            None => return sleep_until(end).await,
        }
    }
}

/// Takes an errand, unless too many are under way: its sender tells of it again.
fn take(id: &[u8], shared: &Arc<Shared>) {
    let Ok(id) = std::str::from_utf8(id) else { return };
    let Ok(slot) = Arc::clone(&shared.slots).try_acquire_owned() else { return };
    let (shared, id) = (Arc::clone(shared), id.to_owned());
    tokio::spawn(async move {
        match Errand::take(Arc::clone(&shared), &id, slot).await {
            Ok(Some((target, errand))) => match shared.taker(&target) {
                Some(taker) => taker(errand),
                None => errand.desk.refuse().await,
            },
            // Somebody else took it, or nobody waits for it any more.
            Ok(None) => {}
            Err(error) => errand::warn(&error),
        }
    });
}
