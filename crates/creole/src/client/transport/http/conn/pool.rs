//! The connections to one server, kept for later requests: an HTTP/1.1 connection carries one request at a time, one
//! HTTP/2 connection carries all.

use crate::sync::Mutex;
use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;

use http::Uri;
use http::uri::PathAndQuery;
use hyper::client::conn::http2;
use hyper_util::client::legacy::connect::Connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower_service::Service;

use crate::client::transport::http::conn::http1::Http1Connection;
use crate::client::transport::http::conn::idle_connections::IdleConnections;
use crate::client::transport::http::conn::request::{HttpRequest, RequestPayload};
use crate::client::transport::http::conn::response::ResponseHead;
use crate::client::transport::http::conn::response_body::ResponseBody;
use crate::client::transport::http::conn::server_connector::{KEEP_ALIVE, ServerConnector};

/// The connections to one origin.
pub(crate) struct ConnectionPool {
    connector: ServerConnector,
    origin: Uri,
    idle: Arc<IdleConnections>,
    /// The HTTP/2 connection, if the server supports HTTP/2.
    multiplexed: Mutex<Option<http2::SendRequest<RequestPayload>>>,
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
    pub(crate) fn new(connector: ServerConnector, origin: Uri) -> Self {
        Self { connector, origin, idle: Arc::default(), multiplexed: Mutex::default() }
    }

    /// Sends a request and waits for the head of its response. A request is sent once: only if no byte of it was sent
    /// is it retried on another connection.
    pub(crate) async fn send(&self, request: &HttpRequest) -> Result<ResponseParts, SendError> {
        loop {
            let multiplexed = self.multiplexed.lock().clone().filter(|sender| sender.is_ready());
            let sent = match multiplexed {
                Some(sender) => Box::pin(self.send_http2(sender, request)).await?,
                None => match self.idle.take() {
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
                Ok(Some((head, ResponseBody::http1(connection, Arc::downgrade(&self.idle)))))
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
            Ok(response) => {
                let (parts, body) = response.into_parts();
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
            *self.multiplexed.lock() = Some(sender.clone());
            return self.send_http2(sender, request).await;
        }
        self.send_http1(Http1Connection::new(stream), request).await
    }
}
