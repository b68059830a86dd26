//! The stream of messages that belong to no call, which a server of the handshake era may offer.

use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::time::{Instant, sleep};

use crate::client::transport::http::conn::request::LAST_EVENT_NAME;
use crate::client::transport::http::conn::response::ResponseKind;
use crate::client::transport::http::exchange::StreamPosition;
use crate::client::transport::http::{HttpSession, exchange};

/// How many empty streams in a row are allowed before the stream is given up.
const MAX_EMPTY_STREAMS: u32 = 5;

/// The pause before a stream that carried nothing is opened again.
const REOPEN_PAUSE: Duration = Duration::from_secs(5);

/// A stream that was open this long counts as useful even without events: many servers have nothing to send, and
/// proxies close silent streams.
const MIN_USEFUL_STREAM: Duration = Duration::from_secs(20);

/// Listens as long as the server offers the stream, and notifies the connection whether it does.
pub(crate) async fn listen(link: Weak<HttpSession>) {
    let (mut position, mut in_vain, mut worked) = (StreamPosition::default(), 0, false);
    while in_vain < MAX_EMPTY_STREAMS {
        let Some(inner) = link.upgrade() else { return };
        let mut head = inner.listen_headers();
        if let Some(last) = &position.last_event_id {
            head.set(LAST_EVENT_NAME, last.clone());
        }
        let request = inner.target.request(Method::GET, head, Bytes::new());
        position.has_progress = false;
        let mut lasted = false;
        match inner.target.send_request(&request).await {
            Ok((head, _)) if head.status == StatusCode::NOT_FOUND && worked => {
                return inner.on_session_lost();
            }
            Ok((head, _)) if head.status.is_server_error() => {}
            Ok((head, body)) => {
                // Mostly 405: the server has no such stream.
                if !head.status.is_success() || head.kind != ResponseKind::Events {
                    return;
                }
                worked = true;
                let opened = Instant::now();
                inner.inbox.set_notifications_available(true);
                exchange::receive_events(&inner, None, body, &mut position).await;
                inner.inbox.set_notifications_available(false);
                lasted = opened.elapsed() >= MIN_USEFUL_STREAM;
            }
            Err(_) => {}
        }
        drop(inner);
        in_vain = if position.has_progress || lasted { 0 } else { in_vain + 1 };
        sleep(if position.has_progress { position.retry } else { REOPEN_PAUSE }).await;
    }
}
