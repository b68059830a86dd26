//! Typed values for the tools of a server: the listed definitions, and the results of calls.

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Content, ListKind, ToolAnnotations};
use creole_proto::operation::Operation;
use creole_proto::wire::Raw;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::mcp_client::{Client, internal_fault};

/// A tool as a server lists it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListedTool {
    /// Its name in calls.
    pub name: String,
    /// Its display name.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its structured result.
    pub output_schema: Option<Value>,
    /// Hints about its behaviour.
    pub annotations: Option<ToolAnnotations>,
}

/// The result of a tool call, as the server wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct CallToolResult {
    raw: Raw,
}

/// The members of a result that this client reads.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CallToolMembers {
    content: Vec<Value>,
    structured_content: Option<Value>,
    is_error: Option<bool>,
}

impl CallToolResult {
    /// The JSON of the result.
    pub fn as_raw(&self) -> &Raw {
        &self.raw
    }

    /// The JSON of the result.
    pub fn into_raw(self) -> Raw {
        self.raw
    }

    /// Whether the tool failed. The [text](Self::text) then gives the reason.
    pub fn is_error(&self) -> bool {
        self.members().is_error == Some(true)
    }

    /// The blocks of content.
    ///
    /// # Errors
    /// When a block is of a kind that is not known here.
    pub fn content(&self) -> Result<Vec<Content>, Fault> {
        let blocks = Value::Array(self.members().content);
        serde_json::from_value(blocks).map_err(|error| unreadable("content", &error))
    }

    /// The text of all blocks of text, one line after the other.
    pub fn text(&self) -> String {
        let content = self.members().content;
        let texts = content.iter().filter(|block| block["type"] == "text");
        texts.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
    }

    /// The structured result, read as a `T`. Where the server sends none, as before 2025-06-18, the text is read as JSON.
    ///
    /// # Errors
    /// With the text when the tool failed. Else when the result is not a `T`.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let members = self.members();
        if members.is_error == Some(true) {
            return Err(Fault::new(FaultKind::ToolFailed, self.text()));
        }
        let read = match &members.structured_content {
            None => serde_json::from_str(&self.text()),
            Some(value) => T::deserialize(value).or_else(|error| {
                // Before 2026-07-28 a value that is no object is the member `result` of one.
                let wrapped = value.as_object().filter(|members| members.len() == 1);
                wrapped.and_then(|it| it.get("result")).map_or(Err(error), T::deserialize)
            }),
        };
        read.map_err(|error| unreadable("structured result", &error))
    }

    fn members(&self) -> CallToolMembers {
        self.raw.decode().unwrap_or_default()
    }
}

fn unreadable(description: &str, error: &serde_json::Error) -> Fault {
    internal_fault(&format!(
        "the {description} of the tool does not have the expected type: {error}"
    ))
}

impl Client {
    /// All tools of the server. Tools that violate the specification are excluded.
    ///
    /// # Errors
    /// The server's fault, or why it did not respond.
    pub async fn list_tools(&self) -> Result<Vec<ListedTool>, Fault> {
        let tools = self.list(ListKind::Tools).await?;
        let rules = self.connection().greeting().rules;
        let read = |text| serde_json::from_str(text);
        let listed = tools.iter().map(|tool| {
            read(tool.text(rules)).map_err(|error: serde_json::Error| {
                internal_fault(&format!(
                    "the definition of `{}` is not valid: {error}",
                    tool.name()
                ))
            })
        });
        listed.collect()
    }

    /// Calls a tool. If the server creates a task for the call, the task is followed to its end. A server of 2025-11-25
    /// creates one only on request, which is sent for tools that were [listed](Self::list_tools) as such.
    ///
    /// ```no_run
    /// # use creole::client::{Address, Client};
    /// # use creole::proto::fault::Fault;
    /// # use creole::client::Program;
    /// use serde::Deserialize;
    /// use serde_json::json;
    ///
    /// #[derive(Deserialize)]
    /// struct Sum {
    ///     sum: i64,
    /// }
    ///
    /// # async fn add() -> Result<(), Fault> {
    /// let client = Client::connect(Address::Child(Program::new("calculator", "calculator-mcp"))).await?;
    /// let sum: Sum = client.call_tool("add", &json!({"a": 1, "b": 2})).await?.structured()?;
    /// assert_eq!(sum.sum, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server's fault, or why it did not respond. A tool that failed is a [result](CallToolResult::is_error).
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &impl Serialize,
    ) -> Result<CallToolResult, Fault> {
        let arguments = Some(Raw::from_value(arguments));
        let raw = self.call_raw(Operation::CallTool { name: name.to_owned(), arguments }).await?;
        Ok(CallToolResult { raw })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> CallToolResult {
        CallToolResult { raw: Raw::parse(text).unwrap() }
    }

    #[test]
    fn a_structured_result_is_read_however_the_revision_carries_it() {
        let texts = [
            r#"{"content":[],"structuredContent":7}"#,
            r#"{"content":[],"structuredContent":{"result":7}}"#,
            r#"{"content":[{"type":"text","text":"7"}]}"#,
        ];
        for text in texts {
            assert_eq!(result(text).structured::<u8>().unwrap(), 7, "{text}");
        }
        let fault = result(texts[0]).structured::<String>().unwrap_err();
        assert!(
            fault
                .detail
                .starts_with("the structured result of the tool does not have the expected type"),
            "{fault}"
        );
    }

    #[test]
    fn the_text_of_a_failed_tool_is_its_fault() {
        let failed = result(
            r#"{"content":[{"type":"text","text":"no"},{"type":"x"},{"type":"text","text":"way"}],"isError":true}"#,
        );
        assert!(failed.is_error());
        let fault = failed.structured::<Value>().unwrap_err();
        assert_eq!((fault.kind, fault.detail.as_str()), (FaultKind::ToolFailed, "no\nway"));
        assert!(failed.content().is_err(), "a block of an unknown kind");
        assert_eq!(result(r#"{"content":[]}"#).content().unwrap(), []);
    }
}
