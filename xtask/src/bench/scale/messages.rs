//! The requests of the load, and what their responses must contain.

/// The kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// Of 2026-07-28, without a session.
    Stateless,
    /// Of 2025-11-25, in one session per client.
    Session,
    /// Of 2026-07-28 to an upstream of 2025-11-25 that requests input: the call is parked until its client calls again.
    Parked,
}

/// A message: the header fields of its own, each with its line end, and the body.
pub(super) struct Message {
    pub(super) fields: String,
    pub(super) body: String,
}

impl CallKind {
    pub(super) const ALL: [Self; 3] = [Self::Stateless, Self::Session, Self::Parked];

    /// Its name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stateless => "stateless",
            Self::Session => "session",
            Self::Parked => "parked",
        }
    }

    /// The text in the result of a call.
    pub(super) fn result(self) -> &'static str {
        match self {
            Self::Stateless | Self::Session => "sixteen letters.",
            Self::Parked => "someone@example.com",
        }
    }

    /// The first message of a call. `session` is that of the client, if it has one.
    pub(super) fn call(self, session: Option<&str>) -> Message {
        let echo = "\"name\":\"echo\",\"arguments\":{\"message\":\"sixteen letters.\"}";
        match self {
            Self::Stateless => stateless("echo", echo),
            Self::Session => {
                let fields = session_fields(session.unwrap_or_default());
                Message { fields, body: request("tools/call", echo) }
            }
            Self::Parked => stateless(ASKING_TOOL, ASKING_CALL),
        }
    }
}

/// A tool of the preset `everything` that requests input.
const ASKING_TOOL: &str = "test_elicitation";
const ASKING_CALL: &str = "\"name\":\"test_elicitation\",\"arguments\":{\"message\":\"Who?\"}";

/// The second message of a parked call, if this response requests input.
pub(super) fn next_round(response: &str) -> Option<Message> {
    let key = text_after(response, "\"inputRequests\":{\"")?;
    let state = text_after(response, "\"requestState\":\"")?;
    let content = "{\"username\":\"someone\",\"email\":\"someone@example.com\"}";
    let input = format!(
        "\"inputResponses\":{{\"{key}\":{{\"action\":\"accept\",\"content\":{content}}}}},\"requestState\":\"{state}\""
    );
    Some(stateless(ASKING_TOOL, &format!("{ASKING_CALL},{input}")))
}

/// The text between this one and the next quotation mark.
fn text_after<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    text.split_once(before)?.1.split('"').next()
}

/// A call of a tool without a session.
fn stateless(tool: &str, params: &str) -> Message {
    let meta = "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
                \"io.modelcontextprotocol/clientInfo\":{\"name\":\"bench\",\"version\":\"1\"},\
                \"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}";
    let fields = format!(
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    );
    Message { fields, body: request("tools/call", &format!("{params},{meta}")) }
}

/// The handshake of a session.
pub(super) fn initialize() -> Message {
    let params = "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\
                  \"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}";
    Message { fields: String::new(), body: request("initialize", params) }
}

/// The end of the handshake.
pub(super) fn initialized(session: &str) -> Message {
    let body = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
    Message { fields: session_fields(session), body: body.to_owned() }
}

fn session_fields(session: &str) -> String {
    format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n")
}

fn request(method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{{params}}}}}")
}

#[cfg(test)]
mod tests {
    use super::next_round;

    #[test]
    fn the_second_round_carries_the_key_and_the_state_of_the_first() {
        let response = r#"{"inputRequests":{"q1":{"params":{}}},"requestState":"c1.abc"}"#;
        let message = next_round(response).unwrap();
        assert!(message.body.contains(r#""inputResponses":{"q1":{"action":"accept""#));
        assert!(message.body.contains(r#""requestState":"c1.abc""#), "{}", message.body);
        assert!(next_round(r#"{"content":[]}"#).is_none());
    }
}
