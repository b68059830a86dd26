//! Creole as a resource server: people and programs of others log in to it at real authorization servers.
//!
//! They need Node.js and, for Glewlwyd, the packages of Debian. If one cannot be installed, this is reported on stderr, and
//! with `CI=true` the test fails.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod crossing;
mod glewlwyd;
mod principals;
mod upstream;

use std::fs;
use std::net::SocketAddr;

use creole_acceptance::http::ListeningServer;
use tempfile::TempDir;

/// A server that accepts the tokens of an issuer.
struct Protected {
    server: ListeningServer,
    _folder: TempDir,
}

impl Protected {
    /// A server with many tools, and further keys of the issuer.
    fn with(issuer: &str, keys: &str) -> Self {
        let server = "[server]\nname = \"house\"\npacks = [\"everything\"]\n";
        Self::configured(server, issuer, keys)
    }

    /// A server with this configuration and further keys of the issuer.
    fn configured(server: &str, issuer: &str, keys: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("creole.toml");
        let auth = format!(
            "\n\
            [auth.issuers.company]\nissuer = \"{issuer}\"\nroles_claim = \"roles\"\n{keys}"
        );
        fs::write(&file, format!("{server}{auth}")).unwrap();
        let server = ListeningServer::start(&[file.to_str().unwrap()]).unwrap();
        Self { server, _folder: folder }
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }
}
