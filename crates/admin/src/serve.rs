//! The listener: checks host, origin, path, credential and role of each request, and answers it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, IF_MATCH, IF_NONE_MATCH, ORIGIN};
use ::http::{HeaderValue, Method, Response, StatusCode, Version};
use bytes::{Bytes, BytesMut};
use creole::Principal;
use creole::internal::http::{HttpHandler, IncomingBody, ListenerMetrics, RequestHead};
use creole::internal::task::random_id;
use creole::internal::telemetry::Telemetry;
use creole::serve::http::{Drain, HttpLimits, Listener, Router};
use hyper::body::Body;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::access::{Access, Caller, LinkFile};
use crate::api::calls::run::Runs;
use crate::host::{AdminHost, Stage};
use crate::http::body::AdminBody;
use crate::http::headers;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::query::{Query, decode};
use crate::http::reply::Reply;
use crate::live::LiveView;
use crate::live::log_buffer::LogBuffer;
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::{AdminAddress, AdminSettings, Role};
use crate::{Admin, MAX_STREAMS, api, console};

/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 32;
/// Maximum size of a body in bytes, and how long it may take.
const MAX_BODY: usize = 1024 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// What the paths of the API begin with.
const API: &str = "/api/v1";

/// A listener that is bound and not yet serving.
pub struct AdminListener {
    socket: Socket,
    settings: AdminSettings,
    url: String,
    log: Arc<LogBuffer>,
}

enum Socket {
    Tcp(Listener),
    #[cfg(unix)]
    Unix(creole::serve::http::UnixSocketListener),
}

impl AdminListener {
    /// Binds the address of the settings.
    ///
    /// # Errors
    /// When it cannot be bound.
    pub async fn bind(settings: AdminSettings) -> io::Result<Self> {
        let mut limits = HttpLimits::default();
        limits.connections = MAX_CONNECTIONS;
        limits.connections_per_address = MAX_CONNECTIONS;
        let (socket, url) = match &settings.listen {
            AdminAddress::Tcp(address) => {
                let mut listener = Listener::bind(*address, limits).await?;
                let address = listener.address()?;
                let mut scheme = "http";
                if let Some(certificates) = &settings.certificates {
                    listener = listener.tls(Arc::clone(certificates));
                    scheme = "https";
                }
                (Socket::Tcp(listener), format!("{scheme}://{address}"))
            }
            #[cfg(unix)]
            AdminAddress::Unix(path) => {
                let listener = creole::serve::http::UnixSocketListener::bind(path, limits)?;
                // Commands find the socket from any folder.
                let path = std::path::absolute(path)?;
                (Socket::Unix(listener), format!("unix:{}", path.display()))
            }
            #[cfg(not(unix))]
            AdminAddress::Unix(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Self { socket, settings, url, log: Arc::default() })
    }

    /// Where the log of the process puts its events.
    pub fn log(&self) -> &Arc<LogBuffer> {
        &self.log
    }

    /// The address, with the actual port: `http://127.0.0.1:9464`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The settings.
    pub fn settings(&self) -> &AdminSettings {
        &self.settings
    }

    /// Writes the first one-time link at once, and serves until the future is dropped: the listener of a process that
    /// shuts down can still be read.
    pub fn serve(
        self,
        host: Arc<dyn AdminHost>,
        telemetry: Telemetry,
    ) -> impl Future<Output = ()> + Send {
        telemetry.enable_metrics();
        let settings = self.settings;
        let link = settings.link_folder.as_deref().map(|it| LinkFile::new(it, self.url));
        let access = Access::new(settings.authenticator.clone(), link);
        let live = LiveView::new(telemetry.clone(), settings.capture);
        live.captures.start_always();
        let admin = Arc::new(Admin {
            settings,
            host,
            telemetry,
            access,
            live,
            log: self.log,
            runs: Runs::default(),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            replica: random_id().unwrap_or_default(),
            started: (SystemTime::now(), Instant::now()),
        });
        let handler = AdminHandler { admin: Arc::clone(&admin), routes: api::routes() };
        let measured = ListenerMetrics::new(&admin.telemetry, "admin");
        let router = Router::for_every_path(handler, Drain::new()).measured(Some(measured));
        let serving = async {
            match self.socket {
                Socket::Tcp(listener) => listener.serve(router).await,
                #[cfg(unix)]
                Socket::Unix(listener) => listener.serve(router).await,
            }
        };
        async move {
            tokio::select! {
                () = serving => {}
                () = admin.access.renew_links() => {}
                () = admin.live.run() => {}
            }
        }
    }
}

/// Answers the requests.
struct AdminHandler {
    admin: Arc<Admin>,
    routes: Vec<Route>,
}

impl HttpHandler for AdminHandler {
    type Body = AdminBody;

    async fn handle(
        &self,
        head: &mut RequestHead,
        body: IncomingBody,
        _: Option<Principal>,
    ) -> Response<AdminBody> {
        let reply = self.answer(head, body).await.unwrap_or_else(Reply::from);
        let mut response = reply.into_response();
        headers::add(response.headers_mut());
        response
    }
}

impl AdminHandler {
    async fn answer(&self, head: &RequestHead, body: IncomingBody) -> Result<Reply, Problem> {
        self.check_site(head)?;
        let path = head.uri.path();
        if let Some(path) = path.strip_prefix(API).filter(|rest| rest.starts_with('/')) {
            return self.answer_api(head, path, body).await;
        }
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return Err(method_not_allowed("GET, HEAD"));
        }
        match path {
            "/health" => Ok(plain(StatusCode::OK, "healthy\n")),
            "/ready" => self.ready(head).await,
            "/metrics" => {
                if !self.admin.settings.metrics_open {
                    self.authenticate(head).await?.check(Role::Read)?;
                }
                Ok(api::process::metrics::text(&self.admin, head))
            }
            _ if self.admin.settings.console => console::serve(path)
                .ok_or_else(|| Problem::not_found("page", path))
                .map(|reply| reply.with_etag(head.headers.get(IF_NONE_MATCH.as_str()))),
            _ => Err(Problem::not_found("page", path)),
        }
    }

    /// Refuses requests that name another host, and requests of pages of other sites.
    fn check_site(&self, head: &RequestHead) -> Result<(), Problem> {
        let named = head.uri.authority().map(::http::uri::Authority::as_str);
        let guard = &self.admin.settings.guard;
        let header_needed = head.version < Version::HTTP_2;
        let port = guard
            .check_host(named, head.headers.get_all(HOST.as_str()), header_needed)
            .map_err(|error| {
                Problem::new(ProblemCode::WrongHost, "The request names another host")
                    .detail(error.to_string())
            })?;
        let foreign = |detail: String| {
            let title = "The request comes from a page of another site";
            Problem::new(ProblemCode::ForeignOrigin, title).detail(detail)
        };
        guard
            .check_origin(head.headers.get_all(ORIGIN.as_str()), port)
            .map_err(|error| foreign(error.to_string()))?;
        let is_own = |site: &[u8]| matches!(site, b"same-origin" | b"none");
        match head.headers.get_all("sec-fetch-site").all(is_own) {
            true => Ok(()),
            false => Err(foreign("`Sec-Fetch-Site` is neither same-origin nor none".to_owned())),
        }
    }

    async fn authenticate(&self, head: &RequestHead) -> Result<Caller, Problem> {
        let mut all = head.headers.get_all(AUTHORIZATION.as_str());
        let header = all.next().and_then(|value| HeaderValue::from_bytes(value).ok());
        let header = header.filter(|_| all.next().is_none());
        self.admin.access.authenticate(header.as_ref(), head.client).await
    }

    async fn ready(&self, head: &RequestHead) -> Result<Reply, Problem> {
        let is_ready = self.admin.host.stage() == Stage::Running;
        let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let query = Query::parse(head.uri.query().unwrap_or_default(), &["verbose"])?;
        if !query.is_set("verbose") {
            return Ok(plain(status, if is_ready { "ready\n" } else { "ending\n" }));
        }
        self.authenticate(head).await?.check(Role::Read)?;
        Reply::json(status, &api::process::readiness::of(&self.admin))
    }

    async fn answer_api(
        &self,
        head: &RequestHead,
        path: &str,
        body: IncomingBody,
    ) -> Result<Reply, Problem> {
        let parts: Option<Vec<String>> = path.split('/').skip(1).map(decode_part).collect();
        let parts = parts.unwrap_or_default();
        let mut found = self.routes.iter().filter_map(|it| Some((it, it.matches(&parts)?)));
        let method = if head.method == Method::HEAD { Method::GET } else { head.method.clone() };
        let matching: Vec<_> = found.by_ref().collect();
        let route = matching.iter().find(|(route, _)| route.method == method);
        let needs_credential = route.is_none_or(|(route, _)| route.role.is_some());
        let caller = if needs_credential { Some(self.authenticate(head).await?) } else { None };
        let Some((route, names)) = route else {
            if matching.is_empty() {
                return Err(Problem::not_found("route", head.uri.path()));
            }
            let methods: Vec<&str> = matching.iter().map(|(it, _)| it.method.as_str()).collect();
            return Err(method_not_allowed(&methods.join(", ")));
        };
        if let (Some(role), Some(caller)) = (route.role, &caller) {
            caller.check(role)?;
            self.admin.live.visit();
        }
        let query = Query::parse(head.uri.query().unwrap_or_default(), route.query)?;
        if method == Method::POST {
            check_media_type(head)?;
        }
        let request = ApiRequest {
            caller,
            names: names.clone(),
            query,
            body: read(body).await?,
            accepts_events: accepts(head, "text/event-stream"),
            accepts_lines: accepts(head, "application/x-ndjson"),
            if_match: head
                .headers
                .get_unique(IF_MATCH.as_str())
                .and_then(|value| Some(value.to_str().ok()?.trim_matches('"').to_owned())),
            peer: head.client,
        };
        let reply = route.run(Arc::clone(&self.admin), request).await?;
        match method {
            Method::GET => Ok(reply.with_etag(head.headers.get(IF_NONE_MATCH.as_str()))),
            _ => Ok(reply),
        }
    }
}

/// A part of a path, without escapes. A slash in it is an escape.
fn decode_part(part: &str) -> Option<String> {
    decode(&part.replace('+', "%2B"))
}

fn plain(status: StatusCode, text: &'static str) -> Reply {
    Reply::bytes(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

fn method_not_allowed(methods: &str) -> Problem {
    let title = format!("This path allows only {methods}");
    Problem::new(ProblemCode::MethodNotAllowed, title).allow(methods.to_owned())
}

fn accepts(head: &RequestHead, kind: &str) -> bool {
    let values = head.headers.get_all(ACCEPT.as_str());
    let mut texts = values.filter_map(|value| std::str::from_utf8(value).ok());
    texts.any(|text| {
        text.split(',').any(|part| {
            part.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(kind)
        })
    })
}

/// A page of another site can send a body of another type without asking first.
fn check_media_type(head: &RequestHead) -> Result<(), Problem> {
    let value = head.headers.get_unique(CONTENT_TYPE.as_str());
    let kind = value.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Problem::new(ProblemCode::UnsupportedMediaType, "A body must be JSON")
        .detail("send `Content-Type: application/json`"))
}

/// Reads a body within its limits.
async fn read(mut body: IncomingBody) -> Result<Bytes, Problem> {
    let too_large =
        || Problem::new(ProblemCode::TooLarge, format!("The body is larger than {MAX_BODY} bytes"));
    let broken = || Problem::new(ProblemCode::InvalidBody, "The body ended early");
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(too_large());
    }
    let all = async {
        let mut bytes = BytesMut::new();
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let Ok(piece) = frame.map_err(|_| broken())?.into_data() else { continue };
            if piece.len() > MAX_BODY - bytes.len() {
                return Err(too_large());
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.freeze())
    };
    timeout(BODY_TIMEOUT, all).await.unwrap_or_else(|_| Err(broken()))
}
