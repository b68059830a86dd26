//! Starts upstreams in the order of the configuration, a few at a time: if forty programs start at once on two cores,
//! all of them are late.

use std::num::NonZero;
use std::sync::{Arc, Weak};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::upstream::Upstream;

/// How long an upstream that does not respond delays the next one.
const MAX_START_WAIT: Duration = Duration::from_secs(5);

/// How many upstreams start at the same time.
pub(crate) fn max_concurrent_starts() -> usize {
    available_parallelism().map_or(2, NonZero::get).saturating_mul(2).clamp(4, 16)
}

/// Starts upstreams in this order. The first ones start before this function returns. Each further one starts when an
/// earlier one is ready, has failed or takes too long. Upstreams that wait for their only caller and upstreams that
/// have started already are skipped.
pub(super) fn start_in_order(upstreams: Vec<Weak<Upstream>>) {
    let permits = Arc::new(Semaphore::new(max_concurrent_starts()));
    let mut rest =
        upstreams.into_iter().filter_map(|it| it.upgrade()).filter(|it| it.startup().is_queued());
    let mut waiting = Vec::new();
    for upstream in rest.by_ref() {
        match Arc::clone(&permits).try_acquire_owned() {
            Ok(permit) => start_one(&upstream, permit),
            Err(_) => {
                waiting.push(Arc::downgrade(&upstream));
                break;
            }
        }
    }
    waiting.extend(rest.map(|upstream| Arc::downgrade(&upstream)));
    if waiting.is_empty() {
        return;
    }
    tokio::spawn(async move {
        for upstream in waiting {
            // The semaphore is never closed.
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            if let Some(upstream) = upstream.upgrade() {
                start_one(&upstream, permit);
            }
        }
    });
}

/// Starts one upstream. It holds its permit until it is ready or takes too long.
fn start_one(upstream: &Arc<Upstream>, permit: tokio::sync::OwnedSemaphorePermit) {
    upstream.startup().start_now();
    let upstream = Arc::clone(upstream);
    tokio::spawn(async move {
        _ = timeout(MAX_START_WAIT, upstream.startup().wait_until_tried()).await;
        drop(permit);
    });
}
