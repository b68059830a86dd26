//! The connection that waits for notifications. A notification is a hint to read the messages at once: without this
//! connection they are polled four times a second.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{AsyncMessage, Client};

use super::connect_attempts::ConnectAttempts;
use super::failure::ConnectFailure;
use super::messages::MessageFeed;

/// How often a connection without subscribers looks for one.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// A connection that lasted longer was not a failed attempt.
const STABLE_TIME: Duration = Duration::from_secs(10);

/// Listens while the state exists, and connects again when the connection is lost.
pub(super) async fn listen(feed: Arc<MessageFeed>) {
    let mut attempts = ConnectAttempts::default();
    loop {
        while !feed.has_listeners() {
            sleep(IDLE_INTERVAL).await;
        }
        if feed.pool().has_no_notifications() {
            // The pooler would listen on a connection that other programs use too.
            return;
        }
        let started = Instant::now();
        let problem = match listen_once(&feed).await {
            Ok(()) => "the connection was lost".to_owned(),
            Err(failure) => failure.problem().to_owned(),
        };
        // Messages may have arrived meanwhile.
        feed.set_notified(false);
        if started.elapsed() >= STABLE_TIME {
            attempts.record_success();
        }
        // Logged once, not with every attempt.
        if attempts.record_failure(Instant::now()) {
            let store = &feed.pool().settings().store;
            tracing::warn!(%store, problem, "no notifications of messages; polling for them");
        }
        sleep(attempts.remaining_pause(Instant::now())).await;
    }
}

/// Listens until the connection is lost.
async fn listen_once(feed: &MessageFeed) -> Result<(), ConnectFailure> {
    let settings = feed.pool().settings();
    let no_answer = || {
        let problem = format!("the server did not answer within {:?}", settings.timeout);
        ConnectFailure::Unreachable(problem)
    };
    let connecting = settings.listen.config.connect(settings.listen.tls.clone());
    let (client, mut connection) = match timeout(settings.timeout, connecting).await {
        Ok(connected) => connected.map_err(|error| ConnectFailure::of(&error))?,
        Err(_) => return Err(no_answer()),
    };
    let receive = async {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message {
                feed.set_notified(true);
                if !feed.is_own(notification.payload()) {
                    feed.wake();
                }
            }
        }
    };
    let subscribe = async {
        match timeout(settings.timeout, start_listening(&client, &settings.name)).await {
            Ok(started) => started.map_err(|error| ConnectFailure::of(&error))?,
            Err(_) => return Err(no_answer()),
        }
        // Messages may have come before it listened.
        feed.wake();
        // A pooler may accept the statement and pass no notification on.
        if let Err(error) = feed.notify_self().await {
            tracing::debug!(%error, "cannot test the notifications; polling for messages");
        }
        // The client must exist as long as the connection.
        std::future::pending::<Result<(), ConnectFailure>>().await
    };
    tokio::select! {
        () = receive => Ok(()),
        refused = subscribe => refused,
    }
}

async fn start_listening(client: &Client, name: &str) -> Result<(), tokio_postgres::Error> {
    // The characters of the name were checked.
    client.batch_execute(&format!("LISTEN \"creole_{name}\"")).await
}
