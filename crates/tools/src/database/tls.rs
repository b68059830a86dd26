//! Encryption of connections to a PostgreSQL server, as its address specifies.

use creole::internal::tls::{PostgresTls, TlsClient};
use tokio_postgres::config::SslMode;

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

    /// What encrypts the connections. It is made before the first one, because most servers are never connected to.
    pub(super) fn encryption(&self) -> PostgresTls {
        let mode = self.clone();
        PostgresTls::when_needed(move || mode.client())
    }

    fn client(&self) -> Result<Option<TlsClient>, String> {
        let client = match self {
            Self::None => return Ok(None),
            Self::Preferred | Self::Required => TlsClient::without_verification(),
            Self::Verified(None) => TlsClient::with_system_roots(),
            Self::Verified(Some(certificates)) => TlsClient::with_roots(certificates),
        };
        client.map(Some)
    }
}
