//! Connections to one server, kept for the next request: those of HTTP/1.1 carry one request at a time, one of HTTP/2
//! carries all.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, sleep};
use tower_service::Service;

use super::wire::{IDLE, KEEP_ALIVE, Payload};

/// The most connections that are kept.
const MOST_IDLE: usize = 256;

/// The connections to one origin.
pub(super) struct Pool {
    connector: HttpsConnector<HttpConnector>,
    origin: Uri,
    host: HeaderValue,
    connections: Mutex<Connections>,
    own: Weak<Self>,
}

#[derive(Default)]
struct Connections {
    /// The one that was used last is the last.
    idle: Vec<(Single, Instant)>,
    multiplexed: Option<http2::SendRequest<Payload>>,
    /// Whether somebody will look for those that are idle for too long.
    is_swept: bool,
}

/// A connection with one request at a time.
type Single = http1::SendRequest<Payload>;

/// Why there is no answer.
pub(super) enum Unreached {
    /// There is no connection.
    Connect(Box<dyn Error + Send + Sync>),
    /// There was one.
    Lost(hyper::Error),
}

/// What came of sending on a connection that may have been closed meanwhile.
enum Sent {
    Answered(Response<Answer>),
    /// Nothing of it was sent.
    Back(Box<Request<Payload>>),
}

impl Pool {
    /// An empty pool. The origin has a scheme and a host, which becomes the header of that name.
    pub(super) fn new(
        connector: HttpsConnector<HttpConnector>,
        origin: Uri,
        host: HeaderValue,
    ) -> Arc<Self> {
        let connections = Mutex::default();
        Arc::new_cyclic(|own| Self { connector, origin, host, connections, own: own.clone() })
    }

    /// Sends a request, whose target is a path, and waits for the head of its answer. It is sent once: only one of
    /// which nothing was sent is tried again, on another connection.
    pub(super) async fn send(
        &self,
        mut request: Box<Request<Payload>>,
    ) -> Result<Response<Answer>, Unreached> {
        loop {
            let multiplexed = self.lock().multiplexed.clone().filter(|sender| sender.is_ready());
            let sent = match multiplexed {
                Some(sender) => Box::pin(self.send_beside(sender, request)).await?,
                None => match self.idle().await {
                    Some(sender) => self.send_alone(sender, request).await?,
                    None => break,
                },
            };
            match sent {
                Sent::Answered(answer) => return Ok(answer),
                Sent::Back(back) => request = back,
            }
        }
        // On the heap, as all that is rare: the future of a call is moved, so it is to be small.
        match Box::pin(self.connect(request)).await? {
            Sent::Answered(answer) => Ok(answer),
            Sent::Back(_) => Err(Unreached::Connect("it was closed at once".into())),
        }
    }

    async fn send_alone(
        &self,
        mut sender: Single,
        mut request: Box<Request<Payload>>,
    ) -> Result<Sent, Unreached> {
        request.headers_mut().insert(HOST, self.host.clone());
        match sender.try_send_request(*request).await {
            Ok(answer) => {
                let lent = Some((sender, Weak::clone(&self.own)));
                Ok(Sent::Answered(answer.map(|body| Answer { body, lent }.returned_if_empty())))
            }
            Err(mut error) => match error.take_message() {
                Some(request) => Ok(Sent::Back(Box::new(request))),
                None => Err(Unreached::Lost(error.into_error())),
            },
        }
    }

    async fn send_beside(
        &self,
        mut sender: http2::SendRequest<Payload>,
        mut request: Box<Request<Payload>>,
    ) -> Result<Sent, Unreached> {
        // There the target names the host.
        request.headers_mut().remove(HOST);
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = self.at(path.clone());
        match sender.try_send_request(*request).await {
            Ok(answer) => Ok(Sent::Answered(answer.map(|body| Answer { body, lent: None }))),
            Err(mut error) => match error.take_message() {
                Some(mut request) => {
                    *request.uri_mut() = path.map_or_else(Uri::default, Uri::from);
                    Ok(Sent::Back(Box::new(request)))
                }
                None => Err(Unreached::Lost(error.into_error())),
            },
        }
    }

    fn at(&self, path: Option<http::uri::PathAndQuery>) -> Uri {
        let mut parts = self.origin.clone().into_parts();
        parts.path_and_query = path;
        // Two parts of a target and a path make a target.
        Uri::from_parts(parts).unwrap_or_else(|_| self.origin.clone())
    }

    /// A connection that is ready for a request.
    async fn idle(&self) -> Option<Single> {
        loop {
            let (mut sender, since) = self.lock().idle.pop()?;
            if since.elapsed() < IDLE && sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    /// Sends on a new connection.
    async fn connect(&self, request: Box<Request<Payload>>) -> Result<Sent, Unreached> {
        let mut connector = self.connector.clone();
        let ready = poll_fn(|context| connector.poll_ready(context)).await;
        ready.map_err(Unreached::Connect)?;
        let stream = connector.call(self.origin.clone()).await.map_err(Unreached::Connect)?;
        let refused = |error: hyper::Error| Unreached::Connect(error.into());
        if stream.connected().is_negotiated_h2() {
            let mut http = http2::Builder::new(TokioExecutor::new());
            http.timer(TokioTimer::new());
            http.keep_alive_interval(KEEP_ALIVE).keep_alive_timeout(KEEP_ALIVE);
            let (sender, connection) = http.handshake(stream).await.map_err(refused)?;
            // Whoever waits on it is told of its end.
            tokio::spawn(connection);
            self.lock().multiplexed = Some(sender.clone());
            return self.send_beside(sender, request).await;
        }
        let (mut sender, connection) = http1::handshake(stream).await.map_err(refused)?;
        tokio::spawn(connection);
        sender.ready().await.map_err(refused)?;
        self.send_alone(sender, request).await
    }

    /// Keeps a connection whose answer was read.
    fn put_back(&self, sender: Single) {
        let mut connections = self.lock();
        if sender.is_closed() || connections.idle.len() >= MOST_IDLE {
            return;
        }
        connections.idle.push((sender, Instant::now()));
        if !connections.is_swept {
            connections.is_swept = true;
            tokio::spawn(sweep(Weak::clone(&self.own)));
        }
    }

    /// Closes what nobody used for long; tells whether there is more.
    fn forget_idle(&self) -> bool {
        let mut connections = self.lock();
        connections.idle.retain(|(sender, since)| !sender.is_closed() && since.elapsed() < IDLE);
        connections.is_swept = !connections.idle.is_empty();
        connections.is_swept
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn sweep(pool: Weak<Pool>) {
    loop {
        sleep(IDLE).await;
        if !pool.upgrade().is_some_and(|pool| pool.forget_idle()) {
            return;
        }
    }
}

/// The body of an answer. Read to its end it gives its connection back; dropped before, it closes that.
pub(super) struct Answer {
    body: Incoming,
    lent: Option<(Single, Weak<Pool>)>,
}

/// The body of an answer on a connection of another's.
impl From<Incoming> for Answer {
    fn from(body: Incoming) -> Self {
        Self { body, lent: None }
    }
}

impl Answer {
    fn returned_if_empty(mut self) -> Self {
        if self.body.is_end_stream() {
            self.give_back();
        }
        self
    }

    fn give_back(&mut self) {
        if let Some((sender, pool)) = self.lent.take()
            && let Some(pool) = pool.upgrade()
        {
            pool.put_back(sender);
        }
    }

    /// How long the rest of it is, if that is known.
    pub(super) fn length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    pub(super) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            Some(Err(_)) => self.lent = None,
            // Mostly the last piece is known to be the last.
            Some(Ok(_)) if !self.body.is_end_stream() => {}
            _ => self.give_back(),
        }
        Poll::Ready(frame)
    }
}
