//! Requests to any HTTP service, with limits on the response size, the addresses and the redirects.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{HOST, LOCATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::budget::Budget;
use crate::client::transport::http::address::resolve;
use crate::client::transport::http::conn::address_filter::{FilteredResolver, NotPublic};
use crate::client::transport::http::conn::body_reader;
use crate::client::transport::http::conn::body_reader::BodyReadError;
use crate::client::transport::http::conn::connect_failure::describe_failure;
use crate::client::transport::http::conn::proxy::Proxies;
use crate::client::transport::http::conn::proxy_connector::ProxyConnector;
use crate::client::transport::http::conn::request::RequestPayload;
use crate::client::transport::http::conn::response_body::ResponseBody;
use crate::client::transport::http::conn::server_connector::{IDLE_TIMEOUT, tcp_connector};
use crate::tls::{TrustedRoots, client_config};

/// The number of redirects that are followed unless a client allows fewer.
const MAX_REDIRECTS: usize = 5;

/// The addresses that a host name may resolve to. A literal address is the caller's own choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedAddresses {
    /// Public ones: not this machine, no private network, no link, no cloud's own services. The name `localhost` is
    /// allowed all the same.
    Public,
    /// All.
    Anywhere,
}

/// A request to a service.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, which may be empty.
    pub body: Bytes,
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// The host name resolves to no allowed address.
    NotPublic,
    /// The connection failed, so nothing was sent; the text is the reason without the address.
    ConnectFailed(String),
    /// The connection broke; the text is the reason without the address.
    Unreachable(String),
    /// The response is longer than the limit.
    TooLong,
}

impl fmt::Display for FetchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotPublic => "the host name resolves to no public address",
            Self::ConnectFailed(reason) | Self::Unreachable(reason) => reason,
            Self::TooLong => "the response is longer than the limit",
        })
    }
}

impl Error for FetchError {}

/// A client of one service. Clones share their connections.
#[derive(Clone)]
pub struct Fetcher {
    allowed: AllowedAddresses,
    is_encrypted: bool,
    proxies: Proxies,
    max_redirects: usize,
    /// Whether only HTTP/2 is spoken, also without TLS.
    is_http2_only: bool,
    /// The trusted root certificates in PEM form, if they are not the system's.
    certificates: Option<Arc<[u8]>>,
    /// Created for the first request: reading the system's certificates takes longer than the rest of the start.
    client: Arc<OnceLock<Result<FetchClient, String>>>,
}

type FetchClient =
    Client<HttpsConnector<ProxyConnector<HttpConnector<FilteredResolver>>>, RequestPayload>;

impl Fetcher {
    /// A client that connects to allowed addresses, with TLS and the system's certificates or without TLS. If the
    /// environment names a proxy, the proxy resolves names and decides where they may lead.
    pub fn new(reach: AllowedAddresses, is_encrypted: bool) -> Self {
        Self::with_proxies(Proxies::of_environment(), reach, is_encrypted)
    }

    /// The same through these proxies instead of those that the environment names.
    pub fn with_proxies(proxies: Proxies, reach: AllowedAddresses, is_encrypted: bool) -> Self {
        Self {
            allowed: reach,
            is_encrypted,
            proxies,
            max_redirects: MAX_REDIRECTS,
            is_http2_only: false,
            certificates: None,
            client: Arc::default(),
        }
    }

    /// The same with these root certificates, in PEM form, instead of the system's.
    #[must_use]
    pub fn with_certificates(self, certificates: Option<Arc<[u8]>>) -> Self {
        Self { certificates, client: Arc::default(), ..self }
    }

    /// The same for a service that speaks HTTP/2 only, also without TLS, as one of gRPC does.
    #[must_use]
    pub fn with_http2_only(self) -> Self {
        Self { is_http2_only: true, client: Arc::default(), ..self }
    }

    /// The same with fewer redirects.
    #[must_use]
    pub(crate) fn with_max_redirects(self, max_redirects: usize) -> Self {
        Self { max_redirects, ..self }
    }

    fn client(&self) -> Result<FetchClient, String> {
        let is_encrypted = self.is_encrypted;
        let resolver =
            FilteredResolver { allows_private: self.allowed == AllowedAddresses::Anywhere };
        let (direct, to_proxy) = (tcp_connector(resolver), tcp_connector(GaiResolver::new()));
        let connector = ProxyConnector::new(direct, to_proxy, self.proxies.clone());
        let trust = match &self.certificates {
            _ if !is_encrypted => TrustedRoots::Plain,
            Some(certificates) => TrustedRoots::These(certificates),
            None => TrustedRoots::System,
        };
        let builder = HttpsConnectorBuilder::new().with_tls_config(client_config(trust)?);
        let builder = if is_encrypted { builder.https_only() } else { builder.https_or_http() };
        let connector = match self.is_http2_only {
            true => builder.enable_http2().wrap_connector(connector),
            false => builder.enable_all_versions().wrap_connector(connector),
        };
        let mut client = Client::builder(TokioExecutor::new());
        client
            .http2_only(self.is_http2_only)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new());
        Ok(client.build(connector))
    }

    /// Sends a request and reads the whole response. Redirects of read-only requests are followed within the same
    /// origin; any other is returned.
    ///
    /// # Errors
    /// When there is no response, or one that is longer than `longest`.
    pub async fn fetch(
        &self,
        sent: &FetchRequest,
        max_length: usize,
    ) -> Result<Response<Bytes>, FetchError> {
        let mut url = sent.url.clone();
        let follows = [Method::GET, Method::HEAD].contains(&sent.method);
        for _ in 0..self.max_redirects {
            let response = self.send_once(sent, &url).await?;
            match redirect(&response, &url).filter(|_| follows) {
                Some(next) => url = next,
                None => return read_whole(response, max_length).await,
            }
        }
        read_whole(self.send_once(sent, &url).await?, max_length).await
    }

    /// Sends a request and reads the whole response with its trailers. Redirects are returned.
    ///
    /// # Errors
    /// When there is no response, or one that is longer than `max_length`.
    pub async fn fetch_with_trailers(
        &self,
        sent: &FetchRequest,
        max_length: usize,
    ) -> Result<(Response<Bytes>, HeaderMap), FetchError> {
        let (head, mut body) = self.send_once(sent, &sent.url).await?.into_parts();
        let (mut whole, mut trailers) = (Vec::new(), HeaderMap::new());
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let broken = |_| FetchError::Unreachable("the response ended early".to_owned());
            match frame.map_err(broken)?.into_data() {
                Ok(piece) if whole.len() + piece.len() > max_length => {
                    return Err(FetchError::TooLong);
                }
                Ok(piece) => whole.extend_from_slice(&piece),
                Err(frame) => trailers.extend(frame.into_trailers().unwrap_or_default()),
            }
        }
        Ok((Response::from_parts(head, whole.into()), trailers))
    }

    async fn send_once(
        &self,
        sent: &FetchRequest,
        url: &Uri,
    ) -> Result<Response<Incoming>, FetchError> {
        let mut request = Request::new(RequestPayload::new(sent.body.clone()));
        *request.method_mut() = sent.method.clone();
        *request.uri_mut() = url.clone();
        *request.headers_mut() = sent.headers.clone();
        // The host is always that of the URL.
        request.headers_mut().remove(HOST);
        // A request that is not forwarded reaches the service, which must not see the proxy's credentials.
        request.headers_mut().remove(PROXY_AUTHORIZATION);
        if let (Some("http"), Ok(Some(proxy))) = (url.scheme_str(), self.proxies.proxy_for(url))
            && let Some(shown) = &proxy.authorization
        {
            request.headers_mut().insert(PROXY_AUTHORIZATION, shown.clone());
        }
        let client = self.client.get_or_init(|| self.client()).as_ref();
        let client =
            client.map_err(|reason| FetchError::ConnectFailed(format!("the service {reason}")))?;
        client.request(request).await.map_err(|error| fetch_error(&error))
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Fetcher").finish_non_exhaustive()
    }
}

/// The redirect target within the same origin.
fn redirect(response: &Response<Incoming>, from: &Uri) -> Option<Uri> {
    let is_redirect = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let place = response.headers().get(LOCATION).filter(|_| is_redirect)?;
    resolve(from, place.to_str().ok()?)
}

async fn read_whole(
    response: Response<Incoming>,
    max_length: usize,
) -> Result<Response<Bytes>, FetchError> {
    let (head, body) = response.into_parts();
    let hold = || Budget::of_process().reserve_for("a service");
    match body_reader::read_document(ResponseBody::Http2(body), max_length, hold).await {
        Ok(body) => Ok(Response::from_parts(head, body.into_bytes().into())),
        Err(BodyReadError::BudgetExhausted) => {
            let reason = "the memory budget for responses is exhausted; try again later";
            Err(FetchError::Unreachable(reason.to_owned()))
        }
        Err(BodyReadError::TooLong) => Err(FetchError::TooLong),
        Err(BodyReadError::Broken) => {
            Err(FetchError::Unreachable("the response ended early".to_owned()))
        }
    }
}

fn fetch_error(error: &legacy::Error) -> FetchError {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<NotPublic>().is_some() {
            return FetchError::NotPublic;
        }
        next = error.source();
    }
    let (message, _) = describe_failure(error, error.is_connect());
    let reason = format!("the service {message}");
    match error.is_connect() {
        true => FetchError::ConnectFailed(reason),
        false => FetchError::Unreachable(reason),
    }
}
