//! A bounded pool of connections that all clients share, so that calls of different callers use the same connection,
//! one after the other.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::wire::{Connection, Response};

/// How long one exchange may take: only a server that hangs takes longer.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Connections to one server.
#[derive(Debug)]
pub struct Pool {
    server: SocketAddr,
    free: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    /// A pool of at most this many connections.
    #[must_use]
    pub fn new(server: SocketAddr, max: usize) -> Self {
        Self { server, free: Semaphore::new(max), idle: Mutex::default() }
    }

    /// The address of the server.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Sends one request and reads its response. Bytes after the response, or before the request, are an error:
    /// HTTP/1.1 has no response without a request.
    pub async fn exchange(&self, request: &[u8]) -> Result<Response, String> {
        let _permit = self.free.acquire().await.map_err(|error| error.to_string())?;
        match timeout(PATIENCE, self.exchange_now(request)).await {
            Ok(result) => result,
            Err(_) => Err(format!("no response within {PATIENCE:?}")),
        }
    }

    async fn exchange_now(&self, request: &[u8]) -> Result<Response, String> {
        let mut connection = match self.take_idle()? {
            Some(connection) => connection,
            None => Connection::open(self.server).await?,
        };
        connection.send(request).await?;
        let response = connection.response().await?;
        if response.head.has_header("connection", "close") {
            return Ok(response);
        }
        connection.has_ended().map_err(|noise| format!("after the response: {noise}"))?;
        self.idle().push(connection);
        Ok(response)
    }

    /// An idle connection. One that the server has closed meanwhile, as it may, is dropped.
    fn take_idle(&self) -> Result<Option<Connection>, String> {
        while let Some(connection) = self.idle().pop() {
            let ended = connection.has_ended();
            if !ended.map_err(|noise| format!("before the request: {noise}"))? {
                return Ok(Some(connection));
            }
        }
        Ok(None)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
