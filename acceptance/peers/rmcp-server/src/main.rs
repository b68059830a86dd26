//! A server made with rmcp, which supports 2026-07-28 and the earlier revisions. In 2026-07-28 a call ends with its
//! input requests. In a session they are sent during the call. It serves on stdio.
//!
//! `../README.md` describes its tools.

// Sampling is deprecated since 2026-07-28, and servers still use it.
#![allow(deprecated)]

use std::error::Error;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateMessageRequest,
    CreateMessageRequestParams, ElicitRequest, ElicitRequestParams, ErrorData, Implementation,
    InputRequest, InputRequests, InputRequiredResult, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, SamplingMessage,
    ServerCapabilities, ServerConfig, ServerRequest, SubscriptionFilter, Tool,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The names of the tools, and the string arguments of each.
const TOOLS: [(&str, &[&str]); 7] = [
    ("echo", &["text"]),
    ("weather", &[]),
    ("count", &[]),
    ("greet", &[]),
    ("think", &[]),
    ("grow", &[]),
    ("wait", &["file"]),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let served = Tools { grown: watch::Sender::new(0) }.serve(rmcp::transport::stdio()).await?;
    served.waiting().await?;
    Ok(())
}

/// The server. Its list of tools depends on the number of added tools.
struct Tools {
    grown: watch::Sender<usize>,
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let mut config = ServerConfig::new(capabilities);
        config.server_info = Implementation::new("rmcp", "1.0.0");
        config
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let grown = (1..=*self.grown.borrow()).map(|number| tool(format!("grown{number}"), &[]));
        let tools = TOOLS.iter().map(|(name, texts)| tool((*name).to_owned(), texts));
        Ok(ListToolsResult::with_all_items(tools.chain(grown).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = |name: &str| {
            let value = request.arguments.as_ref().and_then(|given| given.get(name));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let answered = request.input_responses.as_ref().and_then(|all| all.get("asked"));
        let question = match &*request.name {
            "greet" => Some(form()),
            "think" => Some(sample()),
            _ => None,
        };
        let answer = match question {
            Some(question) if shakes_hands(&context) => Some(ask(&context, question).await?),
            _ => answered.map(|answer| json!(answer)),
        };
        match &*request.name {
            "echo" => Ok(text(&given("text"))),
            "weather" => {
                Ok(CallToolResult::structured(json!({"city": "Berlin", "temperature": 21.5}))
                    .into())
            }
            "count" => {
                for at in [1.0, 2.0, 3.0] {
                    progress(&context, at, 3.0).await;
                }
                Ok(text("counted"))
            }
            "greet" => Ok(match answer {
                Some(said) => {
                    let name = said["content"]["name"].as_str().unwrap_or("nobody");
                    text(&format!("Hello, {name}!"))
                }
                None => asks(form()),
            }),
            "think" => Ok(match answer {
                Some(said) => {
                    let first = said["content"].get(0).unwrap_or(&said["content"]);
                    text(&format!("Thought: {}", first["text"].as_str().unwrap_or_default()))
                }
                None => asks(sample()),
            }),
            "grow" => {
                self.grown.send_modify(|grown| *grown += 1);
                if shakes_hands(&context) {
                    // The test that waits for the notification fails without it.
                    let _ = context.peer.notify_tool_list_changed().await;
                }
                Ok(text("grown"))
            }
            "wait" => {
                progress(&context, 1.0, 2.0).await;
                context.ct.cancelled().await;
                // The test that waits for the file fails without it.
                let _ = std::fs::write(given("file"), "cancelled");
                Ok(text("waited"))
            }
            other => Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None)),
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut grown = self.grown.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = grown.changed() => {
                    if changed.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// A tool with these string arguments.
fn tool(name: String, texts: &[&str]) -> Tool {
    let properties: JsonObject =
        texts.iter().map(|text| ((*text).to_owned(), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": properties, "required": texts});
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, "", Arc::new(schema))
}

fn text(said: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(said)]).into()
}

/// Whether the call was made in a session.
fn shakes_hands(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version() != Some(ProtocolVersion::V_2026_07_28)
}

/// Sends an input request during the call.
async fn ask(
    context: &RequestContext<RoleServer>,
    question: InputRequest,
) -> Result<Value, ErrorData> {
    let request = match question {
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        _ => return Err(ErrorData::internal_error("nothing else is asked", None)),
    };
    let refused = |error: rmcp::ServiceError| ErrorData::internal_error(error.to_string(), None);
    Ok(json!(context.peer.send_request(request).await.map_err(refused)?))
}

/// Ends a call with an input request.
fn asks(question: InputRequest) -> CallToolResponse {
    let mut questions = InputRequests::new();
    questions.insert("asked".to_owned(), question);
    InputRequiredResult::new(Some(questions), Some("asked".to_owned())).into()
}

fn form() -> InputRequest {
    let schema = json!({
        "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
    });
    InputRequest::Elicitation(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "Who are you?".into(),
        requested_schema: serde_json::from_value(schema).expect("a schema of a form"),
    }))
}

fn sample() -> InputRequest {
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text("Think.")], 100);
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

/// Sends progress, if the call has a token.
async fn progress(context: &RequestContext<RoleServer>, at: f64, of: f64) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let told = ProgressNotificationParam::new(token, at).with_total(of);
    // The test that counts notifications fails without it.
    let _ = context.peer.notify_progress(told).await;
}
