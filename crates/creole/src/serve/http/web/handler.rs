//! What stands behind a path, what checks the caller in front of it, and what is said to those turned away.

use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use http_body::Body;

use crate::auth::Principal;
use crate::chain::BoxFuture;
use crate::serve::http::conn::incoming::IncomingBody;
use crate::serve::http::web::request::RequestHead;

/// Answers the requests to one path.
pub trait HttpHandler: Send + Sync + 'static {
    /// The body of its answers.
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static;

    /// Answers one request. Dropped when the client goes away.
    ///
    /// The head is lent: it is large, and would else be moved from layer to layer with every request.
    /// `caller` is who the gate in front says it is, where there is one.
    fn handle(
        &self,
        head: &mut RequestHead,
        body: IncomingBody,
        caller: Option<Principal>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// An error of any kind.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Decides whether a caller may pass, after path and method and before anything of the body is read.
pub trait Authenticate: Send + Sync + 'static {
    /// Lets the request pass and says whose it is, or says why not.
    fn admit<'a>(&'a self, head: &'a mut RequestHead, peer: PeerAddress) -> Admission<'a>;
}

/// What a [`Authenticate`] decides. What is known at once need not be waited for.
pub enum Admission<'a> {
    /// It is decided.
    Now(Result<Principal, ErrorResponse>),
    /// Something has to be asked or computed first.
    Later(BoxFuture<'a, Result<Principal, ErrorResponse>>),
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

/// An answer without the endpoint: a status and one sentence that says what would be right.
#[derive(Clone, Debug)]
pub struct ErrorResponse {
    /// The status.
    pub status: StatusCode,
    /// Further headers, such as a challenge.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What is said.
    pub text: String,
}

impl ErrorResponse {
    /// A refusal of that status.
    pub fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), text: text.into() }
    }

    /// The same refusal, with a header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The same refusal, behind which the connection ends.
    pub fn close_connection(self) -> Self {
        self.header(CONNECTION, HeaderValue::from_static("close"))
    }

    /// The refusal as an answer.
    pub fn into_response<B: From<Bytes>>(self) -> Response<B> {
        let mut text = self.text;
        if !text.is_empty() {
            text.push('\n');
        }
        let mut response = Response::new(B::from(Bytes::from(text)));
        *response.status_mut() = self.status;
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
