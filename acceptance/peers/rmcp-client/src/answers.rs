//! The responses of the peer to input requests, and a record of the server's requests and notifications.

// Sampling and roots are deprecated since 2026-07-28, and servers still request them.
#![allow(deprecated)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, Implementation,
    ListRootsResult, ProgressNotificationParam, Root, SamplingMessage,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

/// The client handler of the peer. Clones share their record.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Heard>);

/// The requests and notifications of the server.
#[derive(Default)]
struct Heard {
    elicited: AtomicBool,
    sampled: AtomicBool,
    rooted: AtomicBool,
    progress: Mutex<Vec<Value>>,
    tools_changed: Notify,
}

impl Notes {
    /// Whether the server sent an elicitation request.
    pub(crate) fn elicited(&self) -> bool {
        self.0.elicited.load(Ordering::Relaxed)
    }

    /// Whether the server sent a sampling request.
    pub(crate) fn sampled(&self) -> bool {
        self.0.sampled.load(Ordering::Relaxed)
    }

    /// Whether the server requested the roots.
    pub(crate) fn rooted(&self) -> bool {
        self.0.rooted.load(Ordering::Relaxed)
    }

    /// The progress notifications so far.
    pub(crate) fn progress(&self) -> Vec<Value> {
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the notification that the tools changed.
    pub(crate) async fn tools_changed(&self) {
        self.0.tools_changed.notified().await;
    }
}

impl ClientHandler for Notes {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(Default::default());
        capabilities.sampling = Some(Default::default());
        capabilities.roots = Some(Default::default());
        ClientConfig::new(capabilities, Implementation::new("creole-acceptance-peer", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.0.elicited.store(true, Ordering::Relaxed);
        let result = ElicitResult::new(ElicitationAction::Accept);
        Ok(match request {
            ElicitRequestParams::FormElicitationParams { requested_schema, .. } => {
                result.with_content(answer(&json!(requested_schema)))
            }
            _ => result,
        })
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.0.sampled.store(true, Ordering::Relaxed);
        let said = SamplingMessage::assistant_text("Sampled by the peer.");
        Ok(CreateMessageResult::new(said, "peer-model".into()))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.0.rooted.store(true, Ordering::Relaxed);
        Ok(ListRootsResult::new(vec![Root::new("file:///peer/root").with_name("peer root")]))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let mut told = json!(params);
        if let Some(fields) = told.as_object_mut() {
            fields.remove("progressToken");
        }
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner).push(told);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.tools_changed.notify_one();
    }
}

/// Content that an elicitation's schema accepts: its defaults, else the simplest values.
fn answer(schema: &Value) -> Value {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    properties.iter().map(|(name, shape)| (name.clone(), plainest(shape))).collect()
}

/// The simplest value that one property of an elicitation's schema accepts.
fn plainest(shape: &Value) -> Value {
    if let Some(default) = shape.get("default") {
        return default.clone();
    }
    for choice in [&shape["oneOf"][0]["const"], &shape["anyOf"][0]["const"], &shape["enum"][0]] {
        if !choice.is_null() {
            return choice.clone();
        }
    }
    match (shape["type"].as_str(), shape["format"].as_str()) {
        (Some("array"), _) => json!([plainest(&shape["items"])]),
        (Some("boolean"), _) => json!(true),
        (Some("integer" | "number"), _) => shape.get("minimum").cloned().unwrap_or(json!(1)),
        (_, Some("email")) => json!("peer@example.com"),
        (_, Some("uri")) => json!("https://example.com/"),
        (_, Some("date")) => json!("2026-07-28"),
        _ => json!("peer"),
    }
}
