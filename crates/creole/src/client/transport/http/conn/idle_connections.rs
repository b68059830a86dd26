//! The idle HTTP/1.1 connections to one server, kept for later requests.

use std::sync::{Arc, Weak};

use tokio::time::sleep;

use crate::client::transport::http::conn::http1::Http1Connection;
use crate::client::transport::http::conn::server_connector::IDLE_TIMEOUT;
use crate::sync::Mutex;

/// Maximum number of idle connections.
const MAX_IDLE: usize = 256;

/// The number of sweeps after which an idle connection is closed. Counting sweeps costs a call less than reading the
/// clock.
const IDLE_ROUNDS: u32 = 4;

/// The idle connections. A response body holds a weak reference, so it returns its connection only while the pool exists.
#[derive(Default)]
pub(crate) struct IdleConnections(Mutex<IdleState>);

#[derive(Default)]
struct IdleState {
    /// Each with the sweep in which it was last used; the most recently used one is last.
    connections: Vec<(Box<Http1Connection>, u32)>,
    /// Whether a sweep is scheduled.
    is_sweeping: bool,
    /// The number of sweeps so far.
    round: u32,
}

impl IdleConnections {
    /// Takes a connection that is ready for a request.
    pub(crate) fn take(&self) -> Option<Box<Http1Connection>> {
        loop {
            let (mut connection, _) = self.0.lock().connections.pop()?;
            if connection.is_still_open() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose response was read.
    pub(crate) fn put_back(self: &Arc<Self>, mut connection: Box<Http1Connection>) {
        let mut state = self.0.lock();
        if state.connections.len() >= MAX_IDLE {
            return;
        }
        connection.shrink();
        let round = state.round;
        state.connections.push((connection, round));
        if !state.is_sweeping {
            state.is_sweeping = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes connections that were idle for too long; returns whether there are more idle ones.
    fn drop_idle(&self) -> bool {
        let mut state = self.0.lock();
        state.round = state.round.wrapping_add(1);
        let round = state.round;
        let is_kept = |(connection, used): &mut (Box<Http1Connection>, u32)| {
            round.wrapping_sub(*used) < IDLE_ROUNDS && connection.is_still_open()
        };
        state.connections.retain_mut(is_kept);
        state.is_sweeping = !state.connections.is_empty();
        state.is_sweeping
    }
}

async fn sweep(idle: Weak<IdleConnections>) {
    loop {
        sleep(IDLE_TIMEOUT / IDLE_ROUNDS).await;
        if !idle.upgrade().is_some_and(|idle| idle.drop_idle()) {
            return;
        }
    }
}
