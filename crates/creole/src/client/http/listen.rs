//! The stream of what belongs to no call, which a server of the handshake era may offer.

use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::time::{Instant, sleep};

use super::Inner;
use super::answer::Kind;
use super::exchange::{self, Place};
use super::head::LAST_EVENT_NAME;

/// How often in a row nothing may come before the stream is given up.
const TRIES: u32 = 5;

/// How long to wait before a stream is opened again that brought nothing.
const PAUSE: Duration = Duration::from_secs(5);

/// A stream that stayed open for so long was not in vain, whatever it brought: many servers have nothing to tell, and
/// whoever stands between ends streams that are silent.
const WORTHWHILE: Duration = Duration::from_secs(20);

/// Listens for as long as the server offers it, and has the connection know whether it does.
pub(super) async fn listen(link: Weak<Inner>) {
    let (mut place, mut in_vain, mut worked) = (Place::default(), 0, false);
    while in_vain < TRIES {
        let Some(inner) = link.upgrade() else { return };
        let mut head = inner.listening_head();
        if let Some(last) = &place.last {
            head.set(LAST_EVENT_NAME, last.clone());
        }
        let request = inner.target.request(Method::GET, head, Bytes::new());
        place.moved = false;
        let mut lasted = false;
        match inner.target.begin(&request).await {
            Ok((head, _)) if head.status == StatusCode::NOT_FOUND && worked => {
                return inner.lost_session();
            }
            Ok((head, _)) if head.status.is_server_error() => {}
            Ok((head, body)) => {
                // Mostly 405: it has no such stream.
                if !head.status.is_success() || head.kind != Kind::Events {
                    return;
                }
                worked = true;
                let opened = Instant::now();
                inner.inbox.hears(true);
                exchange::take(&inner, None, body, &mut place).await;
                inner.inbox.hears(false);
                lasted = opened.elapsed() >= WORTHWHILE;
            }
            Err(_) => {}
        }
        drop(inner);
        in_vain = if place.moved || lasted { 0 } else { in_vain + 1 };
        sleep(if place.moved { place.retry } else { PAUSE }).await;
    }
}
