//! A client of the admin API, for commands.

use std::fmt;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use ::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use ::http::{Method, Request, Response, Uri};
use bytes::{Bytes, BytesMut};
use creole::internal::tls::{TlsClient, describe_connect_failure};
use creole_proto::framing::sse::SseDecoder;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::access::AdminLink;
use crate::http::body::AdminBody;

/// Maximum size of an answer, and of one event, in bytes.
const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// How long a connection and an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// What the address of a Unix socket begins with.
const UNIX_PREFIX: &str = "unix:";

/// What a client signs in with.
#[derive(Clone)]
pub enum AdminCredential {
    /// The one-time token of a link.
    Link(AdminLink),
    /// A key of the file of keys.
    Key(String),
}

/// A client of the API. It opens a connection for each request.
pub struct AdminClient {
    address: Address,
    /// The trusted authorities, in PEM form. Without them, those of the system are trusted.
    authorities: Option<Vec<u8>>,
    authorization: String,
}

enum Address {
    Web(Uri),
    Unix(PathBuf),
}

/// Why a request failed.
#[derive(Debug)]
pub struct AdminError {
    /// What failed, in a sentence.
    pub message: String,
    /// The status of the answer, if there is one.
    pub status: Option<u16>,
}

impl fmt::Display for AdminError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for AdminError {}

impl From<String> for AdminError {
    fn from(message: String) -> Self {
        Self { message, status: None }
    }
}

impl AdminClient {
    /// Signs in at an address such as `http://127.0.0.1:9464` or `unix:/run/creole/admin.sock`. Trusts these certificate
    /// authorities, in PEM form, or else those of the system.
    ///
    /// # Errors
    /// When the address is invalid, the listener cannot be reached, or the credential is refused.
    pub async fn sign_in(
        url: &str,
        credential: AdminCredential,
        authorities: Option<Vec<u8>>,
    ) -> Result<Self, AdminError> {
        let address = match url.strip_prefix(UNIX_PREFIX) {
            Some(path) => Address::Unix(path.into()),
            None => {
                let uri: Option<Uri> = url.trim_end_matches('/').parse().ok();
                let is_web = |uri: &Uri| {
                    matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
                };
                Address::Web(uri.filter(is_web).ok_or_else(|| {
                    format!("`{url}` is not the address of an admin listener, such as http://127.0.0.1:9464")
                })?)
            }
        };
        let mut client = Self { address, authorities, authorization: String::new() };
        match credential {
            AdminCredential::Key(key) => client.authorization = format!("Bearer {key}"),
            AdminCredential::Link(link) => {
                let answer = client.post("/login", &json!({ "token": link.token })).await?;
                let bearer = answer["bearer"].as_str().unwrap_or_default();
                client.authorization = format!("Bearer {bearer}");
            }
        }
        Ok(client)
    }

    /// The answer of a route that reads, such as `/overview`.
    ///
    /// # Errors
    /// When the listener cannot be reached, or refuses.
    pub async fn get(&self, path: &str) -> Result<Value, AdminError> {
        self.request(Method::GET, path, Bytes::new()).await
    }

    /// The answer of a route that takes a document.
    ///
    /// # Errors
    /// When the listener cannot be reached, or refuses.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, AdminError> {
        self.request(Method::POST, path, body.to_string().into()).await
    }

    async fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Value, AdminError> {
        let answer = async {
            let response = self.send(method, path, "application/json", body).await?;
            let status = response.status();
            let text = read_all(response.into_body()).await?;
            match status.is_success() {
                true if text.is_empty() => Ok(Value::Null),
                true => serde_json::from_slice(&text)
                    .map_err(|error| format!("the answer is no JSON: {error}").into()),
                false => Err(refusal(status.as_u16(), &text)),
            }
        };
        let late = || AdminError::from(format!("no answer within {} s", TIMEOUT.as_secs()));
        timeout(TIMEOUT, answer).await.unwrap_or_else(|_| Err(late()))
    }

    /// The events of a route.
    ///
    /// # Errors
    /// When the listener cannot be reached, or refuses.
    pub async fn events(&self, path: &str) -> Result<AdminEvents, AdminError> {
        let sent = self.send(Method::GET, path, "text/event-stream", Bytes::new());
        let late = |_| AdminError::from(format!("no answer within {} s", TIMEOUT.as_secs()));
        let response = timeout(TIMEOUT, sent).await.map_err(late)??;
        let status = response.status();
        if !status.is_success() {
            return Err(refusal(status.as_u16(), &read_all(response.into_body()).await?));
        }
        let decoder = SseDecoder::new(MAX_ANSWER);
        Ok(AdminEvents { body: response.into_body(), decoder, unread: Bytes::new() })
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, AdminError> {
        let mut request = Request::new(AdminBody::from(body));
        *request.uri_mut() = format!("/api/v1{path}")
            .parse()
            .map_err(|_| format!("`{path}` is not a path of the API"))?;
        *request.method_mut() = method;
        let headers = [
            (HOST, self.host()),
            (ACCEPT, accept.to_owned()),
            (CONTENT_TYPE, "application/json".to_owned()),
            (AUTHORIZATION, self.authorization.clone()),
        ];
        for (name, value) in headers.into_iter().filter(|(_, value)| !value.is_empty()) {
            let value =
                value.try_into().map_err(|_| format!("the value of `{name}` is invalid"))?;
            request.headers_mut().insert(name, value);
        }
        match &self.address {
            Address::Unix(path) => self.over_unix(path, request).await,
            Address::Web(uri) => {
                let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
                let is_tls = uri.scheme_str() == Some("https");
                let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
                let stream = TcpStream::connect((host, port))
                    .await
                    .map_err(|error| format!("cannot connect to {uri}: {error}"))?;
                if !is_tls {
                    return exchange(stream, request).await;
                }
                let tls = match &self.authorities {
                    Some(authorities) => TlsClient::with_roots(authorities)?,
                    None => TlsClient::with_system_roots()?,
                };
                let failed = |error| format!("{uri} {}", describe_connect_failure(&error));
                let encrypted = tls.connect(host, stream).await.map_err(failed)?;
                exchange(encrypted, request).await
            }
        }
    }

    #[cfg(unix)]
    async fn over_unix(
        &self,
        path: &std::path::Path,
        request: Request<AdminBody>,
    ) -> Result<Response<Incoming>, AdminError> {
        let stream = tokio::net::UnixStream::connect(path)
            .await
            .map_err(|error| format!("cannot connect to {}: {error}", path.display()))?;
        exchange(stream, request).await
    }

    #[cfg(not(unix))]
    async fn over_unix(
        &self,
        _: &std::path::Path,
        _: Request<AdminBody>,
    ) -> Result<Response<Incoming>, AdminError> {
        Err("this system has no Unix sockets".to_owned().into())
    }

    fn host(&self) -> String {
        match &self.address {
            Address::Unix(_) => "localhost".to_owned(),
            Address::Web(uri) => uri.authority().map_or_else(String::new, ToString::to_string),
        }
    }
}

/// Sends one request over a new connection.
async fn exchange<S>(
    stream: S,
    request: Request<AdminBody>,
) -> Result<Response<Incoming>, AdminError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = |error: hyper::Error| match error.is_parse() {
        true => "the address does not answer with HTTP; if the listener has TLS, write `https://`"
            .to_owned()
            .into(),
        false => AdminError::from(format!("the request failed: {error}")),
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(failed)
}

async fn read_all(mut body: Incoming) -> Result<Bytes, AdminError> {
    let mut bytes = BytesMut::new();
    while let Some(piece) = next_piece(&mut body).await? {
        if bytes.len() + piece.len() > MAX_ANSWER {
            return Err("the answer is too long".to_owned().into());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}

async fn next_piece(body: &mut Incoming) -> Result<Option<Bytes>, AdminError> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        let Some(frame) = frame else { return Ok(None) };
        let frame = frame.map_err(|error| format!("the connection was lost: {error}"))?;
        if let Ok(piece) = frame.into_data() {
            return Ok(Some(piece));
        }
    }
}

/// The error of a refused request: the sentences of its problem document.
fn refusal(status: u16, text: &[u8]) -> AdminError {
    let problem: Value = serde_json::from_slice(text).unwrap_or_default();
    let part = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    let message = match (part("title"), part("detail")) {
        (title, _) if title.is_empty() => format!("the admin listener answered with {status}"),
        (title, detail) if detail.is_empty() => title,
        (title, detail) => format!("{title}: {detail}"),
    };
    AdminError { message, status: Some(status) }
}

/// The events of a route.
pub struct AdminEvents {
    body: Incoming,
    decoder: SseDecoder,
    unread: Bytes,
}

impl AdminEvents {
    /// The next event: its name and its data. `None` at the end.
    ///
    /// # Errors
    /// When the connection is lost.
    pub async fn next(&mut self) -> Result<Option<(String, Value)>, AdminError> {
        loop {
            let mut rest: &[u8] = &self.unread;
            let event = self.decoder.next(&mut rest);
            let used = self.unread.len() - rest.len();
            let _ = self.unread.split_to(used);
            match event {
                Some(Ok(event)) => {
                    let Ok(data) = serde_json::from_slice(event.data.as_bytes()) else { continue };
                    return Ok(Some((event.event.unwrap_or_default(), data)));
                }
                Some(Err(error)) => return Err(format!("the stream is invalid: {error:?}").into()),
                None => match next_piece(&mut self.body).await? {
                    Some(piece) => self.unread = piece,
                    None => return Ok(None),
                },
            }
        }
    }
}
