//! TLS for connections to a PostgreSQL server.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

use crate::chain::BoxFuture;
use crate::tls::{Encrypted, TlsClient};

/// Encrypts the connections to a server, if it has the means.
#[derive(Clone, Debug)]
pub(super) struct PostgresTls {
    client: Option<TlsClient>,
}

impl PostgresTls {
    pub(super) fn new(client: Option<TlsClient>) -> Self {
        Self { client }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for PostgresTls {
    type Stream = EncryptedConnection<S>;
    type TlsConnect = TlsHandshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<TlsHandshake, io::Error> {
        Ok(TlsHandshake { host: host.to_owned(), client: self.client.clone() })
    }
}

/// The TLS handshake of one connection.
pub(super) struct TlsHandshake {
    host: String,
    client: Option<TlsClient>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for TlsHandshake {
    type Stream = EncryptedConnection<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<EncryptedConnection<S>, io::Error>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let client = self.client.ok_or_else(|| io::Error::other("encryption is disabled"))?;
            client.connect(&self.host, stream).await.map(EncryptedConnection)
        })
    }
}

/// An encrypted connection with the interface of the PostgreSQL client.
pub(super) struct EncryptedConnection<S>(Encrypted<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for EncryptedConnection<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedConnection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedConnection<S> {
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
