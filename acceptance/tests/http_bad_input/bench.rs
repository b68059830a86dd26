//! The server under test, a client that sends bad input, and another client that must not be affected.

use creole_acceptance::http::{Connection, ListeningServer, Request, Response, required_headers};
use creole_acceptance::process_under_test::resource_usage::ResourceUsage;
use serde_json::Value;

use crate::{Era, Expected, Row};

/// The maximum growth of memory over all rows of a table, in bytes, including what the allocator keeps.
const MOST_GROWTH: u64 = 48 << 20;

/// The maximum number of additional descriptors after a table: connections that are about to close.
const MOST_DESCRIPTORS: usize = 8;

/// The `_meta` of a stateless request.
pub(crate) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A request that opens a session.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"VERSION","capabilities":{},"clientInfo":{"name":"acceptance","version":"1"}}}"#;

/// A server with a session of the hostile client and one of another client.
pub(crate) struct Bench {
    pub(crate) server: ListeningServer,
    /// The hostile client's session.
    pub(crate) session: String,
    other: String,
    /// A tool and its arguments, as the members of `params`, and a text in its result.
    canary: (&'static str, &'static str),
    before: ResourceUsage,
}

impl Bench {
    /// A server of the preset `everything`.
    pub(crate) fn everything() -> Self {
        Self::start("everything", (r#""name":"test_simple_text""#, "simple text response"))
    }

    /// A server of the preset `default`, whose tools have effects.
    pub(crate) fn default() -> Self {
        let echo = r#""name":"echo","arguments":{"message":"still here"}"#;
        Self::start("default", (echo, "still here"))
    }

    fn start(preset: &str, canary: (&'static str, &'static str)) -> Self {
        let server = ListeningServer::start(&["--preset", preset]).unwrap();
        let session = open_session(&server, "2025-11-25");
        let other = open_session(&server, "2025-11-25");
        let mut bench = Self { session, other, canary, before: server.weight(), server };
        bench.canary("before anything");
        bench.before = bench.server.weight();
        bench
    }

    /// A POST of this era. `META` in the text stands for the members that the era adds to `params`.
    pub(crate) fn post(&self, era: Era, text: &str) -> Request {
        let text = text.replace("META", if era == Era::Alone { META } else { r#""_meta":{}"# });
        self.post_bytes(era, text.as_bytes())
    }

    /// A POST of this era.
    pub(crate) fn post_bytes(&self, era: Era, body: &[u8]) -> Request {
        let request = Request::post(body);
        if era == Era::Session {
            return request
                .with("Mcp-Session-Id", &self.session)
                .with("MCP-Protocol-Version", "2025-11-25");
        }
        let message: Value = serde_json::from_slice(body).unwrap_or_default();
        let fields = required_headers::fields(&message);
        if !fields.is_empty() {
            return request.with_all(fields);
        }
        let method = message["method"].as_str().unwrap_or("tools/call");
        request
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", method)
            .with("Mcp-Name", "test_simple_text")
    }

    /// Sends a request on a new connection.
    #[track_caller]
    pub(crate) fn send(&self, request: &Request) -> Response {
        request.send(self.server.address()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A connection on which nothing was sent.
    #[track_caller]
    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.server.address()).unwrap()
    }

    /// Checks each row, and after each row that the other client is still served.
    #[track_caller]
    pub(crate) fn check(&self, rows: Vec<Row>) {
        let mut invalid = Vec::new();
        for Row { name, request, expected } in rows {
            match request.send(self.server.address()) {
                Err(error) => invalid.push(format!("{name}: {error}\n  {}", self.shown(&request))),
                Ok(response) => {
                    let found = check_response(&response, expected);
                    if let Err(difference) = found {
                        invalid.push(format!("{name}: {difference}\n  {}", self.shown(&request)));
                    }
                }
            }
            self.canary(name);
        }
        assert!(invalid.is_empty(), "{} rows are wrong:\n{}", invalid.len(), invalid.join("\n"));
    }

    fn shown(&self, request: &Request) -> String {
        let bytes = request.bytes(self.server.address());
        let shown: String = String::from_utf8_lossy(&bytes).chars().take(900).collect();
        shown.replace("\r\n", "\n  ")
    }

    /// Asserts that the other client's tool calls succeed, both stateless and in its session.
    #[track_caller]
    pub(crate) fn canary(&self, after: &str) {
        let (params, output) = self.canary;
        let call = |meta: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":"canary","method":"tools/call","params":{{{params}{meta}}}}}"#
            )
        };
        let text = call(&format!(",{META}"));
        let message: Value = serde_json::from_str(&text).unwrap();
        let alone = Request::post(text).with_all(required_headers::fields(&message));
        let in_session = Request::post(call("")).with("Mcp-Session-Id", &self.other);
        for request in [alone, in_session] {
            let response = self.send(&request);
            let text = response.text();
            assert_eq!(response.head.status, 200, "the other client after {after}: {text}");
            assert!(text.contains(output), "the other client after {after}: {text}");
        }
    }

    /// Asserts that memory and descriptors stay within their limits.
    #[track_caller]
    pub(crate) fn weigh(&self) {
        let after = self.server.weight();
        let grown = after.growth_since(self.before);
        assert!(grown < MOST_GROWTH, "{grown} bytes more at the peak: {after:?}");
        let max = self.before.descriptors + MOST_DESCRIPTORS;
        assert!(after.descriptors <= max, "{after:?} from {:?}", self.before);
    }
}

/// Opens a session of this revision, and returns its id.
#[track_caller]
pub(crate) fn open_session(server: &ListeningServer, version: &str) -> String {
    let hello = Request::post(INITIALIZE.replace("VERSION", version));
    let response = hello.send(server.address()).unwrap();
    assert_eq!(response.head.status, 200, "{}", response.text());
    assert_eq!(response.message()["result"]["protocolVersion"], version);
    let id = response.head.field("mcp-session-id").expect("a session").to_owned();
    let ready = Request::post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let ready = ready.with("Mcp-Session-Id", &id).send(server.address()).unwrap();
    assert_eq!(ready.head.status, 202, "{}", ready.text());
    id
}

/// Whether a response is the expected one.
pub(crate) fn check_response(response: &Response, expected: Expected) -> Result<(), String> {
    let (status, code) = (response.head.status, response.code());
    let is_right = match expected {
        Expected::Result => status == 200 && response.message().get("result").is_some(),
        Expected::Error(right, right_code) => status == right && code == Some(right_code),
        Expected::Status(right) => status == right,
    };
    match is_right && status < 500 {
        true => Ok(()),
        false => Err(format!("expected {expected:?}, got {status} {}", response.text())),
    }
}
