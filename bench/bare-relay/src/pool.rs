//! A pool of connections to the upstream, each with one request at a time.

use std::cell::RefCell;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::Trouble;

/// An idle connection, on which a request can be sent.
type Idle = SendRequest<Full<Bytes>>;

/// The idle connections. There are never more than the largest number of concurrent requests.
pub struct Pool {
    address: SocketAddr,
    idle: RefCell<Vec<Idle>>,
}

impl Pool {
    /// An empty pool.
    pub fn to(address: SocketAddr) -> Self {
        Self { address, idle: RefCell::default() }
    }

    /// An idle connection, or a new one.
    pub async fn take(&self) -> Result<Idle, Trouble> {
        while let Some(mut idle) = self.pop() {
            if idle.ready().await.is_ok() {
                return Ok(idle);
            }
        }
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // The sender gets the error that ends the connection.
        tokio::task::spawn_local(connection);
        Ok(sender)
    }

    /// Returns a connection to the pool after its response was read.
    pub fn put_back(&self, connection: Idle) {
        self.idle.borrow_mut().push(connection);
    }

    fn pop(&self) -> Option<Idle> {
        self.idle.borrow_mut().pop()
    }
}
