//! Encryption of connections to a PostgreSQL server, as its address specifies.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use creole::BoxFuture;
use creole::internal::tls::{Encrypted, TlsClient};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// The protection of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    /// None.
    None,
    /// Encrypted against eavesdropping if the server supports it. An active attacker can disable it.
    Preferred,
    /// Encrypted against eavesdropping. The server's identity is not verified.
    Required,
    /// Encrypted, and the server's name is verified with a certificate of these authorities, or of the system's.
    Verified(Option<Vec<u8>>),
}

impl TlsMode {
    /// The corresponding setting of the PostgreSQL client.
    pub(super) fn mode(&self) -> SslMode {
        match self {
            Self::None => SslMode::Disable,
            Self::Preferred => SslMode::Prefer,
            Self::Required | Self::Verified(_) => SslMode::Require,
        }
    }

    fn encryption(&self) -> Result<TlsClient, String> {
        match self {
            Self::None | Self::Preferred | Self::Required => TlsClient::without_verification(),
            Self::Verified(None) => TlsClient::with_system_roots(),
            Self::Verified(Some(certificates)) => TlsClient::with_roots(certificates),
        }
    }
}

/// Encrypts connections to one server; clones share the settings.
#[derive(Clone, Debug)]
pub(super) struct PostgresTls {
    mode: TlsMode,
    /// Created on first use, because most servers need none.
    encryption: Arc<OnceLock<Result<TlsClient, String>>>,
}

impl PostgresTls {
    pub(super) fn new(privacy: &TlsMode) -> Self {
        Self { mode: privacy.clone(), encryption: Arc::default() }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for PostgresTls {
    type Stream = TlsConnection<S>;
    type TlsConnect = TlsHandshake;
    type Error = io::Error;

    /// The client calls this for every connection, including unencrypted ones.
    fn make_tls_connect(&mut self, host: &str) -> Result<TlsHandshake, io::Error> {
        if self.mode == TlsMode::None {
            return Ok(TlsHandshake { host: host.to_owned(), encryption: None });
        }
        let encryption = self.encryption.get_or_init(|| self.mode.encryption());
        let encryption = encryption.clone().map_err(io::Error::other)?;
        Ok(TlsHandshake { host: host.to_owned(), encryption: Some(encryption) })
    }
}

/// A TLS handshake of one connection.
pub(super) struct TlsHandshake {
    host: String,
    encryption: Option<TlsClient>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for TlsHandshake {
    type Stream = TlsConnection<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<TlsConnection<S>, io::Error>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let encryption = self.encryption.ok_or_else(|| io::Error::other("it stays plain"))?;
            encryption.connect(&self.host, stream).await.map(TlsConnection)
        })
    }
}

/// An encrypted connection, with the interface of the PostgreSQL client.
pub(super) struct TlsConnection<S>(Encrypted<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for TlsConnection<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsConnection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsConnection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
