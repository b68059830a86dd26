//! Tests of upstreams with one era or both. Each caller is served in its own era if the upstream supports it, and a
//! program is started once per session.

use std::fs;
use std::path::Path;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::http::ListeningServer;
use creole_acceptance::process_under_test::Server;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::text;

/// A server that records in a file the first request of each of its processes. Like the SDKs with both eras, a process
/// keeps the era of its first request.
const SERVER: &str = r#"
import json, os, sys
journal, speaks = sys.argv[1], sys.argv[2]
era = None

def note(what):
    with open(journal, "a") as file:
        file.write(what + "\n")

def result(message, **members):
    if era == "stateless":
        members = {"resultType": "complete"} | members
    return {"result": members}

def answer(message):
    global era
    method = message["method"]
    own = "handshake" if method == "initialize" else "stateless"
    if era is None and speaks in ("both", own):
        era = own
    capabilities = {"tools": {}}
    if method == "initialize" and era == "handshake":
        version = message["params"]["protocolVersion"]
        about = {"name": "eras", "version": "1"}
        return result(message, protocolVersion=version, capabilities=capabilities, serverInfo=about)
    if method == "server/discover" and era == "stateless":
        return result(message, supportedVersions=["2026-07-28"], capabilities=capabilities)
    if method == "tools/list" and era:
        tools = [{"name": "era", "inputSchema": {"type": "object"}}]
        return result(message, tools=tools)
    if method == "tools/call" and era:
        return result(message, content=[{"type": "text", "text": f"{era} {os.getpid()}"}])
    return {"error": {"code": -32022, "message": "another era is spoken here"}}

note("started")
for line in sys.stdin:
    message = json.loads(line)
    if "method" in message and "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"]} | answer(message)), flush=True)
"#;

/// The server, which supports `both`, `handshake` or `stateless`.
struct Eras {
    folder: TempDir,
    speaks: &'static str,
}

impl Eras {
    fn new(speaks: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("server.py"), SERVER).unwrap();
        Self { folder, speaks }
    }

    fn command(&self) -> [String; 4] {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        ["python3".to_owned(), path("server.py"), path("journal"), self.speaks.to_owned()]
    }

    /// The number of its starts.
    fn starts(&self) -> usize {
        let journal = fs::read_to_string(self.folder.path().join("journal")).unwrap();
        journal.lines().count()
    }

    /// A gateway over HTTP. The table of its upstream has these additional lines.
    fn gateway(&self, lines: &str) -> ListeningServer {
        let file = self.folder.path().join("gateway.toml");
        let command = json!(self.command());
        let text = format!("[upstreams.behind]\nprefix = \"\"\ncommand = {command}\n{lines}\n");
        fs::write(&file, text).unwrap();
        ListeningServer::start(&[path(&file)]).unwrap()
    }

    /// A gateway on stdio.
    fn pipe(&self) -> Server {
        let command = self.command();
        let words: Vec<&str> =
            ["--"].into_iter().chain(command.iter().map(String::as_str)).collect();
        Server::start(&words)
    }
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

/// The era of the call at the server, and the process that responded.
fn called(response: &Value) -> (String, String) {
    let (era, pid) = text(response).split_once(' ').unwrap();
    (era.to_owned(), pid.to_owned())
}

fn legacy(gateway: &ListeningServer) -> HandshakeClient {
    HandshakeClient::open(gateway.address(), "2025-11-25", json!({}), None)
}

#[test]
fn a_server_of_both_eras_is_called_in_the_era_of_each_caller() {
    let server = Eras::new("both");
    let gateway = server.gateway("");
    let (old, new) = (legacy(&gateway), StatelessClient::new(gateway.address()));
    let shaken = called(&old.call("era", json!({})));
    let alone = called(&new.call("era", json!({})));
    assert_eq!((shaken.0.as_str(), alone.0.as_str()), ("handshake", "stateless"));
    for _ in 0..3 {
        assert_eq!(called(&old.call("era", json!({}))), shaken, "the session keeps its process");
        assert_eq!(called(&new.call("era", json!({}))), alone);
    }
    assert_eq!(server.starts(), 2, "one process for each era");
}

#[test]
fn an_upstream_of_one_era_is_called_in_it_by_every_caller() {
    for speaks in ["handshake", "stateless"] {
        let server = Eras::new(speaks);
        let gateway = server.gateway("");
        let (old, new) = (legacy(&gateway), StatelessClient::new(gateway.address()));
        for _ in 0..2 {
            assert_eq!(called(&old.call("era", json!({}))).0, speaks);
            assert_eq!(called(&new.call("era", json!({}))).0, speaks);
        }
    }
}

#[test]
fn a_configured_revision_or_era_applies_to_every_caller() {
    for (line, expected) in [
        ("revision = \"2025-06-18\"", "handshake"),
        ("era = \"handshake\"", "handshake"),
        ("revision = \"2026-07-28\"", "stateless"),
    ] {
        let server = Eras::new("both");
        let gateway = server.gateway(line);
        let answers = [
            legacy(&gateway).call("era", json!({})),
            StatelessClient::new(gateway.address()).call("era", json!({})),
        ];
        for response in answers {
            assert_eq!(called(&response).0, expected, "{line}");
        }
    }
}

#[test]
fn a_program_with_one_client_is_started_once() {
    for (speaks, version, expected) in [
        ("both", "2025-11-25", "handshake"),
        ("both", "2026-07-28", "stateless"),
        ("handshake", "2025-11-25", "handshake"),
        ("handshake", "2026-07-28", "handshake"),
        ("stateless", "2025-11-25", "stateless"),
        ("stateless", "2026-07-28", "stateless"),
    ] {
        let server = Eras::new(speaks);
        let mut gateway = server.pipe();
        let about = json!({"name": "pipe", "version": "1"});
        let mut params = json!({"name": "era", "arguments": {}});
        match version {
            "2026-07-28" => {
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": version,
                    "io.modelcontextprotocol/clientInfo": about,
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
            }
            _ => {
                let hello =
                    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": about});
                gateway.write(request(1, "initialize", hello));
                gateway.answer();
                let response = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
                gateway.write(format!("{response}\n"));
            }
        }
        for id in 2..4 {
            gateway.write(request(id, "tools/call", params.clone()));
            assert_eq!(called(&gateway.answer()).0, expected, "{version} to {speaks}");
        }
        assert_eq!(gateway.finish().code, Some(0));
        assert_eq!(server.starts(), 1, "{version} to {speaks}");
    }
}

#[test]
fn a_program_with_one_client_over_http_is_started_twice_at_the_most() {
    for speaks in ["both", "handshake", "stateless"] {
        for is_old in [true, false] {
            let server = Eras::new(speaks);
            let gateway = server.gateway("");
            let call: Box<dyn Fn() -> Value> = match is_old {
                true => {
                    let old = legacy(&gateway);
                    Box::new(move || old.call("era", json!({})))
                }
                false => {
                    let new = StatelessClient::new(gateway.address());
                    Box::new(move || new.call("era", json!({})))
                }
            };
            let first = called(&call());
            for _ in 0..3 {
                assert_eq!(called(&call()), first, "one process gets all calls");
            }
            // One process serves the shared list, and one has the session of the client.
            let starts = server.starts();
            assert!(starts <= 2, "{speaks}, {is_old}: {starts}");
        }
    }
}

fn request(id: u32, method: &str, params: Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}
