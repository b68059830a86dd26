//! A server with a trivial endpoint, and a client that sends bytes as they are written.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use creole_test_wait::eventually;
use http::header::AUTHORIZATION;
use http::{Method, Response, StatusCode};
use http_body::{Body, Frame};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::auth::Principal;
use crate::budget::Budget;
use crate::internal::http::{
    Admission, Authenticate, ErrorResponse, HttpHandler, IncomingBody, RequestHead,
};
use crate::serve::http::conn::http1::detach::Streaming;
use crate::serve::http::web::body;
use crate::serve::http::web::body::BodyLimits;
use crate::serve::http::web::tls::Certificates;
use crate::serve::http::{Drain, HttpLimits, Listener, OriginGuard, PeerAddress, Route, Router};

/// Long enough for any machine; only failing tests reach it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the body. The header `x-do` selects another behaviour.
#[derive(Clone, Default)]
pub(crate) struct Echo {
    /// The bodies of the requests that arrived, or their method where they have none.
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
    /// Releases the requests that wait.
    pub(crate) release: Arc<Notify>,
    /// Notified when a waiting request is abandoned.
    pub(crate) gone: Arc<Notify>,
    pub(crate) limits: BodyLimits,
    pub(crate) budget: Budget,
    /// The senders of the pieces of streaming responses.
    pub(crate) lasting: Arc<Mutex<Vec<mpsc::Sender<Bytes>>>>,
}

impl HttpHandler for Echo {
    type Body = PieceBody;

    async fn handle(
        &self,
        head: &mut RequestHead,
        body: IncomingBody,
        _: Option<Principal>,
    ) -> Response<PieceBody> {
        let todo = head.headers.get("x-do").map(|value| String::from_utf8(value.to_vec()).unwrap());
        let hold = || self.budget.reserve_for(());
        let (bytes, _held) = match body::read_reserved(body, &self.limits, hold).await {
            Ok(read) => read,
            Err(unread) => return ErrorResponse::from(unread).into_response(),
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let note = if text.is_empty() { head.method.to_string() } else { text };
        self.seen.lock().unwrap().push(note);
        match todo.as_deref() {
            Some("wait") => {
                let mut waiting = AbandonSignal(Some(Arc::clone(&self.gone)));
                self.release.notified().await;
                waiting.0 = None;
            }
            Some("panic") => panic!("on purpose"),
            Some("stream") => return Response::new(endless()),
            Some("last") => return lasting(self.last()),
            Some("last and stream") => return lasting(endless()),
            Some("large") => return Response::new(Bytes::from(vec![b'x'; 8 << 20]).into()),
            _ => {}
        }
        Response::new(bytes.into())
    }
}

/// Signals that a request was abandoned, unless it got its response.
struct AbandonSignal(Option<Arc<Notify>>);

impl Drop for AbandonSignal {
    fn drop(&mut self) {
        if let Some(gone) = self.0.take() {
            gone.notify_one();
        }
    }
}

impl Echo {
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// A body whose pieces the test sends.
    fn last(&self) -> PieceBody {
        let (sender, parts) = mpsc::channel(1);
        self.lasting.lock().unwrap().push(sender);
        PieceBody(parts)
    }

    /// Waits for a streaming response; returns the sender of its pieces.
    pub(crate) async fn begun(&self) -> mpsc::Sender<Bytes> {
        eventually("a streaming response begins", || self.lasting.lock().unwrap().pop()).await
    }
}

fn lasting(body: PieceBody) -> Response<PieceBody> {
    let mut response = Response::new(body);
    let events = http::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(http::header::CONTENT_TYPE, events);
    response.extensions_mut().insert(Streaming);
    response
}

/// A body in pieces.
pub(crate) struct PieceBody(mpsc::Receiver<Bytes>);

impl From<Bytes> for PieceBody {
    fn from(bytes: Bytes) -> Self {
        let (sender, parts) = mpsc::channel(1);
        if !bytes.is_empty() {
            sender.try_send(bytes).unwrap();
        }
        Self(parts)
    }
}

/// An endless body of kilobyte pieces.
fn endless() -> PieceBody {
    let (sender, parts) = mpsc::channel(1);
    tokio::spawn(
        async move { while sender.send(Bytes::from_static(&[b'.'; 1024])).await.is_ok() {} },
    );
    PieceBody(parts)
}

impl Body for PieceBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_closed() && self.0.is_empty()
    }
}

/// Admits `Authorization: yes`.
struct Yes;

impl Authenticate for Yes {
    fn admit<'a>(&'a self, head: &'a mut RequestHead, _: PeerAddress) -> Admission<'a> {
        Admission::Later(Box::pin(async move {
            match head.headers.get(AUTHORIZATION.as_str()) {
                Some(b"yes") => Ok(Principal::local()),
                _ => Err(ErrorResponse::new(StatusCode::UNAUTHORIZED, "say yes")),
            }
        }))
    }
}

/// A running server.
pub(crate) struct TestHttpServer {
    pub(crate) address: SocketAddr,
    pub(crate) echo: Echo,
    pub(crate) drain: Drain,
    pub(crate) ended: JoinHandle<()>,
}

pub(crate) async fn start(limits: HttpLimits) -> TestHttpServer {
    start_with(limits, Echo::default(), None).await
}

/// Starts a server that knows these hosts.
pub(crate) async fn start_guarded(guard: OriginGuard) -> TestHttpServer {
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), HttpLimits::default()).await.unwrap();
    serve(listener, guard, Echo::default())
}

pub(crate) async fn start_with(
    limits: HttpLimits,
    echo: Echo,
    certificates: Option<Arc<Certificates>>,
) -> TestHttpServer {
    let mut listener = Listener::bind(([127, 0, 0, 1], 0).into(), limits).await.unwrap();
    if let Some(certificates) = certificates {
        listener = listener.tls(certificates);
    }
    serve(listener, OriginGuard::loopback(), echo)
}

fn serve(listener: Listener, guard: OriginGuard, echo: Echo) -> TestHttpServer {
    let (address, drain) = (listener.address().unwrap(), Drain::new());
    let methods = [Method::POST, Method::GET];
    let router = Router::new(guard, drain.clone())
        .route(Route::new("/mcp", &methods, echo.clone()))
        .route(Route::new("/other", &methods, echo.clone()).authenticate(Arc::new(Yes)));
    let ended = tokio::spawn(listener.serve(router));
    TestHttpServer { address, echo, drain, ended }
}

impl TestHttpServer {
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes and reads until the server closes.
    pub(crate) async fn exchange(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        to_end(&mut stream).await
    }

    /// Sends bytes and reads one response, whose body has a length.
    pub(crate) async fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        one(&mut stream).await
    }

    /// Shuts the server down.
    pub(crate) async fn stop(self) {
        self.drain.begin();
        self.drain.end();
        timeout(PATIENCE, self.ended).await.expect("the server ends").unwrap();
    }
}

/// Reads until the server closes; fails if it does not.
pub(crate) async fn to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset connection is closed too.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the server closes");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads until this text was read.
pub(crate) async fn until(stream: &mut (impl AsyncRead + Unpin), end: &str) -> String {
    let mut bytes = Vec::new();
    let read = async {
        while !bytes.ends_with(end.as_bytes()) {
            assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "{end:?} comes");
        }
    };
    timeout(PATIENCE, read).await.expect("it comes");
    String::from_utf8(bytes).unwrap()
}

/// Reads one response, when no other one follows.
pub(crate) async fn one(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = async {
        while !is_complete(&bytes) {
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                break;
            }
        }
    };
    timeout(PATIENCE, read).await.expect("the server answers");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_complete(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let body = &bytes[end + 4..];
    if head.contains("transfer-encoding: chunked") {
        return body.ends_with(b"0\r\n\r\n");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |text| text.parse().unwrap())
}

/// A request with a body to the default path.
pub(crate) fn post(body: &str) -> String {
    with("", body)
}

/// The same with additional headers.
pub(crate) fn with(headers: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The status in the first line of a response.
pub(crate) fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}
