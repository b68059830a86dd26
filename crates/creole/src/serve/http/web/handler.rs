//! The traits of a route, [`HttpHandler`] and [`Authenticate`], and the [`ErrorResponse`] for rejected requests.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use http_body::Body;

use crate::auth::Principal;
use crate::auth::challenge::RefusedCaller;
use crate::chain::BoxFuture;
use crate::serve::http::web::incoming::{BoxError, IncomingBody};
use crate::serve::http::web::request::RequestHead;

/// Handles the requests to one path.
pub trait HttpHandler: Send + Sync + 'static {
    /// The body of its responses.
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static;

    /// Handles one request. The future is dropped when the client disconnects.
    ///
    /// The head is borrowed: it is large, and would otherwise be moved from layer to layer with every request. `caller`
    /// is the principal that [`Authenticate`] returned, if the route has one.
    fn handle(
        &self,
        head: &mut RequestHead,
        body: IncomingBody,
        caller: Option<Principal>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// Decides whether a caller is admitted, after path and method are checked and before any of the body is read.
pub trait Authenticate: Send + Sync + 'static {
    /// Admits the request and returns its principal, or the response that rejects it.
    fn admit<'a>(&'a self, head: &'a mut RequestHead, peer: PeerAddress) -> Admission<'a>;
}

/// The decision of an [`Authenticate`]. A decision that is known at once needs no future.
pub enum Admission<'a> {
    /// The decision is known.
    Now(Result<Principal, ErrorResponse>),
    /// The decision needs a wait or a computation.
    Later(BoxFuture<'a, Result<Principal, ErrorResponse>>),
}

/// The address that a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

/// The client of a connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPeer {
    /// Its address.
    pub(crate) address: PeerAddress,
    /// The SHA-256 of the certificate that it presented with TLS.
    pub(crate) certificate: Option<Arc<[u8; 32]>>,
}

impl From<PeerAddress> for ConnectionPeer {
    fn from(address: PeerAddress) -> Self {
        Self { address, certificate: None }
    }
}

/// Marks a response to a request that was refused before a message was read from it.
#[derive(Clone, Debug)]
pub(crate) struct RefusedRequest {
    /// Why it was refused.
    pub(crate) reason: Box<str>,
    /// The id of the principal, if it is known.
    pub(crate) principal: Option<Arc<str>>,
    /// Whether a call was refused, which has a record.
    pub(crate) is_call: bool,
}

impl RefusedRequest {
    /// A request of an unknown principal.
    pub(crate) fn new(reason: &str) -> Self {
        Self { reason: reason.into(), principal: None, is_call: false }
    }
}

/// A response without the endpoint: a status and one sentence that describes a correct request.
#[derive(Clone, Debug)]
pub struct ErrorResponse {
    /// The status.
    pub status: StatusCode,
    /// Further headers, such as a challenge.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The sentence.
    pub text: String,
    /// Who is refused and why, if the caller is.
    pub(crate) refused: Option<RefusedCaller>,
}

impl ErrorResponse {
    /// An error response with that status.
    pub fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), text: text.into(), refused: None }
    }

    /// The same response with an additional header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The same response, after which the connection closes.
    pub fn close_connection(self) -> Self {
        self.header(CONNECTION, HeaderValue::from_static("close"))
    }

    /// The HTTP response.
    pub fn into_response<B: From<Bytes>>(self) -> Response<B> {
        let mut text = self.text;
        let refused = match self.refused {
            Some(RefusedCaller { reason, principal }) => {
                RefusedRequest { principal, ..RefusedRequest::new(reason) }
            }
            None => RefusedRequest::new(&text),
        };
        if !text.is_empty() {
            text.push('\n');
        }
        let mut response = Response::new(B::from(Bytes::from(text)));
        *response.status_mut() = self.status;
        if self.status.is_client_error() || self.status.is_server_error() {
            response.extensions_mut().insert(refused);
        }
        let headers = response.headers_mut();
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.entry(CONTENT_TYPE).or_insert(plain);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}
