//! The type referee: checks messages against the published `rust-mcp-schema` types, one release for each revision.
//!
//! A message is valid if it can be deserialised into the revision's type for it.

use creole::proto::revision::Revision;
use rust_mcp_schema_2024_11_05::mcp_2024_11_05 as v2024_11_05;
use rust_mcp_schema_2025_03_26::mcp_2025_03_26 as v2025_03_26;
use rust_mcp_schema_2025_06_18::mcp_2025_06_18 as v2025_06_18;
use rust_mcp_schema_2025_11_25::mcp_2025_11_25 as v2025_11_25;
use rust_mcp_schema_2026_07_28::mcp_2026_07_28 as v2026_07_28;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ServerMessageKind;

/// Deserialises a value as one type, or returns the error.
type Reader = fn(&Value) -> Result<(), String>;

/// A method, and the type of its result or of the message that carries it.
type Row = (&'static str, Reader);

/// The types of one revision.
struct Types {
    answer: Reader,
    error: Reader,
    request: Reader,
    notification: Reader,
    /// The result with input requests.
    asking: Option<Reader>,
    /// The result with a task.
    task: Option<Reader>,
    results: &'static [Row],
    messages: &'static [Row],
}

/// Checks one message of a server against the types of a revision.
pub(super) fn check_types(
    revision: Revision,
    kind: ServerMessageKind<'_>,
    message: &Value,
) -> Result<(), String> {
    let types = of(revision);
    match kind {
        ServerMessageKind::Error => (types.error)(message),
        ServerMessageKind::Answer { method, result } => {
            (types.answer)(message)?;
            find(types.results, method)?(result)
        }
        ServerMessageKind::Asking { result } => {
            (types.answer)(message)?;
            types.asking.ok_or("its results cannot request input")?(result)
        }
        ServerMessageKind::Task { result } => {
            (types.answer)(message)?;
            types.task.ok_or("its results cannot be tasks")?(result)
        }
        ServerMessageKind::Request { method } => {
            (types.request)(message)?;
            find(types.messages, method)?(message)
        }
        ServerMessageKind::Notification { method } => {
            (types.notification)(message)?;
            find(types.messages, method)?(message)
        }
    }
}

fn find(rows: &[Row], method: &str) -> Result<Reader, String> {
    let row = rows.iter().find(|(name, _)| *name == method);
    row.map(|(_, reader)| *reader).ok_or_else(|| format!("it has no server message `{method}`"))
}

fn read<T: DeserializeOwned>(value: &Value) -> Result<(), String> {
    let whole = std::any::type_name::<T>();
    let name = whole.rsplit("::").next().unwrap_or(whole);
    T::deserialize(value).map(drop).map_err(|error| format!("not a valid `{name}`: {error}"))
}

fn of(revision: Revision) -> &'static Types {
    match revision {
        Revision::V2024_11_05 => &TYPES_2024_11_05,
        Revision::V2025_03_26 => &TYPES_2025_03_26,
        Revision::V2025_06_18 => &TYPES_2025_06_18,
        Revision::V2025_11_25 => &TYPES_2025_11_25,
        Revision::V2026_07_28 => &TYPES_2026_07_28,
    }
}

static TYPES_2024_11_05: Types = Types {
    answer: read::<v2024_11_05::JsonrpcResponse>,
    error: read::<v2024_11_05::JsonrpcError>,
    request: read::<v2024_11_05::JsonrpcRequest>,
    notification: read::<v2024_11_05::JsonrpcNotification>,
    asking: None,
    task: None,
    results: &[
        ("initialize", read::<v2024_11_05::InitializeResult>),
        ("ping", read::<v2024_11_05::EmptyResult>),
        ("tools/list", read::<v2024_11_05::ListToolsResult>),
        ("tools/call", read::<v2024_11_05::CallToolResult>),
        ("resources/list", read::<v2024_11_05::ListResourcesResult>),
        ("resources/templates/list", read::<v2024_11_05::ListResourceTemplatesResult>),
        ("resources/read", read::<v2024_11_05::ReadResourceResult>),
        ("resources/subscribe", read::<v2024_11_05::EmptyResult>),
        ("resources/unsubscribe", read::<v2024_11_05::EmptyResult>),
        ("prompts/list", read::<v2024_11_05::ListPromptsResult>),
        ("prompts/get", read::<v2024_11_05::GetPromptResult>),
        ("completion/complete", read::<v2024_11_05::CompleteResult>),
        ("logging/setLevel", read::<v2024_11_05::EmptyResult>),
    ],
    messages: &[
        ("notifications/cancelled", read::<v2024_11_05::CancelledNotification>),
        ("notifications/progress", read::<v2024_11_05::ProgressNotification>),
        ("notifications/message", read::<v2024_11_05::LoggingMessageNotification>),
        ("notifications/tools/list_changed", read::<v2024_11_05::ToolListChangedNotification>),
        (
            "notifications/resources/list_changed",
            read::<v2024_11_05::ResourceListChangedNotification>,
        ),
        ("notifications/prompts/list_changed", read::<v2024_11_05::PromptListChangedNotification>),
        ("notifications/resources/updated", read::<v2024_11_05::ResourceUpdatedNotification>),
        ("ping", read::<v2024_11_05::PingRequest>),
        ("roots/list", read::<v2024_11_05::ListRootsRequest>),
        ("sampling/createMessage", read::<v2024_11_05::CreateMessageRequest>),
    ],
};

static TYPES_2025_03_26: Types = Types {
    answer: read::<v2025_03_26::JsonrpcResponse>,
    error: read::<v2025_03_26::JsonrpcError>,
    request: read::<v2025_03_26::JsonrpcRequest>,
    notification: read::<v2025_03_26::JsonrpcNotification>,
    asking: None,
    task: None,
    results: &[
        ("initialize", read::<v2025_03_26::InitializeResult>),
        ("ping", read::<v2025_03_26::EmptyResult>),
        ("tools/list", read::<v2025_03_26::ListToolsResult>),
        ("tools/call", read::<v2025_03_26::CallToolResult>),
        ("resources/list", read::<v2025_03_26::ListResourcesResult>),
        ("resources/templates/list", read::<v2025_03_26::ListResourceTemplatesResult>),
        ("resources/read", read::<v2025_03_26::ReadResourceResult>),
        ("resources/subscribe", read::<v2025_03_26::EmptyResult>),
        ("resources/unsubscribe", read::<v2025_03_26::EmptyResult>),
        ("prompts/list", read::<v2025_03_26::ListPromptsResult>),
        ("prompts/get", read::<v2025_03_26::GetPromptResult>),
        ("completion/complete", read::<v2025_03_26::CompleteResult>),
        ("logging/setLevel", read::<v2025_03_26::EmptyResult>),
    ],
    messages: &[
        ("notifications/cancelled", read::<v2025_03_26::CancelledNotification>),
        ("notifications/progress", read::<v2025_03_26::ProgressNotification>),
        ("notifications/message", read::<v2025_03_26::LoggingMessageNotification>),
        ("notifications/tools/list_changed", read::<v2025_03_26::ToolListChangedNotification>),
        (
            "notifications/resources/list_changed",
            read::<v2025_03_26::ResourceListChangedNotification>,
        ),
        ("notifications/prompts/list_changed", read::<v2025_03_26::PromptListChangedNotification>),
        ("notifications/resources/updated", read::<v2025_03_26::ResourceUpdatedNotification>),
        ("ping", read::<v2025_03_26::PingRequest>),
        ("roots/list", read::<v2025_03_26::ListRootsRequest>),
        ("sampling/createMessage", read::<v2025_03_26::CreateMessageRequest>),
    ],
};

static TYPES_2025_06_18: Types = Types {
    answer: read::<v2025_06_18::JsonrpcResponse>,
    error: read::<v2025_06_18::JsonrpcError>,
    request: read::<v2025_06_18::JsonrpcRequest>,
    notification: read::<v2025_06_18::JsonrpcNotification>,
    asking: None,
    task: None,
    results: &[
        ("initialize", read::<v2025_06_18::InitializeResult>),
        ("ping", read::<v2025_06_18::EmptyResult>),
        ("tools/list", read::<v2025_06_18::ListToolsResult>),
        ("tools/call", read::<v2025_06_18::CallToolResult>),
        ("resources/list", read::<v2025_06_18::ListResourcesResult>),
        ("resources/templates/list", read::<v2025_06_18::ListResourceTemplatesResult>),
        ("resources/read", read::<v2025_06_18::ReadResourceResult>),
        ("resources/subscribe", read::<v2025_06_18::EmptyResult>),
        ("resources/unsubscribe", read::<v2025_06_18::EmptyResult>),
        ("prompts/list", read::<v2025_06_18::ListPromptsResult>),
        ("prompts/get", read::<v2025_06_18::GetPromptResult>),
        ("completion/complete", read::<v2025_06_18::CompleteResult>),
        ("logging/setLevel", read::<v2025_06_18::EmptyResult>),
    ],
    messages: &[
        ("notifications/cancelled", read::<v2025_06_18::CancelledNotification>),
        ("notifications/progress", read::<v2025_06_18::ProgressNotification>),
        ("notifications/message", read::<v2025_06_18::LoggingMessageNotification>),
        ("notifications/tools/list_changed", read::<v2025_06_18::ToolListChangedNotification>),
        (
            "notifications/resources/list_changed",
            read::<v2025_06_18::ResourceListChangedNotification>,
        ),
        ("notifications/prompts/list_changed", read::<v2025_06_18::PromptListChangedNotification>),
        ("notifications/resources/updated", read::<v2025_06_18::ResourceUpdatedNotification>),
        ("ping", read::<v2025_06_18::PingRequest>),
        ("roots/list", read::<v2025_06_18::ListRootsRequest>),
        ("sampling/createMessage", read::<v2025_06_18::CreateMessageRequest>),
        ("elicitation/create", read::<v2025_06_18::ElicitRequest>),
    ],
};

static TYPES_2025_11_25: Types = Types {
    answer: read::<v2025_11_25::JsonrpcResultResponse>,
    error: read::<v2025_11_25::JsonrpcErrorResponse>,
    request: read::<v2025_11_25::JsonrpcRequest>,
    notification: read::<v2025_11_25::JsonrpcNotification>,
    asking: None,
    task: Some(read::<v2025_11_25::CreateTaskResult>),
    results: &[
        ("initialize", read::<v2025_11_25::InitializeResult>),
        ("ping", read::<v2025_11_25::EmptyResult>),
        ("tools/list", read::<v2025_11_25::ListToolsResult>),
        ("tools/call", read::<v2025_11_25::CallToolResult>),
        ("resources/list", read::<v2025_11_25::ListResourcesResult>),
        ("resources/templates/list", read::<v2025_11_25::ListResourceTemplatesResult>),
        ("resources/read", read::<v2025_11_25::ReadResourceResult>),
        ("resources/subscribe", read::<v2025_11_25::EmptyResult>),
        ("resources/unsubscribe", read::<v2025_11_25::EmptyResult>),
        ("prompts/list", read::<v2025_11_25::ListPromptsResult>),
        ("prompts/get", read::<v2025_11_25::GetPromptResult>),
        ("completion/complete", read::<v2025_11_25::CompleteResult>),
        ("logging/setLevel", read::<v2025_11_25::EmptyResult>),
        ("tasks/get", read::<v2025_11_25::GetTaskResult>),
        ("tasks/list", read::<v2025_11_25::ListTasksResult>),
        ("tasks/cancel", read::<v2025_11_25::CancelTaskResult>),
        // The type of the payload accepts anything. All tasks here are tool calls.
        ("tasks/result", read::<v2025_11_25::CallToolResult>),
    ],
    messages: &[
        ("notifications/cancelled", read::<v2025_11_25::CancelledNotification>),
        ("notifications/progress", read::<v2025_11_25::ProgressNotification>),
        ("notifications/message", read::<v2025_11_25::LoggingMessageNotification>),
        ("notifications/tools/list_changed", read::<v2025_11_25::ToolListChangedNotification>),
        (
            "notifications/resources/list_changed",
            read::<v2025_11_25::ResourceListChangedNotification>,
        ),
        ("notifications/prompts/list_changed", read::<v2025_11_25::PromptListChangedNotification>),
        ("notifications/resources/updated", read::<v2025_11_25::ResourceUpdatedNotification>),
        ("ping", read::<v2025_11_25::PingRequest>),
        ("roots/list", read::<v2025_11_25::ListRootsRequest>),
        ("sampling/createMessage", read::<v2025_11_25::CreateMessageRequest>),
        ("elicitation/create", read::<v2025_11_25::ElicitRequest>),
        (
            "notifications/elicitation/complete",
            read::<v2025_11_25::ElicitationCompleteNotification>,
        ),
        ("notifications/tasks/status", read::<v2025_11_25::TaskStatusNotification>),
    ],
};

static TYPES_2026_07_28: Types = Types {
    answer: read::<v2026_07_28::JsonrpcResultResponse>,
    error: read::<v2026_07_28::JsonrpcErrorResponse>,
    request: read::<v2026_07_28::JsonrpcRequest>,
    notification: read::<v2026_07_28::JsonrpcNotification>,
    asking: Some(read::<v2026_07_28::InputRequiredResult>),
    task: None,
    results: &[
        ("server/discover", read::<v2026_07_28::DiscoverResult>),
        ("tools/list", read::<v2026_07_28::ListToolsResult>),
        ("tools/call", read::<v2026_07_28::CallToolResult>),
        ("resources/list", read::<v2026_07_28::ListResourcesResult>),
        ("resources/templates/list", read::<v2026_07_28::ListResourceTemplatesResult>),
        ("resources/read", read::<v2026_07_28::ReadResourceResult>),
        ("prompts/list", read::<v2026_07_28::ListPromptsResult>),
        ("prompts/get", read::<v2026_07_28::GetPromptResult>),
        ("completion/complete", read::<v2026_07_28::CompleteResult>),
        ("subscriptions/listen", read::<v2026_07_28::SubscriptionsListenResult>),
    ],
    messages: &[
        ("notifications/cancelled", read::<v2026_07_28::CancelledNotification>),
        ("notifications/progress", read::<v2026_07_28::ProgressNotification>),
        ("notifications/message", read::<v2026_07_28::LoggingMessageNotification>),
        ("notifications/tools/list_changed", read::<v2026_07_28::ToolListChangedNotification>),
        (
            "notifications/resources/list_changed",
            read::<v2026_07_28::ResourceListChangedNotification>,
        ),
        ("notifications/prompts/list_changed", read::<v2026_07_28::PromptListChangedNotification>),
        ("notifications/resources/updated", read::<v2026_07_28::ResourceUpdatedNotification>),
        (
            "notifications/subscriptions/acknowledged",
            read::<v2026_07_28::SubscriptionsAcknowledgedNotification>,
        ),
    ],
};
