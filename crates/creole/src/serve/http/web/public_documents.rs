//! The metadata of the server's resources at their well-known paths (RFC 9728). Everybody may read it.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Response, StatusCode};

use crate::auth::{Authenticator, METADATA_PREFIX, RequestDetails as _};
use crate::chain::BoxFuture;
use crate::serve::http::web::cors;
use crate::serve::http::web::handler::ErrorResponse;
use crate::serve::http::web::request::RequestHead;

/// What the paths of all documents begin with.
const WELL_KNOWN: &str = "/.well-known/";
/// Where clients of 2025-03-26 look for the metadata of an authorization server.
const ISSUER_PATHS: [&str; 2] =
    ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
/// The methods that read.
const METHODS: &str = "GET, HEAD, OPTIONS";
/// The request header that clients of 2025-03-26 send to the metadata.
const ALLOWED_HEADERS: &str = "mcp-protocol-version";

/// Documents for everybody.
pub trait PublicDocuments: Send + Sync + 'static {
    /// The JSON document at this path; `None` if there is none. `host` is the checked host of the request.
    fn read<'a>(&'a self, path: &'a str, host: Option<&'a str>) -> BoxFuture<'a, Option<Bytes>>;
}

impl PublicDocuments for Authenticator {
    fn read<'a>(&'a self, path: &'a str, host: Option<&'a str>) -> BoxFuture<'a, Option<Bytes>> {
        Box::pin(async move {
            if let Some(path) = path.strip_prefix(METADATA_PREFIX) {
                return Some(self.resource_metadata(path, host)?.to_string().into());
            }
            match ISSUER_PATHS.contains(&path) {
                true => self.issuer_metadata().await,
                false => None,
            }
        })
    }
}

/// Whether documents are at this path.
pub(crate) fn is_well_known(path: &str) -> bool {
    path.starts_with(WELL_KNOWN)
}

/// The response to a request for a document. Pages of every origin may read it, without credentials.
pub(crate) async fn serve<B: From<Bytes>>(
    documents: &dyn PublicDocuments,
    head: &RequestHead,
) -> Response<B> {
    let document = documents.read(head.uri.path(), head.host()).await;
    let Some(document) = document else {
        return ErrorResponse::new(StatusCode::NOT_FOUND, "not found").into_response();
    };
    let mut response = match head.method {
        Method::GET | Method::HEAD => document_response(document),
        Method::OPTIONS if cors::is_preflight(&head.method, &head.headers) => preflight_response(),
        _ => {
            let text = format!("`{}` is not allowed on this path; allowed: {METHODS}", head.method);
            ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, text)
                .header(ALLOW, HeaderValue::from_static(METHODS))
                .into_response()
        }
    };
    response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

fn document_response<B: From<Bytes>>(document: Bytes) -> Response<B> {
    let mut response = Response::new(B::from(document));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn preflight_response<B: From<Bytes>>() -> Response<B> {
    let mut response = Response::new(B::from(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOWED_HEADERS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}
