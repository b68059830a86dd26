//! Sessions of people and programs that signed in: a bearer for 12 hours, or 30 minutes without a request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use creole::Principal;
use creole::internal::seal::digest;
use creole::internal::sync::Mutex;
use creole::internal::task::random_id;
use creole_proto::fault::Fault;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How long a session lives.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// How long a session lives without a request.
pub(crate) const IDLE: Duration = Duration::from_secs(30 * 60);
/// Maximum number of sessions. Beyond it, the one that was unused for longest ends.
const MAX_SESSIONS: usize = 256;
/// What the bearers of sessions begin with, so that they are never taken for keys.
pub(super) const PREFIX: &str = "cas_";

/// A session.
pub(crate) struct BearerSession {
    /// Who signed in.
    pub(crate) principal: Principal,
    key: [u8; 32],
    ends: Instant,
    expires: SystemTime,
    last_used: Mutex<Instant>,
    closed: watch::Sender<bool>,
}

impl BearerSession {
    /// When the session ends at the latest.
    pub(crate) fn expires(&self) -> SystemTime {
        self.expires
    }

    fn is_over(&self, now: Instant) -> bool {
        *self.closed.borrow() || now >= self.ends || now >= *self.last_used.lock() + IDLE
    }

    /// Resolves when the session has ended. An open stream is no use of it.
    pub(crate) async fn ended(&self) {
        let mut closed = self.closed.subscribe();
        loop {
            let end = self.ends.min(*self.last_used.lock() + IDLE);
            if self.is_over(Instant::now()) {
                return;
            }
            tokio::select! {
                _ = closed.wait_for(|closed| *closed) => return,
                () = sleep_until(end) => {}
            }
        }
    }
}

/// The open sessions, by the digest of their bearer.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<[u8; 32], Arc<BearerSession>>>);

impl Sessions {
    /// Opens a session; returns its bearer.
    pub(super) fn open(&self, principal: Principal) -> Result<(String, Arc<BearerSession>), Fault> {
        let bearer = format!("{PREFIX}{}{}", random_id()?, random_id()?);
        let now = Instant::now();
        let session = Arc::new(BearerSession {
            principal,
            key: digest(bearer.as_bytes()),
            ends: now + LIFETIME,
            expires: SystemTime::now() + LIFETIME,
            last_used: Mutex::new(now),
            closed: watch::Sender::new(false),
        });
        let mut sessions = self.0.lock();
        sessions.retain(|_, session| !session.is_over(now));
        if sessions.len() >= MAX_SESSIONS {
            let oldest = sessions.values().min_by_key(|session| *session.last_used.lock());
            if let Some(oldest) = oldest.map(Arc::clone) {
                end(&mut sessions, &oldest);
            }
        }
        sessions.insert(session.key, Arc::clone(&session));
        Ok((bearer, session))
    }

    /// The session of a bearer. The request counts as its use.
    pub(super) fn find(&self, bearer: &str) -> Option<Arc<BearerSession>> {
        let now = Instant::now();
        let mut sessions = self.0.lock();
        let session = sessions.get(&digest(bearer.as_bytes())).map(Arc::clone)?;
        if session.is_over(now) {
            end(&mut sessions, &session);
            return None;
        }
        *session.last_used.lock() = now;
        Some(session)
    }

    /// Ends a session and its streams.
    pub(super) fn close(&self, session: &BearerSession) {
        end(&mut self.0.lock(), session);
    }
}

fn end(sessions: &mut HashMap<[u8; 32], Arc<BearerSession>>, session: &BearerSession) {
    session.closed.send_replace(true);
    sessions.remove(&session.key);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advance(minutes: u64) -> impl Future<Output = ()> {
        tokio::time::advance(Duration::from_secs(minutes * 60))
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_after_half_an_hour_without_a_request() {
        let sessions = Sessions::default();
        let (bearer, session) = sessions.open(Principal::from("anna")).unwrap();
        for _ in 0..20 {
            advance(29).await;
            assert!(sessions.find(&bearer).is_some());
        }
        advance(31).await;
        session.ended().await;
        assert!(sessions.find(&bearer).is_none());
        assert!(sessions.find("cas_other").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_after_twelve_hours_and_at_a_sign_out() {
        let sessions = Sessions::default();
        let (bearer, _) = sessions.open(Principal::from("anna")).unwrap();
        for _ in 0..36 {
            assert!(sessions.find(&bearer).is_some());
            advance(20).await;
        }
        assert!(sessions.find(&bearer).is_none());
        let (bearer, session) = sessions.open(Principal::from("anna")).unwrap();
        sessions.close(&session);
        session.ended().await;
        assert!(sessions.find(&bearer).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_session_that_was_unused_for_longest_makes_room() {
        let sessions = Sessions::default();
        let (first, _) = sessions.open(Principal::from("anna")).unwrap();
        let (second, _) = sessions.open(Principal::from("anna")).unwrap();
        advance(1).await;
        assert!(sessions.find(&first).is_some());
        for _ in 0..MAX_SESSIONS - 1 {
            sessions.open(Principal::from("anna")).unwrap();
        }
        assert!(sessions.find(&first).is_some());
        assert!(sessions.find(&second).is_none());
    }
}
