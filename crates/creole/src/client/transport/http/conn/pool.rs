//! The connections to one server, kept for later requests: an HTTP/1.1 connection carries one request at a time, one
//! HTTP/2 connection carries all.

use crate::sync::Mutex;
use std::error::Error;
use std::future::poll_fn;
use std::sync::{Arc, MutexGuard, Weak};

use http::Uri;
use http::uri::PathAndQuery;
use hyper::client::conn::http2;
use hyper_util::client::legacy::connect::Connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::sleep;
use tower_service::Service;

use crate::client::transport::http::conn::body_reader::{
    IDLE_TIMEOUT, KEEP_ALIVE, RequestPayload, ServerConnector,
};
use crate::client::transport::http::conn::http1::Http1Connection;
use crate::client::transport::http::conn::request::HttpRequest;
use crate::client::transport::http::conn::response::{ResponseBody, ResponseHead};

/// Maximum number of idle connections.
const MAX_IDLE: usize = 256;

/// The number of sweeps after which an idle connection is closed. Counting sweeps costs a call less than reading the
/// clock.
const IDLE_ROUNDS: u32 = 4;

/// The connections to one origin.
pub(crate) struct ConnectionPool {
    connector: ServerConnector,
    origin: Uri,
    connections: Mutex<Connections>,
    weak_self: Weak<Self>,
}

#[derive(Default)]
struct Connections {
    /// Each with the sweep in which it was last used; the most recently used one is last.
    idle: Vec<(Box<Http1Connection>, u32)>,
    multiplexed: Option<http2::SendRequest<RequestPayload>>,
    /// Whether a sweep is scheduled.
    is_sweeping: bool,
    /// The number of sweeps so far.
    round: u32,
}

/// Why there is no response.
pub(crate) enum SendError {
    /// The connection could not be made.
    Connect(Box<dyn Error + Send + Sync>),
    /// The connection broke.
    Lost(Box<dyn Error + Send + Sync>),
}

/// The head and the body of a response.
pub(crate) type ResponseParts = (ResponseHead, ResponseBody);

impl ConnectionPool {
    /// An empty pool. The origin has a scheme and a host.
    pub(crate) fn new(connector: ServerConnector, origin: Uri) -> Arc<Self> {
        let connections = Mutex::default();
        Arc::new_cyclic(|own| Self { connector, origin, connections, weak_self: own.clone() })
    }

    /// Sends a request and waits for the head of its response. A request is sent once: only if no byte of it was sent
    /// is it retried on another connection.
    pub(crate) async fn send(&self, request: &HttpRequest) -> Result<ResponseParts, SendError> {
        loop {
            let multiplexed = self.lock().multiplexed.clone().filter(|sender| sender.is_ready());
            let sent = match multiplexed {
                Some(sender) => Box::pin(self.send_http2(sender, request)).await?,
                None => match self.idle() {
                    Some(connection) => self.send_http1(connection, request).await?,
                    None => break,
                },
            };
            if let Some(answer) = sent {
                return Ok(answer);
            }
        }
        // On the heap, as everything rare: the future of a call is moved, so it must be small.
        let sent = Box::pin(self.connect(request)).await?;
        sent.ok_or_else(|| SendError::Connect("the connection was closed at once".into()))
    }

    /// Sends on a connection that may have been closed meanwhile; `None` if no byte was sent.
    async fn send_http1(
        &self,
        mut connection: Box<Http1Connection>,
        request: &HttpRequest,
    ) -> Result<Option<ResponseParts>, SendError> {
        match connection.send(request).await {
            Ok(head) => {
                Ok(Some((head, ResponseBody::http1(connection, Weak::clone(&self.weak_self)))))
            }
            Err((_, false)) => Ok(None),
            Err((error, true)) => Err(SendError::Lost(error.into())),
        }
    }

    async fn send_http2(
        &self,
        mut sender: http2::SendRequest<RequestPayload>,
        request: &HttpRequest,
    ) -> Result<Option<ResponseParts>, SendError> {
        let request = request.to_http2(self.absolute_uri(request.path()));
        match sender.try_send_request(request).await {
            Ok(answer) => {
                let (parts, body) = answer.into_parts();
                Ok(Some((
                    ResponseHead::from_headers(parts.status, &parts.headers),
                    ResponseBody::Http2(body),
                )))
            }
            Err(mut error) => match error.take_message() {
                Some(_) => Ok(None),
                None => Err(SendError::Lost(error.into_error().into())),
            },
        }
    }

    fn absolute_uri(&self, path: &PathAndQuery) -> Uri {
        let mut parts = self.origin.clone().into_parts();
        parts.path_and_query = Some(path.clone());
        // The two parts of an origin and a path always form a URI.
        Uri::from_parts(parts).unwrap_or_else(|_| self.origin.clone())
    }

    /// A connection that is ready for a request.
    fn idle(&self) -> Option<Box<Http1Connection>> {
        loop {
            let (mut connection, _) = self.lock().idle.pop()?;
            if connection.is_still_open() {
                return Some(connection);
            }
        }
    }

    /// Sends on a new connection.
    async fn connect(&self, request: &HttpRequest) -> Result<Option<ResponseParts>, SendError> {
        let mut connector = self.connector.clone();
        let ready = poll_fn(|context| connector.poll_ready(context)).await;
        ready.map_err(SendError::Connect)?;
        let stream = connector.call(self.origin.clone()).await.map_err(SendError::Connect)?;
        let refused = |error: hyper::Error| SendError::Connect(error.into());
        if stream.connected().is_negotiated_h2() {
            let mut http = http2::Builder::new(TokioExecutor::new());
            http.timer(TokioTimer::new());
            http.keep_alive_interval(KEEP_ALIVE).keep_alive_timeout(KEEP_ALIVE);
            let (sender, connection) = http.handshake(stream).await.map_err(refused)?;
            // The requests on it get its error.
            tokio::spawn(connection);
            self.lock().multiplexed = Some(sender.clone());
            return self.send_http2(sender, request).await;
        }
        self.send_http1(Http1Connection::new(stream), request).await
    }

    /// Keeps a connection whose response was read.
    pub(crate) fn put_back(&self, mut connection: Box<Http1Connection>) {
        let mut connections = self.lock();
        if connections.idle.len() >= MAX_IDLE {
            return;
        }
        connection.shrink();
        let round = connections.round;
        connections.idle.push((connection, round));
        if !connections.is_sweeping {
            connections.is_sweeping = true;
            tokio::spawn(sweep(Weak::clone(&self.weak_self)));
        }
    }

    /// Closes connections that were idle for too long; returns whether there are more idle ones.
    fn drop_idle(&self) -> bool {
        let mut connections = self.lock();
        connections.round = connections.round.wrapping_add(1);
        let round = connections.round;
        let is_kept = |(connection, used): &mut (Box<Http1Connection>, u32)| {
            round.wrapping_sub(*used) < IDLE_ROUNDS && connection.is_still_open()
        };
        connections.idle.retain_mut(is_kept);
        connections.is_sweeping = !connections.idle.is_empty();
        connections.is_sweeping
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock()
    }
}

async fn sweep(pool: Weak<ConnectionPool>) {
    loop {
        sleep(IDLE_TIMEOUT / IDLE_ROUNDS).await;
        if !pool.upgrade().is_some_and(|pool| pool.drop_idle()) {
            return;
        }
    }
}
