//! Connects directly or through a proxy.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::dns::GaiResolver;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::client::transport::http::conn::connect_failure::{ProxyFailure, describe_failure};
use crate::client::transport::http::conn::proxy::{Proxies, Proxy};
use crate::tls::{TrustedRoots, client_config};

/// How long a proxy may take to connect to a server.
const TUNNEL_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum length of a proxy's response to `CONNECT`.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Maximum number of headers in it.
const MAX_HEADERS: usize = 64;

type BoxError = Box<dyn Error + Send + Sync>;
type ProxyStream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Makes connections. `direct` resolves the names of servers; if there is a proxy, the proxy resolves them.
#[derive(Clone)]
pub(crate) struct ProxyConnector<C> {
    direct: C,
    /// Connects to proxies at any address: the operator chose their names.
    to_proxy: HttpConnector<GaiResolver>,
    proxies: Proxies,
}

impl<C> ProxyConnector<C> {
    pub(crate) fn new(direct: C, to_proxy: HttpConnector<GaiResolver>, proxies: Proxies) -> Self {
        Self { direct, to_proxy, proxies }
    }
}

impl<C> Service<Uri> for ProxyConnector<C>
where
    C: Service<Uri, Response = TokioIo<TcpStream>>,
    C::Error: Into<BoxError>,
    C::Future: Send + 'static,
{
    type Response = HopStream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<HopStream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let proxy = match self.proxies.proxy_for(&url) {
            Ok(proxy) => proxy.cloned(),
            Err(reason) => {
                let failure = ProxyFailure(reason.to_owned());
                return Box::pin(async move { Err(failure.into()) });
            }
        };
        let Some(proxy) = proxy else {
            let connecting = self.direct.call(url);
            return Box::pin(async move {
                let stream = connecting.await.map_err(Into::into)?;
                Ok(HopStream { stream: MaybeHttpsStream::Http(stream), is_forwarded: false })
            });
        };
        let to_proxy = self.to_proxy.clone();
        Box::pin(async move {
            let stream = connect(to_proxy, &proxy).await.map_err(|error| {
                let (reason, _) = describe_failure(&*error, true);
                ProxyFailure(format!("the proxy {} {reason}", proxy.location()))
            })?;
            let is_forwarded = url.scheme_str() != Some("https");
            if is_forwarded {
                return Ok(HopStream { stream, is_forwarded });
            }
            let tunnelled = timeout(TUNNEL_TIMEOUT, tunnel(stream, &proxy, &url)).await;
            let stream = tunnelled.unwrap_or_else(|_| Err("did not respond in time".to_owned()));
            let failed = |reason| ProxyFailure(format!("the proxy {} {reason}", proxy.location()));
            Ok(HopStream { stream: stream.map_err(failed)?, is_forwarded })
        })
    }
}

/// Connects to a proxy, which may itself use TLS.
async fn connect(mut connector: HttpConnector, proxy: &Proxy) -> Result<ProxyStream, BoxError> {
    if proxy.url.scheme_str() == Some("https") {
        let mut encrypted =
            HttpsConnector::from((connector, Arc::new(client_config(TrustedRoots::System)?)));
        poll_fn(|context| encrypted.poll_ready(context)).await?;
        return encrypted.call(proxy.url.clone()).await;
    }
    poll_fn(|context| connector.poll_ready(context)).await?;
    Ok(MaybeHttpsStream::Http(connector.call(proxy.url.clone()).await?))
}

/// Requests a tunnel to a server from the proxy (RFC 9110, section 9.3.6).
async fn tunnel(stream: ProxyStream, proxy: &Proxy, url: &Uri) -> Result<ProxyStream, String> {
    let host = url.host().unwrap_or_default();
    let port = url.port_u16().unwrap_or(443);
    let mut head =
        format!("CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}\r\n").into_bytes();
    if let Some(authorization) = &proxy.authorization {
        head.extend_from_slice(b"proxy-authorization: ");
        head.extend_from_slice(authorization.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    let broken = |_: io::Error| "closed the connection".to_owned();
    let mut stream = TokioIo::new(stream);
    write_all(&mut stream, &head).await.map_err(broken)?;
    let mut response = Vec::new();
    loop {
        if read_some(&mut stream, &mut response).await.map_err(broken)? == 0 {
            return Err("closed the connection".to_owned());
        }
        if let Some(status) = parse_status(&response)? {
            return check_connect_status(status).map(|()| stream.into_inner());
        }
    }
}

/// The meaning of a proxy's status for `CONNECT`.
fn check_connect_status(status: u16) -> Result<(), String> {
    match status {
        200..300 => Ok(()),
        407 => Err("requires valid credentials; write them into the environment variable, as \
            http://name:password@host:port"
            .to_owned()),
        status => Err(format!("refused the connection to it (status {status})")),
    }
}

/// The status of a response, once its head is complete.
fn parse_status(answer: &[u8]) -> Result<Option<u16>, String> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    match head.parse(answer) {
        // Behind the head of a refusal there is an error page. Behind that of a tunnel there must be nothing, because a
        // TLS server does not send first.
        Ok(httparse::Status::Complete(length)) => match head.code {
            Some(200..300) if length < answer.len() => Err("sent data before a request".to_owned()),
            code => Ok(code),
        },
        Ok(httparse::Status::Partial) if answer.len() < MAX_HEAD_BYTES => Ok(None),
        _ => Err("did not respond with HTTP".to_owned()),
    }
}

async fn write_all(stream: &mut TokioIo<ProxyStream>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes)).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[count..];
    }
    poll_fn(|context| Pin::new(&mut *stream).poll_flush(context)).await
}

/// Reads available bytes behind the earlier ones; returns their number.
async fn read_some(stream: &mut TokioIo<ProxyStream>, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; 1024];
    let mut room = ReadBuf::new(&mut chunk);
    poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut room)).await?;
    buffer.extend_from_slice(room.filled());
    Ok(room.filled().len())
}

/// A connection to a server, or to a proxy that forwards requests to it.
pub(crate) struct HopStream {
    stream: ProxyStream,
    /// Whether a proxy forwards the requests, which then name the server as well.
    is_forwarded: bool,
}

impl HopStream {
    fn stream(self: Pin<&mut Self>) -> Pin<&mut ProxyStream> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl Connection for HopStream {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_forwarded)
    }
}

impl Read for HopStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(context, into)
    }
}

impl Write for HopStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(context, slices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_proxy_is_read_to_its_end_and_no_further() {
        assert_eq!(parse_status(b"HTTP/1.1 200 OK\r\nVia: x\r\n"), Ok(None));
        assert_eq!(parse_status(b"HTTP/1.1 200 OK\r\n\r\n"), Ok(Some(200)));
        assert_eq!(parse_status(b"HTTP/1.0 403 Forbidden\r\n\r\n<html>"), Ok(Some(403)));
        assert!(parse_status(b"HTTP/1.1 200 OK\r\n\r\nhello").is_err());
        assert!(parse_status(b"SSH-2.0-x\r\n").is_err());
        assert!(
            parse_status(
                &[b"HTTP/1.1 200 OK\r\nA: ".to_vec(), vec![b'x'; MAX_HEAD_BYTES]].concat()
            )
            .is_err()
        );
    }
}
