//! Builds the response to a request body.

use std::io;

use bytes::Bytes;
use serde_json::Value;

/// The kind of response to a request.
pub enum Answer {
    /// This body.
    Json(Bytes),
    /// This body, and a new session id without any state.
    Session(Bytes),
    /// A stream that begins with this event.
    Stream(Bytes),
    /// No body: the message was a notification.
    Nothing,
}

/// Builds responses; the list of tools is serialized once.
pub struct Responder {
    tools: Vec<u8>,
}

impl Responder {
    /// A responder that lists `count` tools.
    pub fn with_tools(count: usize) -> Self {
        let tools: Vec<String> = (0..count).map(tool).collect();
        let list = format!(r#","result":{{"tools":[{}],{LIST_END}}}}}"#, tools.join(","));
        Self { tools: list.into_bytes() }
    }

    /// Builds the response to one body.
    pub fn answer(&self, body: &[u8]) -> io::Result<Answer> {
        let message: Value = serde_json::from_slice(body)?;
        let Some(id) = message.get("id") else { return Ok(Answer::Nothing) };
        let begin = format!(r#"{{"jsonrpc":"2.0","id":{id}"#);
        Ok(match message["method"].as_str().unwrap_or_default() {
            "subscriptions/listen" => Answer::Stream(acknowledged(id)),
            "tools/call" => {
                let text = &message["params"]["arguments"]["message"];
                let result = r#""result":{"content":[{"type":"text","text":"#;
                let end = r#"}],"resultType":"complete"}}"#;
                Answer::Json(format!("{begin},{result}{text}{end}").into())
            }
            "tools/list" => Answer::Json([begin.as_bytes(), &self.tools].concat().into()),
            "initialize" => Answer::Session(format!("{begin}{INITIALIZED}").into()),
            other => return Err(io::Error::other(format!("bare-http does not know `{other}`"))),
        })
    }
}

/// The definition of a tool, in the form that the other servers of this benchmark use.
fn tool(number: usize) -> String {
    let schema =
        r#"{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}"#;
    format!(
        r#"{{"name":"tool_{number:04}","description":"Answers with the message it was given","inputSchema":{schema}}}"#
    )
}

fn acknowledged(id: &Value) -> Bytes {
    format!(
        "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}},\"notifications\":{{\"toolsListChanged\":true}}}}}}\n\n"
    )
    .into()
}

const LIST_END: &str = r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#;

const INITIALIZED: &str = concat!(
    r#","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"#,
    r#""serverInfo":{"name":"bare-http","version":"0.1.0"}}}"#,
);

#[cfg(test)]
mod tests {
    use super::{Answer, Responder, Value};

    fn json(tools: usize, body: &str) -> Value {
        match Responder::with_tools(tools).answer(body.as_bytes()) {
            Ok(Answer::Json(bytes)) => serde_json::from_slice(&bytes).unwrap(),
            _ => panic!("no answer"),
        }
    }

    #[test]
    fn a_call_is_answered_with_its_message() {
        let call = r#"{"id":7,"method":"tools/call","params":{"arguments":{"message":"hi"}}}"#;
        let answer = json(0, call);
        assert_eq!(
            (&answer["id"], &answer["result"]["content"][0]["text"]),
            (&7.into(), &"hi".into())
        );
    }

    #[test]
    fn the_list_has_as_many_tools_as_were_asked_for() {
        let answer = json(1000, r#"{"id":1,"method":"tools/list"}"#);
        assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 1000);
        assert_eq!(answer["result"]["tools"][999]["name"], "tool_0999");
    }

    #[test]
    fn a_notification_gets_nothing() {
        let responder = Responder::with_tools(0);
        assert!(matches!(responder.answer(br#"{"method":"x"}"#), Ok(Answer::Nothing)));
        assert!(responder.answer(b"hello").is_err());
    }
}
