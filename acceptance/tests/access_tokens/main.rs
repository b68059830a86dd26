//! The real binary accepts access tokens of issuers that behave, and of issuers that misbehave.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(clippy::print_stderr, reason = "a skipped test is reported on stderr")]

mod bound;
mod issuer;
mod keys;
mod opaque;
mod policy;
mod provider;
mod resource;
mod sessions;
mod tokens;

use std::fs;

use creole_acceptance::http::{ListeningServer, Request, Response};
use serde_json::json;
use tempfile::TempDir;

use issuer::TestIssuer;

/// A bearer key, and its SHA-256.
const KEY: &str = "creole_YWNjZXB0YW5jZSBrZXkgb2YgdGhlIHRlc3RzIQ";

/// A running server that accepts access tokens and one key.
struct TokenServer {
    server: ListeningServer,
    _folder: TempDir,
}

impl TokenServer {
    /// Starts a server with these further lines in its configuration.
    #[track_caller]
    fn start(lines: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), "creole.toml", lines)
    }

    #[track_caller]
    fn start_in(folder: TempDir, name: &str, lines: &str) -> Self {
        let file = folder.path().join(name);
        let digest = sha256_hex(KEY.as_bytes());
        let key = format!("[[auth.keys]]\nname = \"ci\"\nsha256 = \"{digest}\"\n");
        let server = "[server]\nname = \"protected\"\npacks = [\"echo\"]\n";
        fs::write(&file, format!("{server}{lines}\n{key}")).unwrap();
        let server = ListeningServer::start(&[file.to_str().unwrap()]);
        Self { server: server.unwrap_or_else(|error| panic!("{error}")), _folder: folder }
    }

    /// A server for the tokens of one issuer.
    #[track_caller]
    fn by(issuer: &TestIssuer) -> Self {
        Self::start(&table("corp", issuer, ""))
    }

    /// The address of the resource.
    fn url(&self) -> String {
        self.server.url()
    }

    fn send(&self, request: &Request) -> Response {
        request.send(self.server.address()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The status of a request with this token.
    fn status(&self, token: &str) -> u16 {
        self.send(&with_token(token)).head.status
    }

    /// Asserts that a token is refused like every other invalid one, and that another caller is still answered.
    #[track_caller]
    fn refuses(&self, token: &str) {
        let response = self.send(&with_token(token));
        let challenge = response.head.field("www-authenticate").unwrap_or_default().to_owned();
        assert_eq!(response.head.status, 401, "{token}: {}", response.text());
        let begin = "Bearer realm=\"creole\", error=\"invalid_token\", \
                     error_description=\"invalid access token\"";
        assert!(challenge.starts_with(begin), "{token}: {challenge}");
        let sentence = response.text();
        assert!(sentence.starts_with("Authentication required."), "{sentence}");
        assert!(!sentence.contains(token) && !challenge.contains(token));
        assert_eq!(self.status(KEY), 200, "another caller is answered");
    }

    /// Asserts that the log names a reason.
    #[track_caller]
    fn logs(&self, reason: &str) {
        self.server.until_said(&format!("reason=\"{reason}\""));
    }
}

/// The table of an issuer, with further keys.
fn table(label: &str, issuer: &TestIssuer, keys: &str) -> String {
    format!("[auth.issuers.{label}]\nissuer = \"{}\"\n{keys}\n", issuer.name())
}

/// A message of a client without credentials.
fn message() -> Request {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        },
    });
    Request::post(body.to_string())
}

/// A message with a token.
fn with_token(token: &str) -> Request {
    message().with("Authorization", &format!("Bearer {token}"))
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).into()
}

fn sha256_hex(bytes: &[u8]) -> String {
    sha256(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
