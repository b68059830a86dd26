//! The presence of a replica: a heartbeat that runs as long as anything is registered for other replicas.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use super::replica_request::ReplicaRequest;
use super::{HEARTBEAT, HEARTBEAT_TTL, Presence, ReplicaShared, presence_path, replica_request};
use crate::state::{StateError, Subscription, TopicEvent};

/// Starts the heartbeat, unless it is running.
pub(super) fn start(shared: &Arc<ReplicaShared>) {
    let mut registration = shared.registrations();
    if !registration.is_heartbeat_running {
        registration.is_heartbeat_running = true;
        tokio::spawn(run(Arc::clone(shared)));
    }
}

async fn run(shared: Arc<ReplicaShared>) {
    loop {
        if let Err(error) = heartbeat_until_empty(&shared).await {
            tracing::warn!(%error, "cannot write the heartbeat; other replicas cannot find the \
                sessions and calls of this one");
            shared.presence.send_replace(Presence::Failing);
            tokio::time::sleep(HEARTBEAT).await;
            // Another replica finds this process again with the next heartbeat.
            if !shared.registrations().handlers.is_empty() {
                continue;
            }
        }
        shared.presence.send_replace(Presence::Absent);
        // A later registration waits until this process can be found again.
        _ = shared.state.remove(&presence_path(&shared.name)).await;
        let mut registration = shared.registrations();
        if registration.handlers.is_empty() {
            registration.is_heartbeat_running = false;
            return;
        }
    }
}

/// Listens and sends heartbeats until nothing is registered any more.
async fn heartbeat_until_empty(shared: &Arc<ReplicaShared>) -> Result<(), StateError> {
    let path = presence_path(&shared.name);
    let mut subscription = shared.state.subscribe(&path).await?;
    loop {
        shared.state.put(&path, Bytes::new(), Some(HEARTBEAT_TTL)).await?;
        shared.presence.send_replace(Presence::Present);
        listen_until(Instant::now() + HEARTBEAT, &mut subscription, shared).await;
        if shared.registrations().handlers.is_empty() {
            return Ok(());
        }
    }
}

async fn listen_until(end: Instant, subscription: &mut Subscription, shared: &Arc<ReplicaShared>) {
    loop {
        let event = tokio::select! {
            event = subscription.next() => event,
            () = sleep_until(end) => return,
        };
        match event {
            Some(TopicEvent::Message(id)) => accept_request(&id, shared),
            // The sender announces a request again until it is accepted.
            Some(TopicEvent::Missed) => {}
            None => return sleep_until(end).await,
        }
    }
}

/// Accepts a request, unless too many are running: its sender announces it again.
fn accept_request(id: &[u8], shared: &Arc<ReplicaShared>) {
    let Ok(id) = std::str::from_utf8(id) else { return };
    let Ok(slot) = Arc::clone(&shared.slots).try_acquire_owned() else { return };
    let (shared, id) = (Arc::clone(shared), id.to_owned());
    tokio::spawn(async move {
        match ReplicaRequest::take(Arc::clone(&shared), &id, slot).await {
            Ok(Some((target, request))) => match shared.handler(&target) {
                Some(handler) => handler(request),
                None => request.responder.reject_unknown().await,
            },
            // Another receiver took it, or the requester stopped waiting.
            Ok(None) => {}
            Err(error) => replica_request::log_state_error(&error),
        }
    });
}
