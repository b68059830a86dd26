//! Requests to any service that speaks HTTP, within limits: how much is read, which addresses are connected to, and
//! where redirects may lead.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{HOST, LOCATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::answer::Body;
use super::fault::why_unreached;
use super::proxy::Proxies;
use super::route::Route;
use super::screen::{NotPublic, Screen};
use super::target::resolve;
use super::wire::{self, IDLE, Payload, Trust, Unread};
use crate::budget::Budget;

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// Which addresses the name of a host may lead to. An address that is written out is the caller's own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those of the internet: not this machine, no private network, no link, no cloud's own services. The name
    /// `localhost` is this machine all the same.
    Public,
    /// All.
    Anywhere,
}

/// What is sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The method.
    pub method: Method,
    /// Where to.
    pub url: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, which may be empty.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfetched {
    /// The name of the host leads to no address that may be connected to.
    NotPublic,
    /// There is no connection to the service, so nothing was sent; why, without its address.
    Unconnected(String),
    /// The service broke off; why, without its address.
    Unreachable(String),
    /// The answer is longer than what is read.
    TooLong,
}

impl fmt::Display for Unfetched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotPublic => "the name of the host leads to no public address",
            Self::Unconnected(why) | Self::Unreachable(why) => why,
            Self::TooLong => "the answer is longer than what is read",
        })
    }
}

impl Error for Unfetched {}

/// A client of one service. Clones share their connections.
#[derive(Clone)]
pub struct Fetcher {
    reach: Reach,
    is_encrypted: bool,
    proxies: Proxies,
    /// Made for the first request: to read the certificates of the system takes longer than all else at a start.
    client: Arc<OnceLock<Result<Connected, String>>>,
}

type Connected = Client<HttpsConnector<Route<HttpConnector<Screen>>>, Payload>;

impl Fetcher {
    /// A client that connects to what is within reach; encrypted, and then to whom the system trusts, or not at all.
    /// Where the environment names a proxy, that looks names up and judges where they lead.
    pub fn new(reach: Reach, is_encrypted: bool) -> Self {
        Self::through(Proxies::of_environment(), reach, is_encrypted)
    }

    /// The same, through these proxies and not through those that the environment names.
    pub fn through(proxies: Proxies, reach: Reach, is_encrypted: bool) -> Self {
        Self { reach, is_encrypted, proxies, client: Arc::default() }
    }

    fn connected(&self) -> Result<Connected, String> {
        let is_encrypted = self.is_encrypted;
        let screen = Screen { is_open: self.reach == Reach::Anywhere };
        let (direct, to_proxy) = (wire::plain(screen), wire::plain(GaiResolver::new()));
        let connector = Route::new(direct, to_proxy, self.proxies.clone());
        let trust = if is_encrypted { Trust::System } else { Trust::Plain };
        let builder = HttpsConnectorBuilder::new().with_tls_config(wire::tls(trust)?);
        let builder = if is_encrypted { builder.https_only() } else { builder.https_or_http() };
        let connector = builder.enable_all_versions().wrap_connector(connector);
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_idle_timeout(IDLE).pool_timer(TokioTimer::new()).timer(TokioTimer::new());
        Ok(client.build(connector))
    }

    /// Sends a request and reads the whole answer. Redirects of requests that only read are followed within the
    /// same origin; any other is the answer.
    ///
    /// # Errors
    /// When there is no answer, or one that is longer than `longest`.
    pub async fn fetch(&self, sent: &Sent, longest: usize) -> Result<Response<Bytes>, Unfetched> {
        let mut url = sent.url.clone();
        let follows = [Method::GET, Method::HEAD].contains(&sent.method);
        for _ in 0..REDIRECTS {
            let answer = self.once(sent, &url).await?;
            match redirect(&answer, &url).filter(|_| follows) {
                Some(next) => url = next,
                None => return whole(answer, longest).await,
            }
        }
        whole(self.once(sent, &url).await?, longest).await
    }

    async fn once(&self, sent: &Sent, url: &Uri) -> Result<Response<Incoming>, Unfetched> {
        let mut request = Request::new(Payload::new(sent.body.clone()));
        *request.method_mut() = sent.method.clone();
        *request.uri_mut() = url.clone();
        *request.headers_mut() = sent.headers.clone();
        // The host is that of the URL, whoever says otherwise.
        request.headers_mut().remove(HOST);
        // A request that is not forwarded reaches the service, which has no business with it.
        request.headers_mut().remove(PROXY_AUTHORIZATION);
        if let (Some("http"), Ok(Some(proxy))) = (url.scheme_str(), self.proxies.on_the_way_to(url))
            && let Some(shown) = &proxy.authorization
        {
            request.headers_mut().insert(PROXY_AUTHORIZATION, shown.clone());
        }
        let client = self.client.get_or_init(|| self.connected()).as_ref();
        let client = client.map_err(|why| Unfetched::Unconnected(format!("the service {why}")))?;
        client.request(request).await.map_err(|error| unfetched(&error))
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Fetcher").finish_non_exhaustive()
    }
}

/// Where an answer points within the same origin.
fn redirect(answer: &Response<Incoming>, from: &Uri) -> Option<Uri> {
    let is_redirect = matches!(
        answer.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let place = answer.headers().get(LOCATION).filter(|_| is_redirect)?;
    resolve(from, place.to_str().ok()?)
}

async fn whole(answer: Response<Incoming>, longest: usize) -> Result<Response<Bytes>, Unfetched> {
    let (head, body) = answer.into_parts();
    let hold = || Budget::of_process().reserve_for("a service");
    match wire::document(Body::Beside(body), longest, hold).await {
        Ok(body) => Ok(Response::from_parts(head, body.into_bytes().into())),
        Err(Unread::NoRoom) => {
            let why = "there is no memory left for the answer; try again later";
            Err(Unfetched::Unreachable(why.to_owned()))
        }
        Err(Unread::TooLong) => Err(Unfetched::TooLong),
        Err(Unread::Broken) => Err(Unfetched::Unreachable("the answer broke off".to_owned())),
    }
}

fn unfetched(error: &legacy::Error) -> Unfetched {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<NotPublic>().is_some() {
            return Unfetched::NotPublic;
        }
        next = error.source();
    }
    let (what, _) = why_unreached(error, error.is_connect());
    let why = format!("the service {what}");
    match error.is_connect() {
        true => Unfetched::Unconnected(why),
        false => Unfetched::Unreachable(why),
    }
}
