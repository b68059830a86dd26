//! The cell of one connection. Reading and emptying it never wait; one task at a time fills it.

use creole::internal::sync::Mutex;
use std::sync::MutexGuard;

use creole::internal::client::Connection;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};

/// The cell of one connection. Emptying it cannot fail: the isolation of callers depends on it.
#[derive(Default)]
pub(crate) struct ConnectionCell {
    connection: Mutex<Option<Connection>>,
    fill_lock: AsyncMutex<()>,
}

impl ConnectionCell {
    /// The connection, if it is open.
    pub(crate) fn open_connection(&self) -> Option<Connection> {
        self.lock().as_ref().filter(|open| open.close_reason().is_none()).cloned()
    }

    /// Empties the cell, also while it is being filled.
    pub(crate) fn take(&self) -> Option<Connection> {
        self.lock().take()
    }

    /// Waits for the exclusive right to fill the cell.
    pub(crate) async fn lock_for_filling(&self) -> AsyncMutexGuard<'_, ()> {
        self.fill_lock.lock().await
    }

    pub(crate) fn fill(&self, connection: Connection) {
        *self.lock() = Some(connection);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use creole::client::Program;
    use creole::proto::client::Profile;
    use creole::proto::model::Implementation;
    use creole::proto::revision::{Era, Revision};
    use creole::proto::wire::Raw;
    use creole::stream::MemoryConnection;
    use serde_json::{Value, json};
    use tokio::sync::oneshot;

    use crate::upstream::connections::capabilities::DeclaredInputs;
    use crate::upstream::connections::connector;
    use crate::upstream::connections::connector::UpstreamConnector;
    use crate::upstream::connections::pool::{EvictParkedCall, UpstreamPool};
    use crate::upstream::connections::session_key::{SessionKey, SessionOwner};
    use crate::upstream::{Address, RevisionChoice, UpstreamSettings};

    struct NoParkedCalls;

    impl EvictParkedCall for NoParkedCalls {
        fn evict_oldest(&self, _: &str) -> Option<oneshot::Receiver<()>> {
            None
        }
    }

    /// A server that performs the handshake.
    async fn serve(mut client: MemoryConnection) {
        while let Some(bytes) = client.receive().await {
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let message: Value = serde_json::from_slice(line).unwrap();
                if message["id"].is_null() {
                    continue;
                }
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                    "serverInfo": {"name": "s", "version": "1"}});
                let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                client.send(format!("{response}\n").as_bytes()).await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn a_session_that_is_left_while_another_call_inspects_it_is_not_reused() {
        connector::in_process::register("left_sessions", serve);
        let settings = UpstreamSettings::new(Address::Child(Program::new("left_sessions", "none")));
        let identity = Raw::from_value(&Implementation::default());
        let (dialect, limits) = (settings.dialect, settings.limits);
        let profile = Arc::new(Profile { dialect, identity, limits, extensions: Vec::new() });
        let choice = RevisionChoice::Revision(Revision::newest(Era::Handshake).rules());
        let pool = UpstreamPool::new(
            Arc::new(UpstreamConnector::new(settings.address, choice, profile)),
            Arc::new(NoParkedCalls),
            (8, 8),
        );
        let owner = SessionOwner::Principal("ann".into());
        let (era, inputs) = (Era::Handshake, DeclaredInputs::default());
        let key = SessionKey { owner, era, inputs, exclusive: true, lane: 0 };
        let lease = pool.lease(key.clone(), &Arc::default(), None).await.unwrap();
        assert!(pool.connection_if_open(&key).is_some());
        let another = lease.pool_slot.cell.lock_for_filling().await;
        lease.retire_connection();
        drop(another);
        assert!(pool.connection_if_open(&key).is_none());
    }
}
