//! Routes a request to its handler. Checks host, origin, path, method and caller, in this order on every path.
//!
//! The order is part of the contract: a client that may not use the server learns nothing about its paths, and no body
//! is read before the caller is known.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CONNECTION, FORWARDED, HOST, ORIGIN};
use http::{HeaderValue, Method, Response, StatusCode, Version};

use crate::serve::http::web::cors;
use crate::serve::http::web::drain::{Drain, DrainStage};
use crate::serve::http::web::handler::{
    Admission, Authenticate, ErrorResponse, HttpHandler, PeerAddress,
};
use crate::serve::http::web::incoming::IncomingBody;
use crate::serve::http::web::limits::{MAX_HEADERS, MAX_TARGET_BYTES};
use crate::serve::http::web::listener_metrics::ListenerMetrics;
use crate::serve::http::web::public_documents;
use crate::serve::http::web::public_documents::PublicDocuments;
use crate::serve::http::web::request::RequestHead;
use crate::serve::http::web::wake_batching::InFlightCounter;
use creole_proto::http::forwarded::TrustedProxies;
use creole_proto::http::origin_guard::{OriginGuard, OriginGuardError};

/// Reports that the process runs.
const HEALTH: &str = "/health";
/// Reports whether new requests are accepted.
const READY: &str = "/ready";

/// The header that most proxies write instead of `Forwarded`.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// Routes with the checks in front of them.
pub struct Router<A> {
    guard: OriginGuard,
    routes: Vec<Route<A>>,
    drain: Drain,
    in_flight: InFlightCounter,
    proxies: TrustedProxies,
    documents: Option<Arc<dyn PublicDocuments>>,
    /// Handles every request, with checks of its own.
    every_path: Option<A>,
    metrics: Option<Arc<ListenerMetrics>>,
}

/// One path and its handler.
pub struct Route<A> {
    path: String,
    handler: A,
    methods: Vec<Method>,
    allow: HeaderValue,
    authenticate: Option<Arc<dyn Authenticate>>,
}

/// The body of a response: fixed bytes of the router, or the body of a handler.
pub(crate) enum RoutedBody<B> {
    Fixed(Bytes),
    Handler(B),
}

impl<B> From<Bytes> for RoutedBody<B> {
    fn from(text: Bytes) -> Self {
        Self::Fixed(text)
    }
}

impl<A: HttpHandler> Route<A> {
    /// A path with its allowed methods. The path is compared byte by byte, because a path with two spellings could be
    /// guarded in only one of them.
    pub fn new(path: impl Into<String>, methods: &[Method], answer: A) -> Self {
        let allow = allow_header(methods);
        Self {
            path: path.into(),
            handler: answer,
            methods: methods.to_vec(),
            allow,
            authenticate: None,
        }
    }

    /// The same route with authentication.
    pub fn authenticate(mut self, gate: Arc<dyn Authenticate>) -> Self {
        self.authenticate = Some(gate);
        self
    }
}

impl<A: HttpHandler> Router<A> {
    /// A router with only the health and readiness paths.
    pub fn new(guard: OriginGuard, drain: Drain) -> Self {
        let (together, proxies) = (InFlightCounter::default(), TrustedProxies::default());
        let routes = Vec::new();
        Self {
            guard,
            routes,
            drain,
            in_flight: together,
            proxies,
            documents: None,
            every_path: None,
            metrics: None,
        }
    }

    /// A router that gives every request to one handler, without a check. The handler checks host, origin, path, method
    /// and caller itself.
    #[doc(hidden)]
    pub fn for_every_path(handler: A, drain: Drain) -> Self {
        Self { every_path: Some(handler), ..Self::new(OriginGuard::loopback(), drain) }
    }

    /// The same router, whose connections and refused requests are counted.
    #[doc(hidden)]
    pub fn measured(mut self, metrics: Option<Arc<ListenerMetrics>>) -> Self {
        self.metrics = metrics;
        self
    }

    /// Counts its connections and refused requests, if metrics are counted.
    pub(crate) fn metrics(&self) -> Option<&Arc<ListenerMetrics>> {
        self.metrics.as_ref()
    }

    /// The same router with documents that everybody may read.
    pub fn documents(mut self, documents: Arc<dyn PublicDocuments>) -> Self {
        self.documents = Some(documents);
        self
    }

    /// The same router behind proxies that are trusted to report a client's address.
    pub fn proxies(mut self, proxies: TrustedProxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// The same router with one more route.
    ///
    /// # Panics
    /// When the path is already routed.
    pub fn route(mut self, route: Route<A>) -> Self {
        let taken = [HEALTH, READY].contains(&route.path.as_str())
            || self.routes.iter().any(|other| other.path == route.path);
        assert!(!taken, "the path `{}` is already routed", route.path);
        self.routes.push(route);
        self
    }

    /// Controls the shutdown of the server.
    pub(crate) fn drain(&self) -> &Drain {
        &self.drain
    }

    /// The counter of requests in flight.
    pub(crate) fn in_flight(&self) -> &InFlightCounter {
        &self.in_flight
    }

    /// Handles a request.
    pub(crate) async fn answer(
        &self,
        head: &mut RequestHead,
        body: IncomingBody,
        peer: PeerAddress,
    ) -> Response<RoutedBody<A::Body>> {
        let peer = self.client_address(head, peer);
        (head.client, head.resource) = (Some(peer.0.ip()), None);
        if let Some(handler) = &self.every_path {
            return handler.handle(head, body, None).await.map(RoutedBody::Handler);
        }
        if let Some(documents) = self.documents.as_deref()
            && public_documents::is_well_known(head.uri.path())
        {
            let response = match self.check_head(head) {
                Ok(_) => Box::pin(public_documents::serve(documents, head)).await,
                Err(refusal) => refusal.into_response(),
            };
            return self.finish_response(head, response, None);
        }
        let route = self.find_route(head);
        let origin = match self.check_guard(head, &route) {
            Ok(origin) => origin,
            Err(refusal) => return self.finish_response(head, refusal.into_response(), None),
        };
        let response = match route {
            RouteMatch::Health => status_response(head, StatusCode::OK, "healthy"),
            RouteMatch::Ready if self.drain.stage() == DrainStage::Serving => {
                status_response(head, StatusCode::OK, "ready")
            }
            RouteMatch::Ready => status_response(head, StatusCode::SERVICE_UNAVAILABLE, "ending"),
            RouteMatch::NotFound => {
                ErrorResponse::new(StatusCode::NOT_FOUND, "not found").into_response()
            }
            RouteMatch::Route(route) => route.serve(head, body, origin.as_ref(), peer).await,
        };
        self.finish_response(head, response, origin)
    }

    /// Runs the checks of public documents; returns the port that the host names.
    fn check_head(&self, head: &RequestHead) -> Result<Option<u16>, ErrorResponse> {
        check_sizes(head)?;
        self.check_host(head).map_err(forbidden)
    }

    /// Runs the checks of every other path; returns the origin, if there is one.
    fn check_guard(
        &self,
        head: &RequestHead,
        route: &RouteMatch<'_, A>,
    ) -> Result<Option<HeaderValue>, ErrorResponse> {
        check_sizes(head)?;
        let port = match self.check_host(head) {
            Err(OriginGuardError::HostMissing | OriginGuardError::HostUnknown)
                if self.is_health_check(route) =>
            {
                None
            }
            checked => checked.map_err(forbidden)?,
        };
        let origins = head.headers.get_all(ORIGIN.as_str());
        let origin = self.guard.check_origin(origins, port).map_err(forbidden)?;
        let origin = origin.and_then(|_| head.headers.get(ORIGIN.as_str()));
        Ok(origin.and_then(|origin| HeaderValue::from_bytes(origin).ok()))
    }

    /// Whether this may be a check of a load balancer, which names an address or no host. On loopback it is not, and a
    /// web page whose name is rebound finds no server there.
    fn is_health_check(&self, route: &RouteMatch<'_, A>) -> bool {
        matches!(route, RouteMatch::Health | RouteMatch::Ready) && !self.guard.is_loopback()
    }

    /// Checks the host; returns the port that it names.
    fn check_host(&self, head: &RequestHead) -> Result<Option<u16>, OriginGuardError> {
        let named = head.uri.authority().map(http::uri::Authority::as_str);
        let hosts = head.headers.get_all(HOST.as_str());
        self.guard.check_host(named, hosts, head.version < Version::HTTP_2)
    }

    /// Whether this is the address of a trusted proxy.
    pub(crate) fn is_trusted_proxy(&self, address: IpAddr) -> bool {
        self.proxies.contains(address)
    }

    /// The address that a request comes from: its connection's, or the one that a trusted proxy reports.
    fn client_address(&self, head: &RequestHead, peer: PeerAddress) -> PeerAddress {
        let address = peer.0.ip();
        if !self.proxies.contains(address) {
            return peer;
        }
        let all = |name| head.headers.get_all(name);
        let client =
            self.proxies.client_address(address, all(FORWARDED.as_str()), all(FORWARDED_FOR));
        if client == address { peer } else { PeerAddress(SocketAddr::new(client, 0)) }
    }

    fn find_route(&self, head: &RequestHead) -> RouteMatch<'_, A> {
        match head.uri.path() {
            HEALTH => RouteMatch::Health,
            READY => RouteMatch::Ready,
            path => {
                let route = self.routes.iter().find(|route| route.path == path);
                route.map_or(RouteMatch::NotFound, RouteMatch::Route)
            }
        }
    }

    /// Adds the headers that every response has.
    fn finish_response(
        &self,
        head: &RequestHead,
        mut response: Response<RoutedBody<A::Body>>,
        origin: Option<HeaderValue>,
    ) -> Response<RoutedBody<A::Body>> {
        if let Some(metrics) = &self.metrics {
            metrics.count_response(head, &response);
        }
        let headers = response.headers_mut();
        if let Some(origin) = &origin {
            cors::allow(origin, headers);
        }
        if head.version >= Version::HTTP_2 {
            headers.remove(CONNECTION);
        } else if self.drain.stage() != DrainStage::Serving {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

enum RouteMatch<'a, A> {
    Health,
    Ready,
    NotFound,
    Route(&'a Route<A>),
}

impl<A: HttpHandler> Route<A> {
    async fn serve(
        &self,
        head: &mut RequestHead,
        body: IncomingBody,
        origin: Option<&HeaderValue>,
        peer: PeerAddress,
    ) -> Response<RoutedBody<A::Body>> {
        if let Some(origin) = origin.filter(|_| cors::is_preflight(&head.method, &head.headers)) {
            return cors::preflight(origin, &head.headers, &self.allow);
        }
        let caller = match self.admit(head, peer) {
            Err(refusal) => Err(refusal),
            Ok(None) => Ok(None),
            Ok(Some(Admission::Now(decided))) => decided.map(Some),
            Ok(Some(Admission::Later(decided))) => decided.await.map(Some),
        };
        match caller {
            Ok(caller) => self.handler.handle(head, body, caller).await.map(RoutedBody::Handler),
            Err(refusal) => refusal.into_response(),
        }
    }

    /// Checks the method and authenticates the caller of this route; `None` if it needs no authentication.
    fn admit<'a>(
        &'a self,
        head: &'a mut RequestHead,
        peer: PeerAddress,
    ) -> Result<Option<Admission<'a>>, ErrorResponse> {
        if !self.methods.contains(&head.method) {
            return Err(method_not_allowed(&head.method, &self.allow));
        }
        let Some(gate) = &self.authenticate else { return Ok(None) };
        if head.headers.get_all(AUTHORIZATION.as_str()).nth(1).is_some() {
            // Which of them counts would be arbitrary.
            let text = "the request has more than one `Authorization` header; send one";
            return Err(ErrorResponse::new(StatusCode::BAD_REQUEST, text));
        }
        Ok(Some(gate.admit(head, peer)))
    }
}

/// Checks the sizes that are limited on every path.
fn check_sizes(head: &RequestHead) -> Result<(), ErrorResponse> {
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    if target > MAX_TARGET_BYTES {
        let text = format!("the request target is longer than {MAX_TARGET_BYTES} bytes");
        return Err(ErrorResponse::new(StatusCode::URI_TOO_LONG, text).close_connection());
    }
    if head.headers.count() > MAX_HEADERS {
        let text = format!("the request has more than {MAX_HEADERS} headers");
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(ErrorResponse::new(status, text).close_connection());
    }
    Ok(())
}

/// The health or readiness response, for methods that only read.
fn status_response<B: From<Bytes>>(
    head: &RequestHead,
    status: StatusCode,
    text: &str,
) -> Response<B> {
    let methods = [Method::GET, Method::HEAD];
    let refusal = if methods.contains(&head.method) {
        ErrorResponse::new(status, text)
    } else {
        method_not_allowed(&head.method, &allow_header(&methods))
    };
    refusal.into_response()
}

fn forbidden(refusal: OriginGuardError) -> ErrorResponse {
    ErrorResponse::new(StatusCode::FORBIDDEN, refusal.to_string()).close_connection()
}

fn method_not_allowed(method: &Method, allow: &HeaderValue) -> ErrorResponse {
    let known = allow.to_str().unwrap_or_default();
    let text = format!("`{method}` is not allowed on this path; allowed: {known}");
    ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, text).header(ALLOW, allow.clone())
}

fn allow_header(methods: &[Method]) -> HeaderValue {
    let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
    HeaderValue::try_from(names.join(", ")).unwrap_or(HeaderValue::from_static(""))
}
