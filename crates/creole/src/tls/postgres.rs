//! TLS for the connections of the PostgreSQL client.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

use super::{Encrypted, TlsClient};
use crate::chain::BoxFuture;

/// What encrypts connections, if anything does, or why it cannot be made.
type MadeClient = Result<Option<TlsClient>, String>;

/// Encrypts the connections to a PostgreSQL server, if it has the means. Clones share them.
#[derive(Clone, Debug)]
pub struct PostgresTls {
    client: Arc<LazyLock<MadeClient, Box<dyn FnOnce() -> MadeClient + Send>>>,
}

impl PostgresTls {
    /// Encrypts with this client.
    pub fn new(client: Option<TlsClient>) -> Self {
        Self::when_needed(move || Ok(client))
    }

    /// Encrypts with the client that this function makes before the first connection.
    pub fn when_needed(make: impl FnOnce() -> MadeClient + Send + 'static) -> Self {
        Self { client: Arc::new(LazyLock::new(Box::new(make))) }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for PostgresTls {
    type Stream = EncryptedConnection<S>;
    type TlsConnect = TlsHandshake;
    type Error = io::Error;

    /// The PostgreSQL client calls this for every connection, including unencrypted ones.
    fn make_tls_connect(&mut self, host: &str) -> Result<TlsHandshake, io::Error> {
        let client = LazyLock::force(&self.client).clone().map_err(io::Error::other)?;
        Ok(TlsHandshake { host: host.to_owned(), client })
    }
}

/// The TLS handshake of one connection.
pub struct TlsHandshake {
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
pub struct EncryptedConnection<S>(Encrypted<S>);

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
