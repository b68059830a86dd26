//! Creole as a resource server: people and programs of others log in to it at real authorization servers.
//!
//! They need Node.js and, for Glewlwyd, the packages of Debian. If one cannot be installed, this is reported on stderr, and
//! with `CI=true` the test fails.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod clients;
mod crossing;
mod glewlwyd;
mod people;
mod principals;
mod upstream;

use std::fs;
use std::net::SocketAddr;

use creole_acceptance::http::ListeningServer;
use creole_acceptance::peers::idp::provider;
use tempfile::TempDir;

/// A server that accepts the tokens of an issuer.
struct TokenServer {
    server: ListeningServer,
    _folder: TempDir,
}

impl TokenServer {
    /// A server with many tools, which accepts tokens of this issuer with the scope `mcp`.
    fn start(issuer: &str) -> Self {
        Self::with(issuer, "")
    }

    /// The same with further keys of the issuer.
    fn with(issuer: &str, keys: &str) -> Self {
        let server = "[server]\nname = \"house\"\npacks = [\"everything\"]\n";
        Self::configured(server, &format!("[auth.issuers.company]\nissuer = \"{issuer}\"\n{keys}"))
    }

    /// A server with this configuration and these issuers.
    fn configured(server: &str, issuers: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("creole.toml");
        let scopes = "[auth.oauth]\nrequired_scopes = [\"mcp\"]\n";
        fs::write(&file, format!("{server}\n{scopes}{issuers}")).unwrap();
        let server = ListeningServer::start(&[file.to_str().unwrap()]).unwrap();
        Self { server, _folder: folder }
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn url(&self) -> String {
        self.server.url()
    }
}
